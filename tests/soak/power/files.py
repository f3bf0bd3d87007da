"""The files engine: whatever a power cut leaves of it, what was acknowledged is there, and nothing in part."""

from __future__ import annotations

import random
import shutil
from collections.abc import Mapping
from pathlib import Path

from processes.contents import leftovers
from soak.power.disk import Tree, key_of
from soak.power.histories import first_steps, next_step
from soak.power.staging import Visible, in_memory, lay_out, lay_out_caches, lay_out_files, quiet, visible
from soak.power.story import Period, Story
from soak.power.views import view
from soak.proof import Proof, Round
from statestore import StateStore, UserMessage
from statestore.engines.files import FilesEngine

View = dict[str, object]


class Judge:
    """Opens what a cut left, and holds it against what was promised."""

    def __init__(self, place: Path, story: Story, chance: random.Random) -> None:
        self._place = place
        self._story = story
        self._chance = chance
        self._views: dict[frozenset[tuple[str, bytes]], View] = {}
        self._judged: set[object] = set()

    @property
    def states(self) -> int:
        """How many were judged, all of them different."""
        return len(self._judged)

    def judge_all(self, *, most: int = 10**6) -> None:
        """Judge all states of the story, or so many at each point."""
        with quiet():
            for tree, period in self._story.cuts(self._chance, most=most):
                self.judge(tree, period)

    def judge(self, tree: Tree, period: Period) -> None:
        """Raise if a store in this state is not as promised."""
        key = key_of(tree), id(period.possible), period.exists, frozenset(period.seqs.items())
        if key in self._judged:
            return
        self._judged.add(key)
        case = self._empty("case")
        inodes = lay_out(tree, case)
        root = case / self._story.way
        if self._story.caches:
            lay_out_caches(self._chance.choice(self._story.caches), root, inodes, self._chance)
        try:
            self._check(root, period)
        except Exception as error:
            raise AssertionError(f"after a cut during {period.what}: {error}\nleft: {sorted(tree)}") from error

    def _check(self, root: Path, period: Period) -> None:
        engine = FilesEngine(str(root), create=not period.exists, durability="relaxed")
        with StateStore.open(engine) as store:
            assert leftovers(root) == [], "something is left over after opening"
            found = visible(root)
            assert found in period.possible, _difference(found, period.possible)
            assert _seen(engine, store) == self._expected(found)
            self._go_on(store, period)

    def _go_on(self, store: StateStore, period: Period) -> None:
        """The store takes new words, and gives out no number twice."""
        for summary in store.list_sessions(limit=1):
            (number,) = store.append(summary.id, UserMessage("after the cut"))
            assert number > period.seqs[summary.id], "a number came back"
        store.save_markdown("after", "the cut", "written")
        assert store.load_markdown("after", "the cut") == "written"

    def _expected(self, files: Visible) -> View:
        """What a store shows that holds these files, and has no caches."""
        key = frozenset(files.items())
        if key not in self._views:
            root = self._empty("expected")
            lay_out_files(files, root)
            engine = FilesEngine(str(root), durability="relaxed")
            with StateStore.open(engine) as store:
                self._views[key] = _seen(engine, store)
        return self._views[key]

    def _empty(self, name: str) -> Path:
        path = self._place / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        return path


def _seen(engine: FilesEngine, store: StateStore) -> View:
    return view(engine, store, with_versions=False) | {"problems": [problem.where for problem in store.check()]}


def _difference(found: Visible, possible: tuple[Visible, ...]) -> str:
    lines = ["what is there was never promised"]
    for number, files in enumerate(possible):
        for path in sorted(found.keys() | files.keys()):
            if found.get(path) != files.get(path):
                lines.append(f"outcome {number}: {path}: {_short(found.get(path))}, not {_short(files.get(path))}")
    return "\n".join(lines)


def _short(body: bytes | None) -> str:
    return "nothing" if body is None else repr(body if len(body) < 60 else body[:25] + b"..." + body[-25:])


def _round(trial: Round) -> Mapping[str, int]:
    """A history of a few steps, with processes that die, cut at every point."""
    chance = trial.random("history")
    place = trial.ground.directory / "disk"
    place.mkdir()
    story = Story(place, "way/to/state")
    told = tell(story, chance, steps=6)
    story.recording.check_against_the_directory()
    with in_memory() as scratch:
        judge = Judge(scratch, story, trial.random("states"))
        judge.judge_all(most=6)
    return {"states": judge.states, "operations": told, "points": len(story.recording.events)}


def tell(story: Story, chance: random.Random, *, steps: int) -> int:
    """Do so many things by chance, in processes of which some die; how many were acknowledged."""
    told = 0
    store = story.open(dies_after=chance.choice((None, chance.randrange(12))))
    waiting = first_steps()
    for number in range(steps):
        while store is None:
            store = story.open(dies_after=chance.choice((None, None, chance.randrange(12))))
        step = waiting.pop(0) if waiting else next_step(store, chance, number)
        dies_after = chance.randrange(20) if chance.random() < 0.3 else None
        if story.do(store, step, dies_after=dies_after):
            told += 1
            continue
        store = None
        if step.about is not None:
            waiting.insert(0, step)  # not acknowledged: so it is done again
    while store is None:
        store = story.open()
    story.close(store)
    return told


POWER_FILES = Proof(
    name="power-files",
    promise="Whatever a power cut leaves of a directory, all that was acknowledged is there, whole and once.",
    engines=("files",),
    round=_round,
    goal={"states": 100_000},
)
