"""What was done to a directory of files, what of it was acknowledged, and so what a cut may leave at each moment."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from soak.power.calls import Killed, Recording, fresh_disk
from soak.power.disk import Tree
from soak.power.histories import Step
from soak.power.staging import Cache, Visible, caches_in, is_cache, visible
from statestore import StateStore
from statestore.engines.files import FilesEngine


@dataclass(frozen=True)
class Period:
    """Some of what was recorded, and what a cut within it may leave."""

    begin: int
    end: int
    what: str
    possible: tuple[Visible, ...]
    """All that may be there: one of these, whole."""
    exists: bool
    """Whether the store had been opened: then it is there."""
    seqs: Counter[str]
    """The highest number that was acknowledged in each session."""


@dataclass
class Story:
    """One directory from its beginning, through any number of processes that open it, and close it or die."""

    place: Path
    """The directory that is watched; the store lies in it."""
    way: str = "state"
    """Where in it the store lies."""
    periods: list[Period] = field(default_factory=list[Period])
    caches: list[Cache] = field(default_factory=list[Cache])
    first: int = 0
    """The first period that is to be cut."""

    def __post_init__(self) -> None:
        self.root = self.place / self.way
        self.recording = Recording(self.place, is_cache)
        self._possible: tuple[Visible, ...] = (visible(self.root),)
        self._exists = self.root.exists()
        self._seqs: Counter[str] = Counter()
        self._lost: tuple[Visible, list[int]] | None = None
        """What was there before the death of a process, and the periods that end with it."""

    def open(self, *, dies_after: int | None = None) -> StateStore | None:
        """Open the store, or die on the way."""
        before = self._lost[0] if self._lost else visible(self.root)
        begin = len(self.recording.events)
        store = None
        try:
            with self._running(dies_after):
                self.engine = FilesEngine(str(self.root))
                store = StateStore.open(self.engine)
        except Killed:
            self._die(begin, "an opening that dies", before)
            return None
        after = visible(self.root)
        changed = _changed(before, after)
        either = _distinct((*self._possible, *_with(self._possible, changed, after)))
        self._tell(begin, "an opening", either)
        for place in self._lost[1] if self._lost else ():
            self.periods[place] = replace(self.periods[place], possible=either)
        # A batch whose writer died is made to its end by whoever opens. Of a single file, either is left.
        self._possible = (after,) if len(changed) > 1 else either
        self._exists, self._lost = True, None
        self._tell(len(self.recording.events), "a store that is open", self._possible)
        return store

    def do(self, store: StateStore, step: Step, *, dies_after: int | None = None) -> bool:
        """Do something and have it acknowledged, or die on the way: then whoever opens comes next."""
        before, begin = visible(self.root), len(self.recording.events)
        try:
            with self._running(dies_after):
                step.do(store)
        except Killed:
            self._die(begin, f"{step.name} that dies", before)
            return False
        after = visible(self.root)
        certain = _distinct(_with(self._possible, _changed(before, after) | {*(step.about or ())}, after))
        self._tell(begin, step.name, _distinct((*self._possible, *certain)))
        self._possible = certain
        self._note(store)
        self._tell(len(self.recording.events), f"{step.name}, acknowledged", certain)
        return True

    def close(self, store: StateStore) -> None:
        """Let go of it. That touches nothing."""
        with self._running(None):
            store.close()

    def _running(self, dies_after: int | None) -> AbstractContextManager[None]:
        self.recording.fuse = dies_after
        return self.recording.running()

    def _die(self, begin: int, what: str, before: Visible) -> None:
        self.recording.fuse = None
        periods = self._lost[1] if self._lost else []
        self._lost = before, [*periods, len(self.periods)]
        self._tell(begin, what, self._possible)

    def _tell(self, begin: int, what: str, possible: tuple[Visible, ...]) -> None:
        end = len(self.recording.events)
        self.periods.append(Period(begin, end, what, possible, self._exists, Counter(self._seqs)))

    def _note(self, store: StateStore) -> None:
        """Let the caches catch up, and keep them; note the numbers that were given out."""
        for summary in store.list_sessions():
            for entry in store.timeline(summary.id, limit=1):
                self._seqs[summary.id] = max(self._seqs[summary.id], entry.seq)
        self.caches.append(caches_in(self.root))

    def cuts(self, chance: random.Random, *, most: int) -> Iterator[tuple[Tree, Period]]:
        """States that a cut may leave at every point of the story, at most so many a point, with what they may be."""
        disk = fresh_disk(self.recording)
        locks = self.recording.node(f"{self.way}/.statestore/locks")
        disk.dull = {locks} if locks is not None else set()
        taken = 0
        for number, period in enumerate(self.periods):
            for point in range(period.begin + 1, period.end + 1) or (period.end,):
                for moment in range(taken, point):
                    disk.take(moment, self.recording.events[moment])
                taken = max(taken, point)
                if number < self.first:
                    continue
                since = period.begin if period.end > period.begin else self._begin_before(period)
                for tree in disk.states(self.recording.root, since, chance, most=most):
                    yield tree, period

    def _begin_before(self, period: Period) -> int:
        """When that began which was just acknowledged."""
        return max((other.begin for other in self.periods if other.begin < period.end), default=0)


def _changed(before: Visible, after: Visible) -> set[str]:
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def _with(possible: Iterable[Visible], paths: set[str], now: Visible) -> list[Visible]:
    """The same, with these files as they are now."""
    new = {path: now[path] for path in paths if path in now}
    return [{path: body for path, body in files.items() if path not in paths} | new for files in possible]


def _distinct(several: Iterable[Visible]) -> tuple[Visible, ...]:
    found: list[Visible] = []
    for files in several:
        if files not in found:
            found.append(files)
    return tuple(found)
