"""What commands print with: lines, tables and JSON. Styled on a terminal, plain text elsewhere.

Tables are laid out here and not by rich, because loading rich's takes longer than listing a store. It measures the
width of characters, and renders markdown where that is asked for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from shutil import get_terminal_size
from typing import Any, Final, NamedTuple

import msgspec

from statestore.visible import in_json, isolated, on_one_line

_STYLES: Final = {"bold": "1", "dim": "2", "mark": "1;4", "user": "1;36", "agent": "1;32", "bad": "1;31", "good": "32"}
_COLOURLESS: Final = {"user": "1", "agent": "1", "bad": "1", "good": ""}
_GAP: Final = 2
_NARROWEST: Final = 8
"""A stretching column is never cut below this."""
_COMFORTABLE: Final = 24
"""To leave a stretching column this much, others are left out."""


class Column(NamedTuple):
    """A column of a table."""

    name: str
    is_number: bool = False
    stretches: bool = False
    """Takes the width that is left, and is cut where there is too little."""
    goes: int = 0
    """When it is left out on a narrow terminal: the highest first, 0 never."""
    style: str = ""


def is_terminal() -> bool:
    """Whether somebody is looking: standard output is a terminal that understands styles."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def terminal_width() -> int:
    """How many columns the terminal has."""
    return get_terminal_size().columns


def print_line(*parts: str) -> None:
    """Print a line of text that is safe already: styled parts, or the program's own words."""
    sys.stdout.write("".join(parts) + "\n")


def print_json(value: Any) -> None:
    """Print a value as one line of JSON."""
    sys.stdout.write(in_json(msgspec.json.encode(value).decode()) + "\n")


def styled(text: str, style: str) -> str:
    """A text in a style, on a terminal; ``NO_COLOR`` leaves bold, dim and underlined."""
    if not style or not text or not is_terminal():
        return text
    codes = _STYLES[style]
    if os.environ.get("NO_COLOR"):
        codes = _COLOURLESS.get(style, codes)
    return f"\x1b[{codes}m{text}\x1b[0m" if codes else text


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
    """Print a table: as wide as the terminal, or with nothing cut in a pipe. Cells may hold any text."""
    cells = [[on_one_line(cell) for cell in row] for row in rows]
    widths = [_widest(column.name, [row[at] for row in cells]) for at, column in enumerate(columns)]
    kept = list(range(len(columns)))
    if is_terminal():
        kept = _fitted(columns, widths, terminal_width())
    _print_row(columns, kept, widths, [column.name for column in columns], head=True)
    for row in cells:
        _print_row(columns, kept, widths, row)


def _print_row(
    columns: Sequence[Column], kept: Sequence[int], widths: Sequence[int], row: Sequence[str], *, head: bool = False
) -> None:
    shown: list[str] = []
    for at in kept:
        column, width = columns[at], widths[at]
        text = cut(row[at], width) if is_terminal() else row[at]
        space = " " * (width - width_of(text))
        text = styled(isolated(text) if is_terminal() else text, "bold" if head else column.style)
        shown.append(space + text if column.is_number else text + space)
    print_line((" " * _GAP).join(shown).rstrip())


def _widest(name: str, cells: Iterable[str]) -> int:
    return max(width_of(name), max(map(width_of, cells), default=0))


def _fitted(columns: Sequence[Column], widths: list[int], room: int) -> list[int]:
    """Which columns there is room for; the widths of those that stretch are cut to what is left."""
    kept = list(range(len(columns)))
    while True:
        stretching = [at for at in kept if columns[at].stretches]
        fixed = sum(widths[at] for at in kept if at not in stretching) + _GAP * (len(kept) - 1)
        left = room - fixed
        wanted = sum(min(widths[at], _COMFORTABLE) for at in stretching)
        goes = max(kept, key=lambda at: columns[at].goes)
        if left >= wanted or not columns[goes].goes:
            break
        kept.remove(goes)
    for number, at in enumerate(stretching):
        share = max(left // (len(stretching) - number), _NARROWEST)
        widths[at] = min(widths[at], share)
        left -= widths[at]
    return kept


def width_of(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # noqa: PLC0415 - plain text needs no tables of widths

    return cell_len(text)


def cut(text: str, width: int) -> str:
    """A text cut to a width, with ``…`` where something is missing."""
    if width_of(text) <= width:
        return text
    if text.isascii():
        return text[: width - 1] + "…"
    from rich.cells import set_cell_size  # noqa: PLC0415

    return set_cell_size(text, width - 1).rstrip() + "…"


def counted(number: int, noun: str) -> str:
    """A number of things: ``1 session``, ``12,000 sessions``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size_text(size: int) -> str:
    """A number of bytes as people read it: ``512 B``, ``3.1 kB``, ``12 MB``."""
    if size < 1000:
        return f"{size} B"
    amount = float(size)
    for unit in ("kB", "MB", "GB", "TB"):
        amount /= 1000
        if amount < 999.5 or unit == "TB":
            break
    return f"{amount:.1f} {unit}" if amount < 9.95 else f"{amount:.0f} {unit}"


def bar(share: float, width: int = 16) -> str:
    """A bar for a number from 0 to 1, in steps of an eighth of a character."""
    eighths = max(round(share * width * 8), 1 if share > 0 else 0)
    return "█" * (eighths // 8) + ("", *"▏▎▍▌▋▊▉")[eighths % 8]
