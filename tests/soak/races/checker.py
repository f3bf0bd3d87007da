"""Is there an order that explains what was seen? The search of Wing and Gong, with Lowe's memory of where it was.

An operation takes effect between its start and its end, at one moment or, if its promise says no more, at several.
Operations of one lane follow each other. One that never ended may have taken effect at any time since, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

DONE: Final = "done"
"""What an operation remembers when all of it has happened."""

Effect = tuple[Hashable, Hashable]
"""The state after a step, and what the operation remembers until its next one, or `DONE`."""
NEVER: Final = float("inf")
PATIENCE: Final = 400_000


@dataclass(frozen=True)
class Interval:
    """An operation as the checker sees it."""

    lane: Hashable
    start: int
    end: int | None
    """``None``: it was never heard of again."""
    steps: Callable[[Any, Any], Iterable[Effect]]
    """From a state, and what it remembers (at first ``None``), to all that may come next; nothing if it cannot be."""
    label: str
    has_one_step: bool = True
    """Whether it always takes effect at one moment."""

    @property
    def latest(self) -> float:
        """The last moment at which it can have taken effect."""
        return NEVER if self.end is None else self.end


class Unexplained(AssertionError):
    """No order explains a history."""


class TooMuch(Exception):
    """The search was given up: the history is too wild for it, and nobody knows."""


class _Place(NamedTuple):
    """How far an order has come: the next operation of each lane, what it remembers, and the state."""

    positions: tuple[int, ...]
    memories: tuple[Hashable, ...]
    state: Hashable


def explain(operations: Sequence[Interval], state: Hashable) -> list[str]:
    """An order that explains a history; `Unexplained` if there is none."""
    search = _Search(operations)
    start = _Place((0,) * len(search.lanes), (None,) * len(search.lanes), state)
    came_from: dict[_Place, tuple[_Place, str] | None] = {start: None}
    farthest, stack = start, [start]
    while stack:
        place = stack.pop()
        if sum(place.positions) > sum(farthest.positions):
            farthest = place
        if search.is_over(place):
            return _path(came_from, place)
        for following, label in search.steps_from(place):
            if following not in came_from:
                came_from[following] = (place, label)
                stack.append(following)
        if len(came_from) > PATIENCE:
            raise TooMuch(f"{len(operations)} operations, and {PATIENCE} places were not enough")
    raise Unexplained(
        "\n".join(
            (
                "no order explains this history; the longest one that does not fail is",
                *(f"  {label}" for label in _path(came_from, farthest)),
                f"which leads to {farthest.state}, and then none of these can come next",
                *(f"  {operation.label}" for operation in search.candidates(farthest.positions)),
            )
        )
    )


class _Search:
    """The operations by lane, and where one can go from a place."""

    def __init__(self, operations: Sequence[Interval]) -> None:
        by_lane: dict[Hashable, list[Interval]] = {}
        for operation in sorted(operations, key=lambda operation: operation.start):
            by_lane.setdefault(operation.lane, []).append(operation)
        self.lanes = list(by_lane.values())
        self._numbers = {lane: number for number, lane in enumerate(by_lane)}

    def is_over(self, place: _Place) -> bool:
        """Whether everything that ended has been ordered."""
        return all(operation.end is None for operation in self._nexts(place.positions))

    def _nexts(self, positions: tuple[int, ...]) -> list[Interval]:
        return [lane[at] for lane, at in zip(self.lanes, positions, strict=True) if at < len(lane)]

    def candidates(self, positions: tuple[int, ...]) -> list[Interval]:
        """What may take effect next: whatever began before any other that is left has ended."""
        nexts = self._nexts(positions)
        first_end = min(operation.latest for operation in nexts)
        return [operation for operation in nexts if operation.start <= first_end]

    def steps_from(self, place: _Place) -> list[tuple[_Place, str]]:
        """The places that one step leads to; the most promising one last."""
        found: list[tuple[float, _Place, str]] = []
        for operation in self.candidates(place.positions):
            number = self._numbers[operation.lane]
            effects = list(operation.steps(place.state, place.memories[number]))
            for state, memory in effects:
                is_done = memory is DONE
                positions = _with(place.positions, number, place.positions[number] + is_done)
                following = _Place(positions, _with(place.memories, number, None if is_done else memory), state)
                found.append((operation.latest, following, operation.label))
            if operation.has_one_step and operation.end is not None and effects == [(place.state, DONE)]:
                return [found[-1][1:]]  # it changes nothing, so whatever explains it later explains it now
        found.sort(key=lambda step: -step[0])
        return [(following, label) for _, following, label in found]


def _with(values: tuple[Any, ...], index: int, value: Any) -> tuple[Any, ...]:
    return (*values[:index], value, *values[index + 1 :])


def _path(came_from: dict[_Place, tuple[_Place, str] | None], place: _Place) -> list[str]:
    labels: list[str] = []
    while (step := came_from[place]) is not None:
        place, label = step
        labels.append(label)
    return labels[::-1]
