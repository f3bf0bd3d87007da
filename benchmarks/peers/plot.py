"""The plot of append cost against the length of a session: an SVG, written by hand, on a white ground of its own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape
from itertools import pairwise

from benchmarks.peers.figures import Figures, Run

WIDTH, HEIGHT = 860, 500
LEFT, RIGHT, TOP, BOTTOM = 78, 640, 74, 440
LABEL_X, LABEL_GAP = 668, 18
INK, FAINT, GRID, OURS, FLOOR = "#24292f", "#656d76", "#e6e8eb", "#d1242f", "#8c959f"
OTHERS = ("#0969da", "#1a7f37", "#4d9a5c", "#8250df", "#9a6700", "#0c8599", "#bf3989", "#57606a")
Lengths = tuple[int, ...]


class _Line:
    """A store's figures as points of the picture."""

    def __init__(self, store: Figures, colour: str, lengths: Lengths, top: float, bottom: float) -> None:
        self.name = store.name
        self.is_ours = store.is_ours
        self.is_floor = "floor" in store.name
        self.colour = OURS if self.is_ours else FLOOR if self.is_floor else colour
        self.width = 4 if store.name == "statestore" else 2
        self.dashes = "7 5" if self.is_floor else "3 4" if self.is_ours and self.width == 2 else "none"
        self.last = store.append[max(store.append)] * 1e6
        self.points = [
            (_x(length, lengths), _y(cost * 1e6, top, bottom)) for length, cost in sorted(store.append.items())
        ]
        self.label_y = self.points[-1][1]


def drawn(run: Run) -> str:
    """The picture of a run's first contest."""
    stores = [store for store in run.contests[0].stores if store.append]
    costs = [cost * 1e6 for store in stores for cost in store.append.values()]
    bottom, top = min(costs) / 1.6, max(costs) * 1.4
    lengths = run.contests[0].effort.lengths
    lines = [_Line(store, OTHERS[number % len(OTHERS)], lengths, top, bottom) for number, store in enumerate(stores)]
    _spread(lines)
    lines.sort(key=lambda line: line.is_ours)  # ours are drawn over the others
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
        ' role="img" font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" font-size="13">',
        "<title>Cost of one durable append against the length of the session</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#ffffff"/>',
        _text(LEFT, 32, "Appending one exchange, as the session grows", INK, size=18, weight=600),
        _text(LEFT, 54, f"microseconds, median, both axes logarithmic: less is better. {run.machine}", FAINT),
        *_axes(lengths, bottom, top),
        *(part for line in lines for part in _drawn_line(line)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _x(length: int, lengths: Lengths) -> float:
    span = math.log10(lengths[-1] / lengths[0])
    return LEFT + (RIGHT - LEFT) * math.log10(length / lengths[0]) / span


def _y(cost: float, top: float, bottom: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * math.log10(cost / bottom) / math.log10(top / bottom)


def _spread(lines: list[_Line]) -> None:
    """Move labels apart that would touch, both of them alike, until none does."""
    lines.sort(key=lambda line: line.label_y)
    for _ in range(200):
        for above, below in pairwise(lines):
            missing = LABEL_GAP - (below.label_y - above.label_y)
            if missing > 0:
                above.label_y -= missing / 2
                below.label_y += missing / 2


def _axes(lengths: Lengths, bottom: float, top: float) -> Iterator[str]:
    for exponent in range(math.ceil(math.log10(bottom)), math.floor(math.log10(top)) + 1):
        height = _y(10**exponent, top, bottom)
        yield f'<path d="M{LEFT} {height:.1f}H{RIGHT}" stroke="{GRID}"/>'
        yield _text(LEFT - 10, height + 4, f"{10**exponent:,}", FAINT, anchor="end")
    yield f'<path d="M{LEFT} {BOTTOM}H{RIGHT}" stroke="{FLOOR}"/>'
    for length in lengths:
        place = _x(length, lengths)
        yield f'<path d="M{place:.1f} {TOP}V{BOTTOM}" stroke="{GRID}"/>'
        yield _text(place, BOTTOM + 22, f"{length:,}", FAINT, anchor="middle")
    yield _text((LEFT + RIGHT) / 2, BOTTOM + 44, "exchanges already in the session", FAINT, anchor="middle")


def _drawn_line(line: _Line) -> Iterator[str]:
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in line.points)
    end_x, end_y = line.points[-1]
    yield (
        f'<path d="M{path}" fill="none" stroke="{line.colour}" stroke-width="{line.width}"'
        f' stroke-linejoin="round" stroke-dasharray="{line.dashes}"/>'
    )
    if line.width > 2:
        yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{line.colour}"/>' for x, y in line.points)
    leader = f"M{end_x + 5:.1f} {end_y:.1f}L{LABEL_X - 5} {line.label_y:.1f}"
    yield f'<path d="{leader}" stroke="{line.colour}" opacity="0.5" fill="none"/>'
    words = f"{line.name}  {line.last:,.0f}"
    yield _text(LABEL_X, line.label_y + 4.5, words, line.colour, weight=700 if line.is_ours else 400)


def _text(
    x: float, y: float, words: str, colour: str, *, size: int = 13, weight: int = 400, anchor: str = "start"
) -> str:
    style = f'font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" fill="{colour}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(words)}</text>'
