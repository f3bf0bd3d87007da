"""The SQLite engine: whatever a power cut leaves of its files, what was acknowledged is there, and nothing in part."""

from __future__ import annotations

import gc
import random
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from soak.power.calls import Recording, fresh_disk
from soak.power.disk import Tree, key_of
from soak.power.events import Sync
from soak.power.histories import Step, first_steps, next_step
from soak.power.sqlite_calls import sqlite_calls
from soak.power.staging import in_memory, lay_out, quiet
from soak.power.views import view
from soak.proof import Proof, Round
from sqlite.sqlite_hooks import verdict
from statestore import StateStore, StoreUnavailable, UserMessage
from statestore.engines.sqlite import SqliteEngine
from statestore.engines.sqlite import upkeep as upkeep_module
from statestore.engines.sqlite.connecting import Journal

View = dict[str, object]


def _is_no_data(name: str) -> bool:
    """Whether a file beside a database only helps processes to take turns, and is made anew where it is missing."""
    return name.endswith(("-shm", "-gate", "-turn"))


@dataclass(frozen=True)
class Period:
    """Some of what was recorded, and what a cut within it may leave."""

    begin: int
    end: int
    what: str
    possible: tuple[View, ...]
    exists: bool
    seqs: Counter[str]


@dataclass
class Story:
    """One database from its beginning, opened and closed any number of times."""

    place: Path
    journal: Journal = "wal"
    way: str = "way/state.db"
    periods: list[Period] = field(default_factory=list[Period])
    first: int = 0
    """The first period that is to be cut."""

    def __post_init__(self) -> None:
        self.recording = Recording(self.place, _is_no_data)
        self._now: View = {"trash": []}
        self._exists = False
        self._seqs: Counter[str] = Counter()

    def engine(self) -> SqliteEngine:
        """An engine for this database."""
        return SqliteEngine(self.place / self.way, journal=self.journal)

    @contextmanager
    def opened(self) -> Iterator[StateStore]:
        """The store for the block; to open and to close it are parts of the story like any other."""
        with self.recording.running(), sqlite_calls().running(self.recording):
            begin = len(self.recording.events)
            self._engine = self.engine()
            store = StateStore.open(self._engine)
            self._tell(begin, "an opening", (self._now,))
            self._exists = True
            self._tell(len(self.recording.events), "a store that is open", (self._now,))
            yield store
            begin = len(self.recording.events)
            store.close()
            self._tell(begin, "a closing", (self._now,))

    def die_over(self, step: Step, dies_after: int) -> bool:
        """In a process of its own: begin something, and die; ``False`` if it comes to its end before."""
        with self.recording.running(), sqlite_calls().running(self.recording):
            store = StateStore.open(self.engine())
            self.recording.fuse = dies_after
            with suppress(StoreUnavailable):
                step.do(store)
            is_dead = self.recording.fuse < 0
            store.close()  # it cannot touch the disk any more
            gc.collect()  # nor may anything of it linger in memory that processes share
            Path(f"{self.place / self.way}-shm").unlink(missing_ok=True)
            self.recording.fuse = None
            return is_dead

    def do(self, store: StateStore, step: Step) -> None:
        """Do something, and have it acknowledged."""
        before, begin = self._now, len(self.recording.events)
        step.do(store)
        end = len(self.recording.events)
        self._now = view(self._engine, store, with_versions=True)
        self.periods.append(Period(begin, end, step.name, (before, self._now), self._exists, Counter(self._seqs)))
        for summary in store.list_sessions():
            for entry in store.timeline(summary.id, limit=1):
                self._seqs[summary.id] = max(self._seqs[summary.id], entry.seq)
        self._tell(end, f"{step.name}, acknowledged", (self._now,))

    def _tell(self, begin: int, what: str, possible: tuple[View, ...]) -> None:
        end = len(self.recording.events)
        self.periods.append(Period(begin, end, what, possible, self._exists, Counter(self._seqs)))

    def cuts(self, chance: random.Random, *, most: int, most_points: int) -> Iterator[tuple[Tree, Period]]:
        """States that a cut may leave around every flush, and at some points between."""
        disk = fresh_disk(self.recording)
        taken = 0
        for number, period in enumerate(self.periods):
            points = list(range(period.begin + 1, period.end + 1)) or [period.end]
            telling = {p for p in points if any(isinstance(e, Sync) for e in self.recording.events[p - 1 : p + 1])}
            others = [point for point in points[:-1] if point not in telling]
            chosen = telling | {points[-1], *chance.sample(others, min(most_points, len(others)))}
            for point in points:
                for moment in range(taken, point):
                    disk.take(moment, self.recording.events[moment])
                taken = max(taken, point)
                if point in chosen and number >= self.first:
                    for tree in disk.states(self.recording.root, period.begin, chance, most=most):
                        yield tree, period


class Judge:
    """Opens what a cut left, and holds it against what was promised."""

    def __init__(self, place: Path, story: Story, chance: random.Random) -> None:
        self._case = place / "case"
        self._story = story
        self._chance = chance
        self._judged: set[object] = set()

    @property
    def states(self) -> int:
        """How many were judged, all of them different."""
        return len(self._judged)

    def judge_all(self, *, most: int, most_points: int = 10**6) -> None:
        """Judge so many states at so many points of each part of the story."""
        with quiet():
            for tree, period in self._story.cuts(self._chance, most=most, most_points=most_points):
                self.judge(tree, period)

    def judge(self, tree: Tree, period: Period) -> None:
        """Raise if a store in this state is not as promised."""
        key = key_of(tree), id(period.possible), period.exists, frozenset(period.seqs.items())
        if key in self._judged:
            return
        self._judged.add(key)
        shutil.rmtree(self._case, ignore_errors=True)
        self._case.mkdir()
        lay_out(tree, self._case)
        try:
            self._check(self._case / self._story.way, period)
        except Exception as error:
            left = {path: content and len(content.body) for path, (_, content) in tree.items()}
            raise AssertionError(f"after a cut during {period.what}: {error}\nleft: {left}") from error

    def _check(self, path: Path, period: Period) -> None:
        engine = SqliteEngine(path, create=not period.exists, journal=self._story.journal, durability="relaxed")
        with StateStore.open(engine) as store:
            found = view(engine, store, with_versions=True)
            assert found in period.possible, _difference(found, period.possible)
            assert store.check() == []
            for summary in store.list_sessions(limit=1):
                (number,) = store.append(summary.id, UserMessage("after the cut"))
                assert number > period.seqs[summary.id], "a number came back"
            store.save_markdown("after", "the cut", "written")
            assert store.load_markdown("after", "the cut") == "written"
        assert verdict(path) == "ok"


def _difference(found: View, possible: tuple[View, ...]) -> str:
    lines = ["what is there was never promised"]
    for number, promised in enumerate(possible):
        for what in sorted(found.keys() | promised.keys()):
            if found.get(what) != promised.get(what):
                lines.append(
                    f"outcome {number}: {what}: {str(found.get(what))[:200]}, not {str(promised.get(what))[:200]}"
                )
    return "\n".join(lines)


@contextmanager
def often_written_back() -> Iterator[None]:
    """While this lasts, a log is written back when it is still short."""
    pages, commits = upkeep_module.PAGES_BETWEEN_CHECKPOINTS, upkeep_module.COMMITS_BETWEEN_CHECKPOINTS
    upkeep_module.PAGES_BETWEEN_CHECKPOINTS, upkeep_module.COMMITS_BETWEEN_CHECKPOINTS = 15, 1
    try:
        yield
    finally:
        upkeep_module.PAGES_BETWEEN_CHECKPOINTS, upkeep_module.COMMITS_BETWEEN_CHECKPOINTS = pages, commits


def tell(story: Story, chance: random.Random, *, steps: int) -> None:
    """Do so many things by chance, in a store that is closed and opened in between."""
    waiting = first_steps()
    number = 0
    with often_written_back():
        while number < steps:
            with story.opened() as store:
                for _ in range(chance.randrange(2, 6)):
                    story.do(store, waiting.pop(0) if waiting else next_step(store, chance, number))
                    number += 1


def _round(trial: Round) -> Mapping[str, int]:
    """A history of a few steps, cut around every flush and at some points between."""
    chance = trial.random("history")
    place = trial.ground.directory / "disk"
    place.mkdir()
    story = Story(place, journal=chance.choice(("wal", "wal", "rollback")))
    tell(story, chance, steps=8)
    story.recording.check_against_the_directory()
    with in_memory() as scratch:
        judge = Judge(scratch, story, trial.random("states"))
        judge.judge_all(most=4, most_points=4)
    return {"states": judge.states, "points": len(story.recording.events)}


POWER_SQLITE = Proof(
    name="power-sqlite",
    promise="Whatever a power cut leaves of a database, all that was acknowledged is there, whole and once.",
    engines=("sqlite",),
    round=_round,
    goal={"states": 100_000},
)
