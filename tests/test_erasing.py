"""A user's sessions are gone after `erase_user`, wherever somebody else puts them meanwhile."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import redis

from hooked import HookedEngine
from servers import postgres, valkey
from statestore import (
    CorruptData,
    Engine,
    PruneConfig,
    Session,
    SessionConflict,
    StateStore,
    StoreUnavailable,
    UserMessage,
)
from statestore.engine import Batch, Change, DeleteSession, Result
from statestore.engines.memory import MemoryEngine
from statestore.engines.sqlite import SqliteEngine
from statestore.store import erasing, trashing


class Overtaken(HookedEngine):
    """Somebody else does something around the first calls of some methods: named, each with what happens."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.meanwhile: list[tuple[str, Callable[[], object]]] = []

    def __getattr__(self, name: str) -> Any:
        if self.meanwhile and self.meanwhile[0][0] == name:
            self.meanwhile.pop(0)[1]()
        return super().__getattr__(name)


@pytest.fixture
def engine(tmp_path: Path) -> Overtaken:
    return Overtaken(SqliteEngine(tmp_path / "state.db"))


def throw_away(other: StateStore) -> None:
    assert other.delete_session("s", trash_hours=5)


def assert_nothing_is_left(other: StateStore) -> None:
    assert other.list_trash() == []
    assert other.list_sessions() == []


def test_what_is_thrown_away_just_before_its_deletion_is_erased_with_the_trash(
    tmp_path: Path, engine: Overtaken
) -> None:
    with StateStore.open(engine) as store, StateStore.open(tmp_path / "state.db") as other:
        other.get_or_create_session("alice", "s")
        throw_away(other)
        engine.meanwhile.append(("list_documents", lambda: other.restore_session("s")))

        def throw_away_before_the_end(batch: Sequence[Change]) -> None:
            if isinstance(batch[0], DeleteSession) and other.session_exists("s"):
                throw_away(other)

        engine.before = throw_away_before_the_end
        assert store.erase_user("alice") == 1
        assert_nothing_is_left(other)


def test_what_was_out_of_sight_at_both_looks_is_erased(tmp_path: Path, engine: Overtaken) -> None:
    with StateStore.open(engine) as store, StateStore.open(tmp_path / "state.db") as other:
        other.get_or_create_session("alice", "s")
        throw_away(other)
        engine.meanwhile += [
            ("list_documents", lambda: other.restore_session("s")),  # after the sessions were listed
            ("read_changes", lambda: throw_away(other)),  # after the trash was
        ]
        assert store.erase_user("alice") == 1
        assert_nothing_is_left(other)


def test_a_session_that_comes_and_goes_is_not_taken_for_damage(tmp_path: Path, engine: Overtaken) -> None:
    with StateStore.open(engine) as store, StateStore.open(tmp_path / "state.db") as other:
        engine.meanwhile += [
            ("count_sessions", lambda: other.get_or_create_session("alice", "s")),  # made just before they are counted
            ("list_sessions", lambda: other.delete_session("s")),  # and gone when they are listed
        ]
        assert store.erase_user("alice") == 0


def test_other_users_do_not_keep_an_erasure_going(tmp_path: Path, engine: Overtaken) -> None:
    with StateStore.open(engine) as store, StateStore.open(tmp_path / "state.db") as other:
        other.get_or_create_session("alice", "s")
        other.get_or_create_session("bob", "his")
        engine.after = lambda _: other.append("his", UserMessage("on and on"))
        assert store.erase_user("alice") == 1
        assert len(other.timeline("his")) == len(engine.commits)


def test_an_erasure_beside_somebody_who_never_stops_says_so(
    tmp_path: Path, engine: Overtaken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "MAX_ATTEMPTS", 5)
    with StateStore.open(engine) as store, StateStore.open(tmp_path / "state.db") as other:
        engine.meanwhile += [("list_documents", lambda: other.save_session(Session("alice")))] * 9
        with pytest.raises(SessionConflict, match=r"4 sessions of 'alice' were erased, and others make new ones"):
            store.erase_user("alice")
        engine.meanwhile.clear()
        assert store.erase_user("alice") == 1


def test_a_session_that_never_holds_still_is_not_thrown_away(
    tmp_path: Path, engine: Overtaken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trashing, "MAX_ATTEMPTS", 5)
    with StateStore.open(engine) as store, StateStore.open(tmp_path / "state.db") as other:
        other.get_or_create_session("alice", "s")
        engine.before = lambda _: other.append("s", UserMessage("more"))
        with pytest.raises(SessionConflict, match="session s changed 5 times while it was being thrown away"):
            store.delete_session("s", trash_hours=1)
        assert len(other.timeline("s")) == 5
        assert other.list_trash() == []
        engine.before = None
        assert store.delete_session("s", trash_hours=1)


class Apart(HookedEngine):
    """Items live apart, and many batches are made at once."""

    atomic_scope = "item"

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.groups: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return self._commit_group if name == "commit_group" else super().__getattr__(name)

    async def _commit_group(self, batches: Sequence[Batch]) -> list[Result]:
        self.groups.append(len(batches))
        results: list[Result] = []
        for batch in batches:
            try:
                results.append(await self.commit(batch))
            except Exception as error:  # noqa: BLE001 - it is a result
                results.append(error)
        return results


def test_where_items_live_apart_many_sessions_go_at_once() -> None:
    engine = Apart(MemoryEngine())
    with StateStore.open(engine) as store:  # type: ignore[arg-type]
        for number in range(30):
            store.save_session(Session("alice", f"s{number}"))
        touched: list[int] = []

        def touch(batch: Sequence[Change]) -> None:
            if isinstance(batch[0], DeleteSession) and batch[0].id == "s1" and not touched:
                touched.extend(store.append("s1", UserMessage("just now")))

        engine.before = touch
        assert store.prune_sessions(PruneConfig(max_sessions=10, ttl_hours=0)) == 19
        assert store.session_exists("s1")
        assert store.erase_user("alice") == 11
        assert engine.groups == [20, 11]


def test_where_items_live_apart_a_failure_is_told() -> None:
    engine = Apart(MemoryEngine())
    with StateStore.open(engine) as store:  # type: ignore[arg-type]
        for number in range(3):
            store.save_session(Session("alice", f"s{number}"))
        engine.fail_once(after=False)
        with pytest.raises(StoreUnavailable, match="the connection was lost"):
            store.erase_user("alice")
        assert store.erase_user("alice") == 1


def talk(store: StateStore, session_id: str, user_id: str = "alice") -> None:
    session = Session(user_id, session_id)
    session.add_user_message("zebrafish " * 50)
    store.save_session(session)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 100)


def move_aside(store: StateStore, directory: Path) -> None:
    cut(directory / "sessions" / "b.json")
    assert [problem.is_repaired for problem in store.check(repair=True)] == [True]


def damage_in_the_trash(store: StateStore, directory: Path, *, suffixes: str = ".*") -> None:
    assert store.delete_session("b", trash_hours=9)
    for path in (directory / ".statestore" / "trash").glob(f"*{suffixes}"):
        cut(path)


def move_the_note_aside(store: StateStore, directory: Path) -> None:
    damage_in_the_trash(store, directory, suffixes=".json")
    store.check(repair=True)


STRAYS: dict[str, tuple[Callable[[StateStore, Path], object], str, int]] = {
    "cut": (lambda _, directory: cut(directory / "sessions" / "b.json"), "sessions/b.json", 2),
    "moved aside": (move_aside, ".statestore/aside/sessions/b.json", 2),
    "in the trash": (damage_in_the_trash, ".statestore/trash/[-0-9a-f]+", 2),
    "a note aside": (move_the_note_aside, ".statestore/aside/.statestore/trash/[-0-9a-f]+.json", 3),
    "a copy": (
        lambda _, directory: shutil.copy(directory / "sessions" / "b.json", directory / "sessions" / "copy of b.json"),
        "sessions/copy of b.json",
        3,
    ),
    "another suffix": (
        lambda _, directory: (directory / "sessions" / "b.json").rename(directory / "sessions" / "b.json.tmp"),
        "sessions/b.json.tmp",
        2,
    ),
    "a link": (lambda _, directory: (directory / "sessions" / "d.json").symlink_to("b.json"), "sessions/d.json", 3),
    "a name that is not Unicode": (
        lambda _, directory: shutil.copy(directory / "sessions" / "b.json", os.fsencode(directory) + b"/sessions/\xff"),
        r"sessions/\\udcff",
        3,
    ),
}


@pytest.mark.parametrize("stray", STRAYS)
def test_a_user_is_not_said_to_be_erased_while_there_are_files_that_may_be_theirs(
    stray: str, files_store: StateStore, directory: Path
) -> None:
    for session_id in "abc":
        talk(files_store, session_id)
    talk(files_store, "his", "bob")
    make, place, erased = STRAYS[stray]
    make(files_store, directory)
    told = (
        rf"^{erased} sessions of 'alice' were erased, and 1 may be left, which .*: {place}: look there, .* erase again"
    )
    with pytest.raises(CorruptData, match=told):
        files_store.erase_user("alice")
    with pytest.raises(CorruptData, match=r"^0 sessions of 'alice' were erased, and 1 may be left"):
        files_store.erase_user("alice")
    assert [summary.id for summary in files_store.list_sessions()] == ["his"]
    files_store.empty_trash()
    shutil.rmtree(directory / ".statestore" / "aside", ignore_errors=True)
    for path in (directory / "sessions").iterdir():
        if path.name != "his.json":
            path.unlink()
    assert files_store.erase_user("alice") == 0


@pytest.mark.parametrize("stray", ["moved aside", "a copy", "another suffix"])
def test_files_that_certainly_are_anothers_do_not_keep_a_user_from_being_erased(
    stray: str, files_store: StateStore, directory: Path
) -> None:
    talk(files_store, "hers")
    talk(files_store, "b", "bob")
    if stray == "moved aside":  # whole, and named wrong
        (directory / "sessions" / "b.json").rename(directory / "sessions" / "other.json")
        assert [problem.is_repaired for problem in files_store.check(repair=True)] == [True]
    else:
        STRAYS[stray][0](files_store, directory)
    assert files_store.erase_user("alice") == 1
    with pytest.raises(CorruptData, match="may be left"):
        files_store.erase_user("bob")


def test_documents_that_were_moved_aside_are_nobodys(files_store: StateStore, directory: Path) -> None:
    talk(files_store, "hers")
    for category in ("notes", "sessions/notes"):
        files_store.save_json(category, "n", "zebrafish" * 50)
        cut(directory / category / "n.json")
    assert all(problem.is_repaired for problem in files_store.check(repair=True))
    assert files_store.erase_user("alice") == 1


def test_many_files_that_may_be_theirs_are_counted_and_some_are_named(files_store: StateStore, directory: Path) -> None:
    talk(files_store, "hers")
    for number in range(7):
        (directory / "sessions" / f"s{number}.json").write_text("{")
    with pytest.raises(CorruptData, match=r" 7 may be left, .*: sessions/s0.json, .*sessions/s4.json, …: look there"):
        files_store.erase_user("alice")


def test_a_trash_that_cannot_be_read_is_told_wherever_it_lies(tmp_path: Path) -> None:
    with StateStore.open(tmp_path / "state.db") as store:
        for session_id in "abc":
            talk(store, session_id)
        assert store.delete_session("b", trash_hours=9)
        with closing(sqlite3.connect(tmp_path / "state.db")) as connection, connection:
            connection.execute("UPDATE documents SET body = substr(body, 1, length(body) - 100)")
        with pytest.raises(CorruptData, match=r"^2 sessions .* 1 may be left, .* goes when the whole trash is emptied"):
            store.erase_user("alice")
        assert store.empty_trash() == 1
        assert store.erase_user("alice") == 0


def test_what_others_take_out_of_the_trash_meanwhile_is_not_taken_for_damage(tmp_path: Path, engine: Overtaken) -> None:
    with StateStore.open(engine) as store, StateStore.open(tmp_path / "state.db") as other:
        talk(other, "s", "bob")
        throw_away(other)
        engine.meanwhile += [
            ("count_sessions", lambda: None),  # after all was erased, the trash is listed once more
            ("get_documents", other.empty_trash),  # and gone when it is read
        ]
        assert store.erase_user("alice") == 0
        assert not engine.meanwhile
        assert_nothing_is_left(other)


def spoil_row(url: str, name: str) -> None:
    statement = "UPDATE sessions SET updated = 'never' WHERE id = 'bad'"
    if url.startswith("valkey"):
        with redis.Redis.from_url(url.replace("valkey", "redis", 1).partition("?")[0], protocol=2) as client:
            client.hset(f"{name}:s:{{bad}}:h", "updated", "never")
    elif url.startswith("postgresql"):
        postgres.sql(postgres.shared_url(), f"SET search_path TO {name}", statement)
    else:
        with closing(sqlite3.connect(url.removeprefix("sqlite:"))) as connection, connection:
            connection.execute(statement)


ROW_ENGINES: dict[str, Callable[[Path, str], str]] = {
    "sqlite": lambda path, name: f"sqlite:{path / name}.db",
    "postgres": lambda _, name: f"{postgres.shared_url()}?schema={name}",
    "valkey": lambda _, name: f"{valkey.shared_url()}?prefix={name}",
}


@pytest.mark.parametrize("kind", ROW_ENGINES)
def test_where_a_row_tells_whose_it_is_a_damaged_one_is_told_to_that_user_alone(kind: str, tmp_path: Path) -> None:
    name = f"t{uuid4().hex[:16]}"
    url = ROW_ENGINES[kind](tmp_path, name)
    with StateStore.open(url) as store:
        for session_id in ("good", "bad"):
            talk(store, session_id)
        talk(store, "his", "bob")
        spoil_row(url, name)
        with pytest.raises(CorruptData, match="1 sessions of 'alice' are damaged, and were left"):
            store.erase_user("alice")
        assert store.erase_user("bob") == 1
        assert store.delete_session("bad")
        assert store.erase_user("alice") == 0
        assert store.count_sessions() == 0
    if kind == "postgres":
        postgres.sql(postgres.shared_url(), f"DROP SCHEMA {name} CASCADE")
