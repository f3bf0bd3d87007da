"""What remains of changes that are not flushed: all ways if they are few, or else likely ones and some by chance."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from math import prod
from typing import Final, TypeVar

from soak.power.events import Content, Filling, Write

T = TypeVar("T")

SECTOR: Final = 512
FEW: Final = 8
"""Up to so many changes that are not on the disk, all ways to lose some of them are tried."""

Remaining = Callable[[], Content]


def ways_to_remain(old: Content, changes: Sequence[Filling], chance: random.Random) -> list[Remaining]:
    """What may be left of changes to a file that was not flushed, worked out when it is asked for."""

    def kept(choice: tuple[bool, ...]) -> Content:
        return after_all(old, [change for change, is_kept in zip(changes, choice, strict=True) if is_kept])

    def cut(place: int) -> Content:
        whole = after_all(old, changes)
        return Content(whole.body[:place], whole.mtime_ns)

    def holed(place: int) -> Content:
        whole = after_all(old, changes)
        hole = old.body[place : place + SECTOR].ljust(SECTOR, b"\0")[: max(0, len(whole.body) - place)]
        return Content(whole.body[:place] + hole + whole.body[place + SECTOR :], whole.mtime_ns)

    def size_alone() -> Content:
        size = len(after_all(old, changes).body)
        return Content(old.body[:size].ljust(size, b"\0"), old.mtime_ns)

    ways: list[Remaining] = [partial(kept, choice) for choice in ways_to_keep(len(changes), chance)]
    places = sorted({place for change in changes for place in _sectors(change)})
    for place in chance.sample(places, FEW) if len(places) > FEW else places:
        ways += [partial(holed, place)] if place < len(old.body) else [partial(holed, place), partial(cut, place)]
    return [*ways, size_alone, partial(kept, (False,) * len(changes))]


def _sectors(change: Filling) -> range:
    """The sectors that a change writes, by where they begin."""
    if not isinstance(change, Write):
        return range(0)
    return range(change.offset // SECTOR * SECTOR, change.offset + len(change.data), SECTOR)


def ways_to_keep(count: int, chance: random.Random) -> list[tuple[bool, ...]]:
    """Ways to keep some of so many changes, from all to none: all ways if they are few, or else likely ones and some
    by chance.
    """
    if count <= FEW:
        return list(product((True, False), repeat=count))
    begun = [(True,) * kept + (False,) * (count - kept) for kept in range(count, -1, -1)]
    without_one = [tuple(number != lost for number in range(count)) for lost in range(count)]
    any_way = [tuple(chance.random() < 0.5 for _ in range(count)) for _ in range(2**FEW)]
    return [begun[0], *without_one, *any_way, *begun[1:]]


def products(variants: list[list[Remaining]], chance: random.Random) -> list[tuple[Remaining, ...]]:
    """All combinations; or, of very many, those of all first ones, each other one alone, and some by chance."""
    count = prod(len(several) for several in variants)
    if count <= 2**FEW:
        return list(product(*variants))
    first = tuple(several[0] for several in variants)
    alone = [
        (*first[:place], other, *first[place + 1 :]) for place, several in enumerate(variants) for other in several[1:]
    ]
    return [first, *alone, *(tuple(chance.choice(several) for several in variants) for _ in range(2**FEW))]


def some_of(several: list[T], chance: random.Random, most: int) -> list[T]:
    """So many of them at most, with the first and the last."""
    if len(several) <= most:
        return several
    return [several[0], *chance.sample(several[1:-1], most - 2), several[-1]]


def after_all(old: Content, changes: Sequence[Filling]) -> Content:
    for change in changes:
        old = old.after(change)
    return old
