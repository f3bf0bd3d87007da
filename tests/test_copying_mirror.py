"""`copy_store(…, mirror=True)`: the target becomes what the source is, and loses nothing that the source may have."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from copy_targets import OneByOne, contents_of
from faces import Face
from servers import postgres, valkey
from statestore import (
    CopyIncomplete,
    CopyRefused,
    CopyReport,
    CorruptDocument,
    InvalidValue,
    StateStore,
    StoreUnavailable,
    UserMessage,
)
from statestore.conformance.changes import agent, appended, created, event, moment, truncated, user
from statestore.copying import CopyProgress, async_copy_store, copy_store, packing, walking, windows
from statestore.copying.calling import compare_stores
from statestore.copying.standing import PROP
from statestore.engine import (
    Batch,
    Change,
    ChangeSession,
    DeleteDocument,
    DeleteSession,
    Engine,
    Outcome,
    PutDocument,
)
from statestore.engines.files import FilesEngine
from statestore.engines.memory import MemoryEngine
from statestore.engines.sqlite import SqliteEngine
from statestore.host import step
from statestore.stored import Document, DocumentKind, StoredSession

LONG = tuple(user(f"u{number}", number) for number in range(1, 9))
SOURCE: Sequence[Change] = (
    created("another", user("hi"), agent("hello", 2)),
    created("edited", *LONG[:3], user("said otherwise", 4), *LONG[4:], agent("and more", 9)),
    created("grown", *LONG),
    appended("grown", agent("more", 9), at=60),
    created("header", user("hi"), fields={"project_id": "p"}, metadata={"z": b"1"}),
    created("new", *LONG),
    created("rewound", *LONG),
    truncated("rewound", 6, at=60),
    created("same", *LONG),
    created("shorter", *LONG[:2]),
    PutDocument("notes", "changed", "md", b"new"),
    PutDocument("notes", "new", "md", b"new"),
    PutDocument("notes", "same", "bin", b"\0\xff"),
    PutDocument("notes/deep", "changed", "json", b"[1]"),
)
TARGET: Sequence[Change] = (
    created("another", user("hi"), user_id="bob"),
    created("edited", *LONG, event("t", 1, 9)),
    created("gone", user("hi")),
    created("gone long", *LONG),
    created("grown", *LONG[:4]),
    created("header", user("hi"), fields={"project_id": "p"}, metadata={"z": b"1"}),
    ChangeSession("header", moment(60), set_metadata={"z": b"2"}),
    created("rewound", *LONG[:6]),
    created("same", *LONG),
    created("shorter", *LONG),
    PutDocument("notes", "changed", "md", b"old"),
    PutDocument("notes", "gone", "md", b"old"),
    PutDocument("notes", "same", "bin", b"\0\xff"),
    PutDocument("notes/deep", "changed", "json", b"[1 ]"),
    PutDocument("over", "gone", "md", b"old"),
)
REMOVED = ["session gone", "session gone long", "document notes/gone.md", "document over/gone.md"]
REPLACED = ["session another", "session edited", "session header", "session shorter"]
OVERWRITTEN = ["document notes/changed.md", "document notes/deep/changed.json"]


def filled(engine: Engine, changes: Iterable[Change]) -> Any:
    step(engine.open())
    for change in changes:
        step(engine.commit([change]))
    return engine


def source_engine(engine: Engine | None = None) -> Any:
    return filled(engine or MemoryEngine(), SOURCE)


class Kept(MemoryEngine):
    """Stays open, notes what is committed, and can have something happen before a commit."""

    def __init__(self, before: Callable[[Kept, Batch], None] = lambda *_: None) -> None:
        super().__init__()
        self._before = before
        self.batches: list[Batch] = []

    async def close(self) -> None:
        """It is looked at afterwards."""

    async def commit(self, batch: Batch) -> list[Outcome]:
        self._before(self, batch)
        self.batches.append(batch)
        return await super().commit(batch)

    def write(self, change: Change) -> None:
        """As somebody else would."""
        step(super().commit([change]))


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long sessions in parts of three records, two changes in a commit, pages of two."""
    monkeypatch.setattr(windows, "WINDOW_RECORDS", 3)
    monkeypatch.setattr(packing, "PACK_CHANGES", 2)
    monkeypatch.setattr(walking, "PAGE", 2)


# -- the target becomes the same


TARGETS: Mapping[str, Callable[[Path, str], str]] = {
    "memory": lambda *_: "memory:",
    "files": lambda place, _: f"file:{place / 'target'}",
    "sqlite": lambda place, _: f"sqlite:{place / 'target.db'}",
    "postgres": lambda _, name: f"{postgres.shared_url()}?schema={name}",
    "valkey": lambda _, name: f"{valkey.shared_url()}?prefix={name}",
    "valkey-cluster": lambda _, name: f"{valkey.shared_cluster().url}&prefix={name}",
}


def copied(face: Face, source: Any, target: Any, **options: Any) -> CopyReport:
    """Copy in one face or the other."""
    if face.name == "plain":
        return copy_store(source, target, **options)
    inner = [getattr(store, "_store", store) for store in (source, target)]
    return face._runner.run(async_copy_store(*inner, **options))  # type: ignore[union-attr]


@pytest.mark.parametrize("is_in_parts", [False, True])
@pytest.mark.parametrize("kind", TARGETS)
def test_the_target_becomes_what_the_source_is(
    request: pytest.FixtureRequest, face: Face, tmp_path: Path, kind: str, *, is_in_parts: bool
) -> None:
    if is_in_parts:
        request.getfixturevalue("small_parts")
    target = face.open(TARGETS[kind](tmp_path, f"mirror_{time.time_ns()}"), durability="relaxed")
    copied(face, filled(Kept(), TARGET), target)
    report = copied(face, source_engine(Kept()), target, mirror=True)
    assert report.digest == copy_store(source_engine(), MemoryEngine()).digest
    assert (report.sessions, report.documents, report.skipped) == (8, 4, 2)
    assert (report.replaced, report.removed) == (len(REPLACED) + len(OVERWRITTEN), len(REMOVED))
    assert [each.where for each in report.differences] == REPLACED + OVERWRITTEN + REMOVED
    copied(face, target, back := Kept())
    assert contents_of(back) == contents_of(source_engine())
    again = copied(face, source_engine(Kept()), target, mirror=True)
    assert (again.digest, again.skipped, again.replaced, again.removed) == (report.digest, 12, 0, 0)
    assert again.differences == ()


def test_a_store_in_use_is_moved_by_copying_it_twice(tmp_path: Path) -> None:
    with StateStore.open(tmp_path / "state.db") as store:
        for session_id in ("kept", "pruned", "rewound", "thrown", "restored"):
            store.append(store.get_or_create_session("alice", session_id).id, *map(UserMessage, "abc"))
        for session_id in ("restored", "emptied"):
            store.get_or_create_session("alice", session_id)
            store.delete_session(session_id, trash_hours=1)
        store.save_json("notes", "plan", {"steps": 1})
        copy_store(store, tmp_path / "copy")
        store.delete_session("pruned")
        store.rewind_session("rewound", to=1)
        store.append("rewound", UserMessage("otherwise"))
        store.restore_session("restored")
        store.empty_trash()
        store.delete_session("thrown", trash_hours=1)
        store.save_json("notes", "plan", {"steps": 2})
        with pytest.raises(CopyRefused, match="mirror=True"):
            copy_store(store, tmp_path / "copy")
        report = copy_store(store, tmp_path / "copy", mirror=True)
        assert report.digest == copy_store(store, MemoryEngine()).digest
        with StateStore.open(tmp_path / "copy") as copy:
            assert copy.list_trash() == store.list_trash()
            assert [each.session.id for each in copy.list_trash()] == ["thrown"]
            assert copy.restore_session("thrown").user_messages[0].content == "a"
            assert copy.load_json("notes", "plan") == {"steps": 2}


def test_a_target_that_is_not_there_is_made(tmp_path: Path) -> None:
    source = source_engine(Kept())
    report = copy_store(source, tmp_path / "target.db", mirror=True)
    assert (report.sessions, report.skipped, report.replaced, report.removed) == (8, 0, 0, 0)


def test_a_plain_copy_replaces_and_removes_nothing() -> None:
    source, target = source_engine(Kept()), filled(Kept(), [TARGET[2]])
    report = copy_store(source, target, into_existing=True)
    assert (report.replaced, report.removed, report.differences) == (0, 0, ())


def test_progress_is_told_while_things_are_removed() -> None:
    target = filled(Kept(), [*(created(f"s{number:03}") for number in range(250)), TARGET[7]])
    told: list[CopyProgress] = []
    report = copy_store(source_engine(), target, mirror=True, progress=told.append)
    assert report.removed == 250
    assert [len(batch) for batch in target.batches if isinstance(batch[0], DeleteSession)] == [100, 100, 50]
    assert list(dict.fromkeys(each.phase for each in told)) == ["comparing", "copying", "verifying"]
    assert {each.sessions_in_all for each in told if each.phase == "comparing"} == {251}
    for phase in ("comparing", "copying"):
        counts = [each.sessions for each in told if each.phase == phase]
        assert counts == sorted(counts)


def test_what_the_source_lists_is_not_read_to_find_what_it_lacks() -> None:
    class Counting(Kept):
        reads: Counter[str] = Counter()

        async def read_session(self, session_id: str, **window: Any) -> StoredSession | None:
            self.reads[session_id] += 1
            return await super().read_session(session_id, **window)

    source, target = source_engine(Counting()), Kept()
    copy_store(source, target)
    Counting.reads.clear()
    copy_store(source, target, mirror=True)
    assert set(Counting.reads.values()) == {2}, "to compare, and to verify"


# -- what the source may have stays


def mirrored_but_for(source: Any, target: Any, *places: str) -> CopyIncomplete:
    """The error of a mirror that leaves some items of the target as they are, and does all else."""
    before = contents_of(target)
    with pytest.raises(CopyIncomplete, match="cannot be read from") as caught:
        copy_store(source, target, mirror=True)
    assert sorted(each.where for each in caught.value.differences) == sorted(places)
    assert "written to" not in str(caught.value)
    after = contents_of(target)
    for place in places:
        assert after[place] == before[place]
    return caught.value


@pytest.mark.parametrize("damage", [b"", b"{", b'{"id": "other"}', b"\xff"])
def test_a_session_that_is_damaged_in_the_source_and_not_listed_stays(tmp_path: Path, damage: bytes) -> None:
    source, target = source_engine(FilesEngine(str(tmp_path / "source"))), filled(Kept(), TARGET)
    step(source.close())
    for name in ("edited", "same"):
        (tmp_path / f"source/sessions/{name}.json").write_bytes(damage)
    error = mirrored_but_for(tmp_path / "source", target, "session edited", "session same")
    assert error.report.removed == len(REMOVED)
    assert (error.report.sessions, error.report.documents) == (6, 4)


@pytest.mark.parametrize("is_in_parts", [False, True])
@pytest.mark.parametrize(
    "damaging",
    [
        "UPDATE records SET body = '{' WHERE body LIKE '%and more%'",
        "UPDATE sessions SET updated = 'then' WHERE id = 'edited'",
        "INSERT INTO extras (number, metadata) SELECT number, '[' FROM sessions WHERE id = 'edited'",
    ],
    ids=["a record", "a field", "metadata"],
)
def test_a_session_that_differs_stays_if_the_sources_is_damaged_somewhere(
    request: pytest.FixtureRequest, tmp_path: Path, damaging: str, *, is_in_parts: bool
) -> None:
    if is_in_parts:
        request.getfixturevalue("small_parts")
    step(source_engine(SqliteEngine(tmp_path / "source.db")).close())
    with closing(sqlite3.connect(tmp_path / "source.db")) as connection, connection:
        assert connection.execute(damaging).rowcount == 1
    mirrored_but_for(tmp_path / "source.db", filled(Kept(), TARGET), "session edited")


def test_documents_that_are_damaged_in_the_source_stay() -> None:
    class Damaged(MemoryEngine):
        async def get_document(self, category: str, name: str, kind: DocumentKind) -> Document | None:
            if name in ("changed", "same"):
                raise CorruptDocument(f"{category}/{name}.{kind} cannot be read")
            return await super().get_document(category, name, kind)

    places = ["document notes/changed.md", "document notes/same.bin", "document notes/deep/changed.json"]
    mirrored_but_for(source_engine(Damaged()), filled(Kept(), TARGET), *places)


def test_a_document_that_no_listing_shows_because_it_is_a_link_stays(tmp_path: Path) -> None:
    step(source_engine(FilesEngine(str(tmp_path / "source"))).close())
    (tmp_path / "source/notes/gone.md").symlink_to("same.bin")
    mirrored_but_for(tmp_path / "source", filled(Kept(), TARGET), "document notes/gone.md")


def test_nothing_goes_if_the_source_fails(tmp_path: Path) -> None:
    class Failing(MemoryEngine):
        async def read_session(self, session_id: str, **window: Any) -> StoredSession | None:
            raise StoreUnavailable("the connection is lost")

        async def get_document(self, category: str, name: str, kind: DocumentKind) -> Document | None:
            raise StoreUnavailable("the connection is lost")

    target = filled(Kept(), TARGET)
    target.batches.clear()
    with pytest.raises(StoreUnavailable):
        copy_store(source_engine(Failing()), target, mirror=True)
    assert target.batches == []


@pytest.mark.parametrize("changes", [(), [created("elsewhere"), PutDocument("notes", "elsewhere", "md", b"")]])
def test_a_source_that_would_leave_nothing_of_the_target_is_refused(face: Face, changes: Sequence[Change]) -> None:
    source, target = filled(Kept(), changes), filled(Kept(), TARGET)
    before = contents_of(target)
    with pytest.raises(CopyRefused, match=r"has nothing of what .* holds"):
        copied(face, source, target, mirror=True)
    assert contents_of(target) == before
    copied(face, source, empty := Kept(), mirror=True)
    assert contents_of(empty) == contents_of(source)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("common", [created("same", *LONG), PutDocument("notes", "same", "bin", b"another")])
def test_one_thing_in_common_is_enough(common: Change) -> None:
    source, target = filled(Kept(), [common]), filled(Kept(), TARGET)
    copy_store(source, target, mirror=True)
    assert contents_of(target) == contents_of(source)


def test_files_that_no_store_has_made_are_not_removed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    copy_store(source_engine(), target)
    foreign = target / ".statestore.md" / "settings.json"
    foreign.parent.mkdir()
    foreign.write_text("{}")
    (target / "notes" / "gone.md").write_text("of the store")
    with pytest.raises(CopyRefused, match="no store has made") as refused:
        copy_store(source_engine(), target, mirror=True)
    assert [each.where for each in refused.value.differences] == ["document .statestore.md/settings.json"]
    assert foreign.exists()
    assert (target / "notes" / "gone.md").exists()
    foreign.unlink()
    assert copy_store(source_engine(), target, mirror=True).removed == 1


@pytest.mark.parametrize("source", ["inner", "inner/state.db", "inner/state.bin"])
def test_a_source_among_the_targets_files_is_not_removed(face: Face, source: str, tmp_path: Path) -> None:
    outer, inner = tmp_path / "outer", tmp_path / "outer" / source
    copy_store(source_engine(), outer)
    inner.parent.mkdir(exist_ok=True)
    url = f"sqlite:{inner}" if "." in source else str(inner)
    copy_store(source_engine(), url)
    before = sorted(path for path in outer.rglob("*") if ".statestore" not in path.parts)
    with pytest.raises(InvalidValue, match="is a part of the store"):
        copied(face, url, outer, mirror=True)
    with pytest.raises(InvalidValue, match="is a part of the store"):
        compare_stores(url, outer)
    assert sorted(path for path in outer.rglob("*") if ".statestore" not in path.parts) == before
    assert copy_store(url, tmp_path / "elsewhere").digest == copy_store(source_engine(), MemoryEngine()).digest


def test_a_mirror_cannot_leave_alone_what_only_the_target_has(face: Face, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="choose one"):
        copied(face, tmp_path / "source.db", tmp_path / "target.db", mirror=True, into_existing=True)
    assert os.listdir(tmp_path) == []


def test_what_the_target_cannot_hold_is_named() -> None:
    def refuse(_: Kept, batch: Batch) -> None:
        if any(b"otherwise" in record.body for change in batch for record in getattr(change, "append", ())):
            raise InvalidValue("too odd")

    target = Kept(refuse)
    for change in TARGET:
        target.write(change)
    with pytest.raises(
        CopyIncomplete, match=r"session edited: too odd.*in the place of these was removed: .*edited"
    ) as caught:
        copy_store(source_engine(), target, mirror=True)
    assert [each.where for each in caught.value.differences] == ["session edited"]


# -- what somebody writes meanwhile stays


class KeptCluster(OneByOne, Kept):
    """The same, of one item at a time."""


@pytest.mark.parametrize("kind", [Kept, KeptCluster])
@pytest.mark.parametrize(
    ("place", "written"),
    [
        ("session gone", appended("gone", user("meanwhile", 99), at=99)),
        ("session edited", appended("edited", user("meanwhile", 99), at=99)),
        ("document notes/gone.md", PutDocument("notes", "gone", "md", b"meanwhile")),
        ("document notes/changed.md", PutDocument("notes", "changed", "md", b"meanwhile")),
    ],
)
def test_what_is_written_to_the_target_meanwhile_is_not_lost(kind: type[Kept], place: str, written: Change) -> None:
    changed = PutDocument | DeleteDocument | DeleteSession

    def is_about_it(change: Change) -> bool:
        name = change.id if isinstance(change, DeleteSession) else f"{change.category}/{change.name}.{change.kind}"  # type: ignore[union-attr]
        return place.endswith(f" {name}")

    is_written = False

    def write_first(engine: Kept, batch: Batch) -> None:
        nonlocal is_written
        if not is_written and any(isinstance(change, changed) and is_about_it(change) for change in batch):
            is_written = True
            engine.write(written)

    target = kind(write_first)
    for change in TARGET:
        target.write(change)
    source = source_engine(Kept())
    with pytest.raises(CopyRefused, match="somebody else writes") as caught:
        copy_store(source, target, mirror=True)
    assert [each.where for each in caught.value.differences] == [place]
    held = contents_of(target)[place]
    assert held == b"meanwhile" if isinstance(held, bytes) else b"meanwhile" in held[3][-1].body
    copy_store(source, target, mirror=True)
    assert contents_of(target) == contents_of(source)


def test_a_plain_copy_leaves_a_session_alone_that_became_another_since_it_was_compared() -> None:
    source, target = filled(Kept(), [created("s", *LONG)]), Kept()
    copy_store(source, target)
    before = contents_of(target)

    def replace(progress: CopyProgress) -> None:
        if progress.phase == "comparing":
            source.write(DeleteSession("s"))
            source.write(created("s", *LONG, user_id="bob"))

    with pytest.raises(CopyIncomplete, match="written to while they were being copied: session s"):
        copy_store(source, target, progress=replace)
    assert contents_of(target) == before


# -- interrupted, and run again


def engine_named(kind: str, place: Path) -> Engine:
    if kind == "sqlite":
        return SqliteEngine(place / "target.db", durability="relaxed")
    return FilesEngine(str(place / "target"), durability="relaxed") if kind == "files" else MemoryEngine()


class Interrupted:
    """Passes everything on to an engine; one of its commits fails, before it is made or after."""

    def __init__(self, engine: Engine, fail_at: int = 0, *, after: bool = False) -> None:
        self._engine = engine
        self._left = fail_at
        self._after = after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def close(self) -> None:
        """The engine is used again."""

    async def commit(self, batch: Batch) -> list[Outcome]:
        self._left -= 1
        if self._left == 0 and not self._after:
            raise StoreUnavailable("interrupted before the commit")
        outcomes = await self._engine.commit(batch)
        if self._left == 0:
            raise StoreUnavailable("interrupted after the commit")
        return outcomes


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("kind", ["memory", "sqlite", "files"])
def test_a_mirror_that_was_interrupted_at_any_commit_ends_the_same(tmp_path: Path, kind: str, *, after: bool) -> None:
    source = source_engine(Kept())
    ours, old = contents_of(source), contents_of(filled(MemoryEngine(), TARGET))
    number = 0
    while True:
        number += 1
        (tmp_path / str(number)).mkdir()
        engine: Any = filled(engine_named(kind, tmp_path / str(number)), TARGET)
        try:
            copy_store(source, Interrupted(engine, number, after=after), mirror=True)  # type: ignore[arg-type]
        except StoreUnavailable:
            pass
        else:
            break
        for place, held in contents_of(engine).items():
            if held not in (old.get(place), ours.get(place)):
                records = [record for record in held[3] if record.kind != PROP]
                assert records == ours[place][3][: len(records)], "a part of the source's, and nothing else"
        report = copy_store(source, Interrupted(engine), mirror=True)  # type: ignore[arg-type]
        assert contents_of(engine) == ours
        assert report.sessions == 8
        step(engine.close())
    assert number > 20


@pytest.mark.usefixtures("small_parts")
def test_a_plain_copy_goes_on_where_a_mirror_was_interrupted_in_a_replaced_session() -> None:
    source, target = filled(Kept(), [created("s", *LONG, agent("more", 9))]), filled(Kept(), [created("s", *LONG[4:])])
    with pytest.raises(StoreUnavailable):
        copy_store(source, Interrupted(target, 3), mirror=True)  # type: ignore[arg-type]
    assert len(contents_of(target)["session s"][3]) == 3
    copy_store(source, target)
    assert contents_of(target) == contents_of(source)


def test_a_cancelled_mirror_goes_on(tmp_path: Path) -> None:
    source = source_engine(Kept())
    step(filled(SqliteEngine(tmp_path / "target.db"), TARGET).close())

    async def cancelled_and_run_again() -> CopyReport:
        told = asyncio.Event()
        copying = asyncio.create_task(
            async_copy_store(source, tmp_path / "target.db", mirror=True, progress=lambda _: told.set())
        )
        await told.wait()
        copying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await copying
        return await async_copy_store(source, tmp_path / "target.db", mirror=True)

    assert asyncio.run(cancelled_and_run_again()).sessions == 8


# -- looking first


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    step(source_engine(SqliteEngine(tmp_path / "source.db")).close())
    step(filled(FilesEngine(str(tmp_path / "target")), TARGET).close())
    return tmp_path / "source.db", tmp_path / "target"


def test_a_look_tells_what_a_mirror_does_and_writes_nothing(places: tuple[Path, Path]) -> None:
    source, target = places
    before = contents_of(filled(FilesEngine(str(target)), ()))
    misfits = compare_stores(source, target)
    assert contents_of(filled(FilesEngine(str(target)), ())) == before
    report = copy_store(source, target, mirror=True)
    assert (misfits.target, misfits.replaced, misfits.removed) == (report.target, report.replaced, report.removed)
    assert [each.where for each in misfits.differences] == [each.where for each in report.differences]
    assert compare_stores(source, target).differences == ()


def test_a_look_makes_no_store(places: tuple[Path, Path]) -> None:
    source, target = places
    assert compare_stores(source, target.parent / "none").differences == ()
    with pytest.raises(StoreUnavailable):
        compare_stores(target.parent / "none.db", target)
    with pytest.raises(InvalidValue, match="part of the store"):
        compare_stores(target, target / "within")
    with pytest.raises(InvalidValue, match="itself"):
        compare_stores(target, target)
    assert list(target.parent.glob("none*")) == []


def test_a_look_refuses_what_a_mirror_refuses(places: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(CopyRefused, match="has nothing of what"):
        compare_stores(tmp_path / "empty", places[1])
