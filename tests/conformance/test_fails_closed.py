"""The suite itself: what is missing fails, what is broken is noticed, and nothing is skipped."""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from broken_engines import (
    NOTICED_BY,
    AppliesHalfABatch,
    CountsVersions,
    FindsEverybodysWords,
    FindsTheNewestOnlyNextTime,
    FindsWhatIsGone,
    IgnoresOwners,
    IgnoresVersions,
    KeepsDeletionsToItself,
    KeepsRewindsToItself,
    LetsTimeGoBack,
    ListsOldestFirst,
    LosesKeys,
    Nothing,
    ReplacesMetadataWhole,
    ReusesNumbers,
    SkipsARecord,
    TellsARecordTwice,
    Whole,
)
from hypothesis import Phase, settings

import statestore.conformance
from statestore.conformance import EngineContract
from statestore.conformance.capabilities import CAPABILITIES, OPTIONAL_CALLS, Capability
from statestore.conformance.faces import FACES, FaceName
from statestore.conformance.parts import CALLS
from statestore.engine import ChangePage, Engine, Outcome
from statestore.engines.memory import MemoryEngine

CASES = sorted(name for name in dir(EngineContract) if name.startswith("test_"))
MACHINE = "test_any_history_ends_as_the_oracle_says"
ATTRIBUTES = ("runs_in", "atomic_scope", "url")


class Hasty(EngineContract):
    """It is enough to know that a history fails; a shorter one is not looked for."""

    longest_wait = 3.0

    def machine_settings(self) -> settings:
        return settings(super().machine_settings(), phases=(Phase.generate,), report_multiple_bugs=False)


def fails(
    make: Callable[[], object],
    case: str,
    face: FaceName,
    place: Path,
    *,
    reopens: bool = False,
    offers: frozenset[Capability] = frozenset(),
) -> bool:
    """Whether a case fails for an engine."""
    members = {"reopens": reopens, "make_engine": lambda *_: make(), "offers": offers}
    return fails_in(type("Tried", (Hasty,), members), case, face, place)


def fails_on_disk(make: Callable[[Path], Engine], case: str, face: FaceName, place: Path) -> bool:
    """Whether a case fails for an engine that keeps a database and offers everything."""
    members = {"make_engine": lambda _, path: make(path.with_suffix(".db")), "offers": CAPABILITIES}
    return fails_in(type("Tried", (Hasty,), members), case, face, place)


def fails_in(tried: type[EngineContract], case: str, face: FaceName, place: Path) -> bool:
    """Whether a case of a contract fails."""
    place.mkdir(exist_ok=True)
    try:
        getattr(tried(), case)(face, place)
    except (Exception, pytest.fail.Exception):  # noqa: BLE001 - however it fails
        return True
    return False


class Void:
    """An engine that has every part, agrees to everything, and keeps nothing."""

    runs_in = "caller"
    atomic_scope = "store"
    url = "void:"

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def commit(self, batch: Any) -> list[Outcome]:
        return [Outcome(None, "1", tuple(range(1, 1 + len(getattr(change, "append", ()))))) for change in batch]

    async def read_session(self, session_id: str, **_: Any) -> None: ...

    async def list_sessions(self, query: Any) -> list[Any]:
        return []

    async def count_sessions(self, query: Any) -> int:
        return 0

    async def get_document(self, category: str, name: str, kind: str) -> None: ...

    async def list_documents(self, query: Any) -> list[Any]:
        return []

    async def list_categories(self, prefix: str = "") -> list[str]:
        return []

    async def check(self) -> list[Any]:
        return []

    async def search_sessions(self, query: Any) -> list[Any]:
        return []

    async def update_search_index(self) -> None: ...

    async def change_cursor(self) -> str:
        return ""

    async def read_changes(self, after: str, **_: Any) -> ChangePage:
        return ChangePage([], after)

    async def commit_group(self, batches: Any) -> list[list[Outcome] | Exception]:
        return [await self.commit(batch) for batch in batches]

    async def backup(self, to: str) -> None: ...


NEEDS_NO_MEMORY = {
    "test_every_attribute_of_the_contract_is_there",
    "test_every_method_of_the_contract_is_there",
    "test_the_url_tells_no_password",
    "test_what_it_offers_is_what_it_says",
    "test_only_memory_may_forget",
    "test_constructing_an_engine_touches_nothing",
    "test_an_empty_batch_is_no_work",
    "test_closing_twice_is_closing_once",
    "test_a_closed_store_says_so",
    "test_check_finds_nothing_wrong_with_what_it_wrote",
}
"""Promises about an engine's parts, which one that keeps nothing may keep."""


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("reopens", [False, True])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_engine_that_is_nothing_fails_every_case(tmp_path: Path, face: FaceName, reopens: bool) -> None:
    passed = [case for case in CASES if not fails(Nothing, case, face, tmp_path / case, reopens=reopens)]
    assert passed == []


def void_fails(case: str, face: FaceName, place: Path) -> bool:
    return fails(Void, case, face, place, reopens=True, offers=CAPABILITIES)


@pytest.mark.parametrize("face", FACES)
def test_an_engine_that_keeps_nothing_fails_whatever_is_about_keeping(tmp_path: Path, face: FaceName) -> None:
    passed = {case for case in CASES if not void_fails(case, face, tmp_path / case)}
    assert passed <= NEEDS_NO_MEMORY


@pytest.mark.parametrize("part", [*CALLS, *ATTRIBUTES])
def test_an_engine_that_lacks_one_part_fails(tmp_path: Path, part: str) -> None:
    def gone(_: object) -> Any:
        raise AttributeError(part)

    lacking = type("Lacking", (MemoryEngine,), {part: property(gone)})
    case = f"test_every_{'method' if part in CALLS else 'attribute'}_of_the_contract_is_there"
    assert fails(lacking, case, "async", tmp_path)


def test_every_part_of_the_contract_is_asked_for() -> None:
    parts = {name for name in vars(Engine) if not name.startswith("_")} | set(inspect.get_annotations(Engine))
    assert parts == {*CALLS, *ATTRIBUTES}


@pytest.mark.parametrize(("broken", "case"), NOTICED_BY.items(), ids=lambda value: getattr(value, "__name__", ""))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_broken_promise_is_noticed(tmp_path: Path, broken: type[Any], case: str) -> None:
    if issubclass(broken, Whole):
        assert not fails_on_disk(Whole, case, "plain", tmp_path / "whole"), "an engine that keeps it passes"
        assert fails_on_disk(broken, case, "plain", tmp_path / "broken")
        return
    assert not fails(MemoryEngine, case, "plain", tmp_path / "whole"), "an engine that keeps it passes"
    assert fails(broken, case, "async" if broken.runs_in == "loop" else "plain", tmp_path / "broken")


@pytest.mark.parametrize(
    "broken",
    [
        AppliesHalfABatch,
        CountsVersions,
        IgnoresOwners,
        IgnoresVersions,
        LetsTimeGoBack,
        ListsOldestFirst,
        LosesKeys,
        ReplacesMetadataWhole,
        ReusesNumbers,
    ],
)
def test_the_state_machine_alone_notices(tmp_path: Path, broken: type[MemoryEngine]) -> None:
    assert fails(broken, MACHINE, "plain", tmp_path)


@pytest.mark.parametrize(
    "broken",
    [
        FindsEverybodysWords,
        FindsTheNewestOnlyNextTime,
        FindsWhatIsGone,
        KeepsDeletionsToItself,
        KeepsRewindsToItself,
        SkipsARecord,
        TellsARecordTwice,
    ],
)
def test_the_state_machine_alone_notices_what_is_not_found_or_told(tmp_path: Path, broken: type[Whole]) -> None:
    assert fails_on_disk(broken, MACHINE, "plain", tmp_path)


OFFERED = {
    "search": "test_words_are_found_wherever_they_are",
    "watch": "test_every_record_is_told_once_and_in_order",
    "group": "test_each_batch_of_a_group_has_its_result",
    "several": "test_sessions_that_are_read_together_are_as_they_are_alone",
    "backup": "test_a_backup_holds_everything",
    "compact": "test_what_is_compacted_is_the_same_as_before",
    "wake": "test_a_change_wakes_who_waits_for_it",
    "point": "test_who_is_not_pointed_out_has_nothing_to_be_told",
    "repair": "test_a_repair_changes_nothing_that_is_sound",
}


@pytest.mark.parametrize("capability", sorted(CAPABILITIES))
@pytest.mark.parametrize("face", FACES)
def test_what_is_offered_must_be_declared_and_what_is_declared_offered(
    tmp_path: Path, face: FaceName, capability: Capability
) -> None:
    def make(_: object, place: Path) -> Engine:
        return Whole(place.with_suffix(".db"))

    def gone(_: object) -> Any:
        raise AttributeError

    for case in ("test_what_it_offers_is_what_it_says", OFFERED[capability]):
        whole = {"make_engine": make, "offers": CAPABILITIES}
        assert not fails_in(type("Tried", (Hasty,), whole), case, face, tmp_path / f"{case} whole")
        silent = {"make_engine": make, "offers": CAPABILITIES - {capability}}
        assert fails_in(type("Tried", (Hasty,), silent), case, face, tmp_path / f"{case} silent")
        assert not fails(MemoryEngine, case, face, tmp_path / f"{case} refused")
        assert fails(MemoryEngine, case, face, tmp_path / f"{case} claimed", offers=frozenset({capability}))
        for method in OPTIONAL_CALLS[capability]:
            lacking = type("Lacking", (Whole,), {method: property(gone)})
            assert fails_on_disk(lacking, case, face, tmp_path / f"{case} {method}")


def test_a_contract_offers_only_what_there_is() -> None:
    with pytest.raises(TypeError, match="offers"):
        type("Tried", (EngineContract,), {"offers": frozenset({"flying"})})


class Kept(MemoryEngine):
    """A memory engine that says it keeps things; two of them share what a place holds."""

    url = "kept:"

    def __init__(self, place: dict[str, Any]) -> None:
        super().__init__()
        self._lock = place.setdefault("lock", self._lock)
        self._sessions = place.setdefault("sessions", self._sessions)
        self._documents = place.setdefault("documents", self._documents)


class LosesWhatWasNotClosed(Kept):
    """Writes to the place only when it is closed."""

    def __init__(self, place: dict[str, Any]) -> None:
        super().__init__(place)
        self._place = place
        self._sessions, self._documents = copy.deepcopy(self._sessions), dict(self._documents)

    async def close(self) -> None:
        self._place.update(sessions=self._sessions, documents=self._documents)


class ForgetsWhatWasGivenOut(Kept):
    """Works the next number out anew when it is opened."""

    async def open(self) -> None:
        for session in self._sessions.values():
            session.next_seq = max((record.seq for record in session.records), default=0) + 1


class ForgetsKeys(Kept):
    """Knows only the keys that it has seen itself."""

    async def open(self) -> None:
        for session in self._sessions.values():
            session.seq_of_key.clear()


@pytest.mark.parametrize(
    ("engine", "case"),
    [
        (LosesWhatWasNotClosed, "test_crashing_keeps_everything"),
        (LosesWhatWasNotClosed, "test_two_engines_on_one_storage_see_each_other"),
        (ForgetsWhatWasGivenOut, "test_numbers_are_never_given_out_twice"),
        (ForgetsKeys, "test_keys_survive_reopening"),
        (MemoryEngine, "test_closing_keeps_everything"),
        (MemoryEngine, "test_only_memory_may_forget"),
    ],
)
@pytest.mark.parametrize("face", FACES)
def test_what_does_not_survive_is_noticed(
    tmp_path: Path, engine: type[MemoryEngine], case: str, face: FaceName
) -> None:
    place: dict[str, Any] = {}
    whole: dict[str, Any] = {}
    make = cast("Any", engine)
    is_keeping = issubclass(engine, Kept)
    assert not fails(lambda: Kept(whole), case, face, tmp_path / "whole", reopens=True)
    broken = (lambda: make(place)) if is_keeping else _called("kept:")
    reopens = case != "test_only_memory_may_forget"
    assert fails(broken, case, face, tmp_path / "broken", reopens=reopens)


def _called(url: str) -> Callable[[], MemoryEngine]:
    return type("Called", (MemoryEngine,), {"url": url})


def test_the_machine_notices_what_a_crash_loses(tmp_path: Path) -> None:
    held: dict[Path, dict[str, Any]] = {}

    class Tried(Hasty):
        def make_engine(self, place: Path) -> Engine:
            return LosesWhatWasNotClosed(held.setdefault(place, {}))

    with pytest.raises(AssertionError):
        getattr(Tried(), MACHINE)("plain", tmp_path)


def test_every_case_says_its_promise_and_none_can_be_skipped() -> None:
    for case in CASES:
        assert inspect.getdoc(getattr(EngineContract, case)), case
    for source in Path(statestore.conformance.__path__[0]).glob("*.py"):
        names = {node.attr for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.Attribute)}
        assert names.isdisjoint({"skip", "skipif", "xfail", "importorskip"}), source.name


def test_the_oracle_shares_no_code() -> None:
    for name in ("oracle", "double"):
        source = Path(statestore.conformance.__path__[0], f"{name}.py")
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("statestore"):
                assert node.module == "statestore.conformance.oracle"
    for source in Path(statestore.conformance.__path__[0]).glob("*.py"):
        assert "statestore.engines" not in source.read_text(), source.name


def test_a_contract_without_an_engine_fails(tmp_path: Path) -> None:
    class Tried(EngineContract):
        pass

    with pytest.raises(NotImplementedError):
        Tried().test_an_empty_batch_is_no_work("plain", tmp_path)
