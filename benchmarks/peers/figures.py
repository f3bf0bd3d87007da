"""What a run gives: how much was done, what each store needed for it, and where."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec


class Effort(msgspec.Struct, frozen=True):
    """How much the stores of a contest do, and how often."""

    lengths: tuple[int, ...]
    """So many exchanges are in a session before one more is appended."""
    loaded: tuple[int, ...]
    """Sessions of these lengths are loaded; each is one of ``lengths``."""
    listed: tuple[int, ...]
    """The listing is of stores with so many sessions of one exchange."""
    newest: int | None
    """So many of them are asked for; None: all."""
    appends: int
    loads: int
    listings: int
    rounds: int = 0
    """How often many tasks append at once; 0: never."""
    kept_turns: int = 0
    """After so many exchanges of one session, look how much of the disk it takes; 0: do not."""
    warm: int = 2
    """Turns that do not count, before those that do."""


class Figures(msgspec.Struct):
    """What one store needed, in seconds; what it could not do has a reason in ``errors`` or is not there."""

    name: str
    version: str = ""
    durability: str = ""
    used: str = ""
    face: str = ""
    append: dict[int, float] = {}
    load: dict[int, float] = {}
    listing: dict[int, float] = {}
    exchanges_per_second: float | None = None
    failed_tasks: int = 0
    failed_because: str = ""
    times_the_text: float | None = None
    """How many times its text a session takes on the disk."""
    errors: dict[str, str] = {}

    @property
    def is_ours(self) -> bool:
        return self.name.startswith("statestore")


class Result(msgspec.Struct):
    """All figures of one contest."""

    engine: str
    about: str
    effort: Effort
    stores: list[Figures]


class Run(msgspec.Struct):
    """All figures of one run, and where they come from."""

    date: str
    machine: str
    minutes: float = 0
    contests: list[Result] = []
    adapters: list[Result] = []
    """A contest for each framework, between its own stores and ours under its adapter."""
    growth: Result | None = None
    """LangGraph's threads: the disk that they take, and a turn in a long one."""

    @property
    def results(self) -> list[Result]:
        return [*self.contests, *self.adapters, *([self.growth] if self.growth else [])]

    @property
    def stores(self) -> Iterator[Figures]:
        return (store for result in self.results for store in result.stores)
