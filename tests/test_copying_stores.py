"""`copy_store`: everything from any engine to any engine, interrupted and resumed, refused and verified."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from copy_targets import contents_of
from faces import Face
from servers import postgres, valkey
from statestore import AsyncStateStore, Engine, InvalidValue, StateStore, StoreUnavailable
from statestore.conformance.changes import agent, appended, created, event, moment, truncated, user
from statestore.copying import (
    CopyIncomplete,
    CopyProgress,
    CopyRefused,
    CopyReport,
    async_copy_store,
    copy_store,
    packing,
    walking,
    windows,
)
from statestore.copying.standing import PROP
from statestore.engine import Change, ChangeSession, Outcome, PutDocument, SessionQuery
from statestore.engines.files import FilesEngine
from statestore.engines.files import editing as files_editing
from statestore.engines.files.recovery import Recovery
from statestore.engines.memory import MemoryEngine
from statestore.engines.sqlite import SqliteEngine
from statestore.host import step
from statestore.seedform.text import SessionText

DATA = Path(__file__).parent / "data"
LOCAL = ("sqlite:{place}/1.db", "memory:", "sqlite:{place}/2.db", "file:{place}/3", "memory:")
SERVERS = ("{postgres}?schema=copy_{number}", "sqlite:{place}/1.db", "{valkey}?prefix=copy{number}", "file:{place}/3")
"""The stores that a directory goes through before it becomes a directory again."""


def urls_of(way: Sequence[str], place: Path) -> list[str]:
    """The URLs on a way; the servers are started when they are needed."""
    servers = {"postgres": postgres.shared_url, "valkey": valkey.shared_url}
    found: list[str] = []
    for url in way:
        texts = {name: start() for name, start in servers.items() if f"{{{name}}}" in url}
        found.append(url.format(place=place, number=time.time_ns(), **texts))
    return found


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long sessions in parts of three records, two changes in a commit, pages of two."""
    monkeypatch.setattr(windows, "WINDOW_RECORDS", 3)
    monkeypatch.setattr(packing, "PACK_CHANGES", 2)
    monkeypatch.setattr(walking, "PAGE", 2)


def opened(engine: Engine) -> Engine:
    step(engine.open())
    return engine


def files_in(directory: Path) -> dict[str, bytes]:
    found = (path for path in sorted(directory.rglob("*")) if path.is_file() and ".statestore" not in path.parts)
    return {str(path.relative_to(directory)): path.read_bytes() for path in found}


LAYOUT = (
    b'{"id":null,"new":[1.0],"user_id":null,"agent_responses":null,"user_messages":null,'
    b'"created_at":null,"updated_at":null,"metadata":null}'
)
TITLED = {"title": b'"T"', "z": b"1e16"}
VARIETY: Sequence[Change] = (
    created("a", user("first", 1, key="k1"), agent("b", 2), metadata=TITLED, fields={"title": "T"}),
    created(
        "gap",
        *(user("a", 1), user("b", 2, seq=5), agent("c", 3, seq=6), event("t", "d", 4, seq=1_000_000)),
        *(agent("e", 5, seq=2_000_000_000), user("f", 6)),
    ),
    created("kept", user("a", seq=3), next_seq=40, fields={"project_id": "p", "parent_session_id": "a"}),
    created("long", *(user(f"u{n}", n, key=f"k{n}") for n in range(1, 12))),
    created("none", at=5),
    created("rewound", *(agent(f"a{n}", 20 - n) for n in range(1, 10)), layout=LAYOUT),
    PutDocument("notes", "n", "md", b"one\r\ntwo"),
    PutDocument("notes", "n", "json", b"[1e16 ]"),
    PutDocument("notes/deep", "b", "bin", bytes(range(256))),
    PutDocument("z", "last", "md", b""),
)


def various(engine: Engine | None = None) -> Engine:
    """An engine with something of everything in it."""
    engine = opened(engine or MemoryEngine())
    for change in VARIETY:
        step(engine.commit([change]))
    step(engine.commit([truncated("rewound", 5)]))
    return engine


def engine_named(kind: str, place: Path) -> Engine:
    if kind == "sqlite":
        return SqliteEngine(place / "target.db", durability="relaxed")
    return FilesEngine(str(place / "target"), durability="relaxed") if kind == "files" else MemoryEngine()


@pytest.fixture(params=["memory", "sqlite", "files"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    engine = engine_named(request.param, tmp_path)
    yield engine
    step(engine.close())


# -- everything is copied


@pytest.mark.parametrize("way", [LOCAL, SERVERS], ids=["local", "servers"])
@pytest.mark.parametrize("name", ["golden", "odd"])
def test_a_directory_that_went_through_every_engine_is_the_same_file_by_file(
    tmp_path: Path, name: str, way: Sequence[str], face: Face
) -> None:
    shutil.copytree(DATA / name, tmp_path / "first")
    reports: list[CopyReport] = []
    before = face.open(tmp_path / "first", read_only=True)
    for url in urls_of((*way, "file:{place}/last"), tmp_path):
        after = face.open(url)
        reports.append(copied(face, before, after))
        before = after
    assert files_in(tmp_path / "last") == files_in(DATA / name)
    assert len({report.digest for report in reports}) == 1
    assert (tmp_path / "first/.statestore").exists() is False


def copied(face: Face, source: Any, target: Any, **options: Any) -> CopyReport:
    """Copy in one face or the other."""
    if face.name == "plain":
        return copy_store(source, target, **options)
    inner = [getattr(store, "_store", store) for store in (source, target)]
    return face._runner.run(async_copy_store(*inner, **options))  # type: ignore[union-attr]


@pytest.mark.usefixtures("small_parts")
def test_numbers_keys_layout_and_metadata_are_copied_in_parts(target: Engine) -> None:
    source = various()
    report = copy_store(source, target)
    assert contents_of(opened(target)) == contents_of(source)
    assert (report.sessions, report.records, report.documents, report.skipped) == (6, 25, 4, 0)
    again = copy_store(target, back := MemoryEngine())
    assert again.digest == report.digest
    assert contents_of(back) == contents_of(source)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize(("name", "width"), [("golden", 150), ("odd", 2)])
def test_a_directory_copied_in_parts_says_the_same(
    tmp_path: Path, name: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "WINDOW_RECORDS", width)
    first = copy_store(DATA / name, tmp_path / "1.db")
    second = copy_store(tmp_path / "1.db", tmp_path / "2")
    assert copy_store(tmp_path / "2", MemoryEngine()).digest == second.digest == first.digest
    quoted = {name: body for name, body in files_in(DATA / name).items() if b'"statestore"' not in body}
    assert {name: body for name, body in files_in(tmp_path / "2").items() if name in quoted} == quoted


def test_a_target_may_be_a_url_a_path_an_engine_or_an_open_store(tmp_path: Path) -> None:
    source = various(SqliteEngine(tmp_path / "source.db"))
    step(source.close())
    path = tmp_path / "source.db"
    with StateStore.open(tmp_path / "4.db") as store:
        targets = (f"sqlite:{tmp_path}/1.db", tmp_path / "2.db", SqliteEngine(tmp_path / "3.db"), store)
        digests = {copy_store(f"sqlite:{path}", target).digest for target in targets}
        assert len(digests) == 1
        assert store.count_sessions() == 6
    for number in (1, 2, 3):
        assert contents_of(opened(SqliteEngine(tmp_path / f"{number}.db"))).keys() == contents_of(various()).keys()


def test_a_source_is_only_read_and_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable):
        copy_store(tmp_path / "none.db", tmp_path / "target.db")
    assert list(tmp_path.iterdir()) == []


# -- in which steps


class Watched:
    """Passes everything on to an engine; what is committed is noted, and a commit may be made to fail."""

    def __init__(self, engine: Engine, *, fail_at: int = 0, after: bool = False, atomic_scope: str = "store") -> None:
        self._engine = engine
        self._fail_at = fail_at
        self._after = after
        self.atomic_scope = atomic_scope
        self.batches: list[Sequence[Change]] = []

    def __getattr__(self, name: str) -> Any:
        if name == "commit_group":
            raise AttributeError(name)
        return getattr(self._engine, name)

    async def close(self) -> None:
        """The engine is used again."""

    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        self.batches.append(batch)
        is_last = len(self.batches) == self._fail_at
        if is_last and not self._after:
            raise StoreUnavailable("interrupted before the commit")
        outcomes = await self._engine.commit(batch)
        if is_last:
            raise StoreUnavailable("interrupted after the commit")
        return outcomes


def test_small_items_share_a_commit_where_the_engine_can() -> None:
    together, alone = Watched(MemoryEngine()), Watched(MemoryEngine(), atomic_scope="item")
    copy_store(various(), together)  # type: ignore[arg-type]
    copy_store(various(), alone)  # type: ignore[arg-type]
    assert [len(batch) for batch in together.batches] == [10]
    assert [len(batch) for batch in alone.batches] == [1] * 10


@pytest.mark.usefixtures("small_parts")
def test_numbers_far_apart_are_found_without_reading_all_between() -> None:
    class Counting(MemoryEngine):
        reads = 0

        async def read_session(self, session_id: str, **window: Any) -> Any:
            Counting.reads += 1
            return await super().read_session(session_id, **window)

    source = opened(Counting())
    step(source.commit([created("s", *(user("x", n, seq=n * 10**12) for n in range(1, 12)))]))
    target = MemoryEngine()
    copy_store(source, target)
    assert contents_of(target) == contents_of(source)
    assert Counting.reads < 5000


# -- interrupted, and run again


def interrupted_everywhere(make: Callable[[], Engine], source: Engine, prepare: Callable[[Engine], None]) -> int:
    """Interrupt a copy at every commit, before it or after it, and run it again each time; how many commits it has."""
    for after in (False, True):
        number = 0
        while True:
            number += 1
            target = opened(make())
            prepare(target)
            watched = Watched(target, fail_at=number, after=after)
            try:
                copy_store(source, watched)  # type: ignore[arg-type]
            except StoreUnavailable:
                pass
            else:
                break
            report = copy_store(source, Watched(target))  # type: ignore[arg-type]
            assert contents_of(target) == contents_of(source)
            assert report.sessions == step(source.count_sessions(SessionQuery()))
            step(target.close())
        assert len(watched.batches) == number - 1
    return number - 1


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("kind", ["memory", "sqlite", "files"])
def test_a_copy_that_was_interrupted_at_any_commit_goes_on(tmp_path: Path, kind: str) -> None:
    places = iter(range(10**6))

    def make() -> Engine:
        place = tmp_path / str(next(places))
        place.mkdir()
        return engine_named(kind, place)

    assert interrupted_everywhere(make, various(), lambda _: None) > 15


@pytest.mark.usefixtures("small_parts")
def test_a_copy_of_a_source_that_grew_can_be_interrupted_at_any_commit() -> None:
    source = various()

    def copy_before_it_grew(target: Engine) -> None:
        copy_store(various(), Watched(target))  # type: ignore[arg-type]

    for change in (
        appended("long", *(agent(f"more {n}", 30 + n, key=f"m{n}") for n in range(7)), at=50),
        appended("kept", user("more", 60), at=60),
        ChangeSession(
            "a",
            moment(70),
            set_metadata={"z": b"2", "new": b"[]"},
            unset_metadata=("title",),
            set_fields={"title": None},
        ),
        appended("none", *(user("gone again", 5) for _ in range(4)), at=80),
    ):
        step(source.commit([change]))
    step(source.commit([ChangeSession("none", moment(90), truncate_after=0, set_fields={"opening": None})]))
    step(source.commit([ChangeSession("a", moment(91), unset_metadata=("z", "new"))]))
    step(source.commit([ChangeSession("a", moment(92), set_metadata={"new": b"1", "z": b"2"})]))
    assert interrupted_everywhere(MemoryEngine, source, copy_before_it_grew) > 6


def test_what_an_interrupted_copy_left_in_the_source_is_copied_like_any_event() -> None:
    source, target = opened(MemoryEngine()), opened(MemoryEngine())
    step(source.commit([created("s", user("a", 1), event(PROP, None, 2, seq=9))]))
    assert copy_store(source, Watched(target)).skipped == 0  # type: ignore[arg-type]
    assert copy_store(source, Watched(target)).skipped == 1  # type: ignore[arg-type]
    step(source.commit([appended("s", user("b", 3), at=3)]))
    copy_store(source, Watched(target))  # type: ignore[arg-type]
    assert contents_of(target) == contents_of(source)


DYING = """
import os, signal, sys
from statestore.copying import copy_store, packing, windows
packing.PACK_CHANGES, windows.WINDOW_RECORDS = 2, 3
left = int(sys.argv[3])
def progress(_):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
copy_store(sys.argv[1], sys.argv[2], progress=progress)
"""


@pytest.mark.parametrize("target", ["target.db", "target"])
def test_a_copy_that_was_killed_goes_on(tmp_path: Path, target: str) -> None:
    source = various(FilesEngine(str(tmp_path / "source")))
    for count in (1, 3, 6, 8):
        command = [sys.executable, "-c", DYING, str(tmp_path / "source"), str(tmp_path / target), str(count)]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    report = copy_store(tmp_path / "source", tmp_path / target)
    assert report.skipped > 2
    copy_store(tmp_path / target, last := MemoryEngine())
    assert contents_of(last) == contents_of(source)
    assert copy_store(tmp_path / "source", tmp_path / target).skipped == 10


def test_what_the_target_has_is_skipped_and_not_written() -> None:
    source, target = various(), Watched(MemoryEngine())
    first = copy_store(source, target)  # type: ignore[arg-type]
    target.batches.clear()
    again = copy_store(source, target)  # type: ignore[arg-type]
    assert target.batches == []
    assert (again.skipped, again.digest, again.bytes) == (10, first.digest, first.bytes)


# -- refused


def refused(source: Engine, target: Engine, **options: Any) -> CopyRefused:
    """The error of a copy that is refused; the target is as it was."""
    before = contents_of(opened(target))
    watched = Watched(target)
    with pytest.raises(CopyRefused) as caught:
        copy_store(source, watched, **options)  # type: ignore[arg-type]
    assert watched.batches == []
    assert contents_of(target) == before
    return caught.value


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (created("more"), "session more"),
        (PutDocument("notes", "more", "md", b""), "document notes/more.md"),
        (PutDocument("notes", "n", "bin", b""), "document notes/n.bin"),
    ],
)
def test_what_only_the_target_has_is_refused_unless_it_may_be_there(target: Engine, change: Change, where: str) -> None:
    source = various()
    step(opened(target).commit([change]))
    error = refused(source, target)
    assert [each.where for each in error.differences] == [where]
    assert where in str(error)
    assert "into_existing" in str(error)
    report = copy_store(source, Watched(target), into_existing=True)  # type: ignore[arg-type]
    assert (report.sessions, report.documents) == (6, 4)
    held = contents_of(target)
    assert held.pop(where) is not None
    assert held == contents_of(source)


OTHERS: Sequence[Change] = (
    created("a", user("another"), at=0),
    created("a", user("first", 1, key="k1"), agent("b", 2), metadata={"title": b'"U"', "z": b"1e16"}),
    created("a", user("first", 1, key="k2"), metadata=TITLED),
    created("a", user("first", 1, key="k1"), user_id="bob", metadata=TITLED),
    created("a", at=1, metadata=TITLED),
    created("a", next_seq=2, metadata=TITLED),
    created(
        "gap",
        *(user("a", 1), user("b", 2, seq=5), agent("c", 3, seq=6)),
        *(agent("e", 5, seq=2_000_000_000), user("f", 6)),
    ),
    created("none", user("a"), at=5),
    created("none", at=5, fields={"project_id": "p"}),
    created("rewound", layout=LAYOUT.replace(b"1.0", b"1")),
    PutDocument("notes", "n", "md", b"one\ntwo"),
)


@pytest.mark.parametrize("other", OTHERS, ids=lambda change: getattr(change, "id", "document"))
@pytest.mark.parametrize("is_in_parts", [False, True])
def test_what_both_have_with_different_contents_is_always_refused(
    other: Change, is_in_parts: bool, request: pytest.FixtureRequest
) -> None:
    if is_in_parts:
        request.getfixturevalue("small_parts")
    target = opened(MemoryEngine())
    step(target.commit([other]))
    for into_existing in (False, True):
        error = refused(various(), target, into_existing=into_existing)
        assert [each.where for each in error.differences] == [
            f"session {other.id}" if isinstance(other, ChangeSession) else "document notes/n.md"
        ]


def test_what_was_changed_in_the_target_since_is_refused() -> None:
    source, target = various(), MemoryEngine()
    copy_store(source, target)
    step(target.commit([appended("a", user("mine", 99), at=99)]))
    error = refused(source, target)
    assert "session a" in str(error)


def test_many_differences_are_counted_and_the_first_are_named() -> None:
    target = opened(MemoryEngine())
    for number in range(1200):
        step(target.commit([created(f"s{number:04}")]))
    error = refused(various(), target)
    assert "s0000" in str(error)
    assert "1190 more" in str(error)
    assert len(str(error)) < 2000


def test_a_store_is_not_copied_into_itself(tmp_path: Path) -> None:
    various(SqliteEngine(tmp_path / "s.db"))
    with StateStore.open(tmp_path / "s.db") as store, pytest.raises(InvalidValue, match="itself"):
        copy_store(tmp_path / "s.db", store)
    with StateStore.open("memory:") as store, pytest.raises(InvalidValue, match="itself"):
        copy_store(store, store)


@pytest.mark.parametrize("target", ["source/backup", "source/backup.db", "link"])
def test_a_store_is_not_copied_to_a_place_among_its_own_files(face: Face, tmp_path: Path, target: str) -> None:
    various(FilesEngine(str(tmp_path / "source")))
    (tmp_path / "link").symlink_to("source/backup", target_is_directory=True)
    before = files_in(tmp_path / "source")
    with face.open(tmp_path / "source") as source, pytest.raises(InvalidValue, match="part of the store"):
        copied(face, source, tmp_path / target)
    assert files_in(tmp_path / "source") == before
    assert not (tmp_path / target).exists()


def test_a_users_part_of_a_store_cannot_be_copied() -> None:
    with StateStore.open("memory:") as store, pytest.raises(InvalidValue):
        copy_store(store.for_user("alice"), "memory:")  # type: ignore[arg-type]


def test_each_face_has_its_own_function() -> None:
    async def wrong() -> None:
        async with AsyncStateStore.open("memory:") as store:
            with pytest.raises(InvalidValue, match="async_copy_store"):
                copy_store(store, "memory:")  # type: ignore[arg-type]
        with StateStore.open("memory:") as plain, pytest.raises(InvalidValue, match="copy_store"):
            await async_copy_store(plain, "memory:")  # type: ignore[arg-type]

    asyncio.run(wrong())


def test_what_the_target_cannot_hold_is_named(tmp_path: Path) -> None:
    source = opened(MemoryEngine())
    step(source.commit([created("s1"), created("s2", next_seq=2**40), created("s3", user("x", seq=2**70))]))
    for name, unfit in (("target.db", ["session s2", "session s3"]), ("target", ["session s3"])):
        with pytest.raises(CopyIncomplete, match=f"and they were not copied, or not wholly: {unfit[0]}") as caught:
            copy_store(source, tmp_path / name)
        assert [each.where for each in caught.value.differences] == unfit
        assert caught.value.report.sessions == 3 - len(unfit)


# -- verified


def test_a_source_that_is_written_to_meanwhile_is_noticed_and_a_second_run_mends_it(face: Face, tmp_path: Path) -> None:
    source, target = face.open(tmp_path / "source.db"), face.open(tmp_path / "target.db")
    engine = various(SqliteEngine(tmp_path / "source.db"))
    is_done = False

    def write(progress: CopyProgress) -> None:
        nonlocal is_done
        if progress.phase == "verifying" or is_done:
            return
        is_done = True
        step(engine.commit([appended("long", user("meanwhile", 99), at=99), created("new", at=99)]))

    with pytest.raises(CopyIncomplete, match="run the copy again") as caught:
        copied(face, source, target, progress=write)
    assert {each.where for each in caught.value.differences} == {"session long", "session new"}
    assert caught.value.report.documents == 4
    report = copied(face, source, target)
    assert (report.sessions, report.skipped) == (7, 9)
    assert contents_of(opened(SqliteEngine(tmp_path / "target.db"))) == contents_of(engine)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("is_there", [False, True])
def test_metadata_that_are_set_while_the_records_are_copied_are_mended_by_a_second_run(*, is_there: bool) -> None:
    source, target = various(), opened(MemoryEngine())
    if is_there:
        copy_store(source, target)
        step(source.commit([appended("long", *(agent(f"more {n}", 30 + n) for n in range(7)), at=50)]))
    some, is_done = 14 if is_there else 3, False

    def write(progress: CopyProgress) -> None:
        nonlocal is_done
        copied_so_far = step(target.read_session("long", last=0))
        if copied_so_far is not None and copied_so_far.next_seq > some and not is_done:
            is_done = True
            step(source.commit([ChangeSession("long", moment(99), set_metadata={"set": b'"meanwhile"'})]))

    with pytest.raises(CopyIncomplete, match="session long"):
        copy_store(source, target, progress=write)
    copy_store(source, target)
    assert contents_of(target) == contents_of(source)


def test_what_is_deleted_from_the_source_meanwhile_is_noticed(tmp_path: Path) -> None:
    source = various(SqliteEngine(tmp_path / "source.db"))
    with StateStore.open(tmp_path / "source.db") as other, pytest.raises(CopyIncomplete, match=r"has 5.*has 6"):
        copy_store(source, MemoryEngine(), progress=lambda _: other.delete_session("a"))


class Forgetful(MemoryEngine):
    """Acknowledges everything and keeps only a part of it."""

    def __init__(self, forgotten: Callable[[Change], Change | None]) -> None:
        super().__init__()
        self._forgotten = forgotten

    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        await super().commit([kept for change in batch if (kept := self._forgotten(change)) is not None])
        return [Outcome(None, "1")] * len(batch)


@pytest.mark.parametrize("where", ["session kept", "session long", "document notes/n.md"])
def test_what_the_target_did_not_keep_is_noticed(where: str) -> None:
    def kept(change: Change) -> Change | None:
        name = change.id if isinstance(change, ChangeSession) else f"{change.category}/{change.name}.{change.kind}"  # type: ignore[union-attr]
        if not where.endswith(name):
            return change
        if isinstance(change, ChangeSession) and change.id == "kept":
            return created("kept", *change.append[:0], next_seq=40, fields=change.set_fields)
        return None

    with pytest.raises(CopyIncomplete, match=where):
        copy_store(various(), Forgetful(kept))


@pytest.mark.parametrize("damage", [b"", b"{", b'{"id": "other"}', b"\xff"])
def test_sessions_that_cannot_be_read_are_named_and_all_else_is_copied(tmp_path: Path, damage: bytes) -> None:
    source = various(FilesEngine(str(tmp_path / "source")))
    (tmp_path / "source/sessions/long.json").write_bytes(damage)
    (tmp_path / "source/sessions/left.json.tmp").write_bytes(b"")
    target = MemoryEngine()
    with pytest.raises(CopyIncomplete, match="session long") as caught:
        copy_store(source, target)
    report = caught.value.report
    assert (report.sessions, report.documents) == (5, 4)
    assert [problem.where for problem in report.problems] == ["sessions/left.json.tmp", "sessions/long.json"]
    assert [each.where for each in caught.value.differences] == ["session long"]
    assert contents_of(target) == contents_of(opened(FilesEngine(str(tmp_path / "source"))))
    (tmp_path / "source/sessions/long.json").unlink()
    assert copy_store(tmp_path / "source", target).skipped == 9


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    source = various(SqliteEngine(tmp_path / "source.db"))
    with closing(sqlite3.connect(tmp_path / "source.db")) as connection, connection:
        connection.execute("UPDATE records SET body = '{' WHERE body LIKE '%u7%'")
    target = MemoryEngine()
    with pytest.raises(CopyIncomplete, match="session long"):
        copy_store(source, target)
    assert "session long" not in contents_of(target)
    assert len(contents_of(target)) == 9


@pytest.mark.parametrize("column", ["created", "updated"])
def test_a_session_that_no_listing_of_a_database_shows_is_named(tmp_path: Path, column: str) -> None:
    source = various(SqliteEngine(tmp_path / "source.db"))
    step(source.commit([created("odd.json", user("a", 1))]))
    with closing(sqlite3.connect(tmp_path / "source.db")) as connection, connection:
        connection.execute(f"UPDATE sessions SET {column} = 'then' WHERE id = 'odd.json'")
    target = MemoryEngine()
    with pytest.raises(CopyIncomplete, match=r"session odd\.json") as caught:
        copy_store(source, target)
    assert [each.where for each in caught.value.differences] == ["session odd.json"]
    assert len(contents_of(target)) == 10


def test_numbers_of_a_batch_whose_writer_died_do_not_keep_it_from_being_finished() -> None:
    there = created("s", user("one"), user("by another program, since", 2))
    late = appended("s", user("ours", 3, seq=2), at=9)
    merged = Recovery._merged(late, files_editing.created(there)[0].pieces)
    assert merged is not None
    assert [record.seq for record in SessionText(merged.joined()).records.in_order()] == [1, 2, 3]


# -- progress and memory


@pytest.mark.usefixtures("small_parts")
def test_progress_is_told_in_three_phases_and_only_rises() -> None:
    told: list[CopyProgress] = []
    target = Watched(MemoryEngine())
    report = copy_store(various(), target, progress=told.append)  # type: ignore[arg-type]
    phases = [progress.phase for progress in told]
    assert list(dict.fromkeys(phases)) == ["copying", "verifying"]
    for phase in ("copying", "verifying"):
        counts = [(p.sessions, p.documents, p.bytes) for p in told if p.phase == phase]
        assert counts == sorted(counts)
        assert counts[-1][:2] == (6, 4)
    assert told[-1].bytes == report.bytes
    assert phases.count("copying") == len(target.batches) + 1, "after every commit, and at the end"
    assert {p.sessions_in_all for p in told} == {6}
    copy_store(various(), MemoryEngine(), progress=None)


def test_a_progress_that_raises_interrupts_the_copy() -> None:
    def stop(_: CopyProgress) -> None:
        raise KeyboardInterrupt

    target = MemoryEngine()
    with pytest.raises(KeyboardInterrupt):
        copy_store(various(), target, progress=stop)
    assert copy_store(various(), target).skipped == 10


def peak_of_copy(tmp_path: Path, name: str, *changes: Change) -> int:
    source = opened(SqliteEngine(tmp_path / f"{name}.db", durability="relaxed"))
    for batch in [changes] if name.startswith(("sessions", "documents")) else [[change] for change in changes]:
        step(source.commit(batch))
    step(source.close())
    del source
    tracemalloc.start()
    try:
        copy_store(tmp_path / f"{name}.db", tmp_path / f"{name}-copy.db")
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walking, "PAGE", 10)  # so that the small store fills pages, commits and parts, too
    monkeypatch.setattr(packing, "PACK_BYTES", 1 << 16)
    monkeypatch.setattr(windows, "WINDOW_BYTES", 1 << 16)

    def sessions(count: int) -> Iterator[Change]:
        for number in range(count):
            yield created(f"s{number:05}", user("x" * 2000, number), agent("y" * 2000, number))

    def documents(count: int) -> Iterator[Change]:
        for number in range(count):
            yield PutDocument("notes", f"n{number:05}", "md", b"x" * 4000)

    def long_session(count: int) -> Iterator[Change]:
        yield created("s")
        for start in range(0, count, 100):
            yield appended("s", *(user("x" * 4000, n) for n in range(start, start + 100)))

    for make, count in ((sessions, 40), (documents, 40), (long_session, 100)):
        name = make.__name__
        small = peak_of_copy(tmp_path, f"{name}-small", *make(count))
        large = peak_of_copy(tmp_path, f"{name}-large", *make(20 * count))
        assert large < 1.5 * small + 2**18, f"{name}: {small} and {large} bytes"


def test_an_interrupted_async_copy_goes_on(tmp_path: Path) -> None:
    various(SqliteEngine(tmp_path / "source.db"))

    async def cancelled_and_run_again() -> CopyReport:
        told = asyncio.Event()
        copying = asyncio.create_task(
            async_copy_store(tmp_path / "source.db", tmp_path / "target.db", progress=lambda _: told.set())
        )
        await told.wait()
        copying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await copying
        return await async_copy_store(tmp_path / "source.db", tmp_path / "target.db")

    assert asyncio.run(cancelled_and_run_again()).sessions == 6
    assert os.path.exists(tmp_path / "target.db")
