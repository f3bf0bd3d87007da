"""Mistakes that users make: each is told what was wrong and what to do, and nothing is lost by it."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from hooked import HookedEngine, SlowEngine
from statestore import (
    AsyncStateStore,
    InvalidValue,
    PruneConfig,
    Session,
    SessionConflict,
    SessionNotFound,
    StateStore,
    StoreClosed,
    StoreUnavailable,
    UserMessage,
    WrongUser,
    copy_store,
)
from statestore.engines.memory import MemoryEngine
from statestore.engines.sqlite import SqliteEngine


def test_a_store_is_opened_not_constructed() -> None:
    with pytest.raises(TypeError, match=r"StateStore\.open\('file:m'\)"):
        StateStore("file:m")  # type: ignore[arg-type]


@pytest.mark.parametrize("target", [None, 3, b"m"])
def test_what_is_no_store_is_refused(target: Any) -> None:
    with pytest.raises(InvalidValue, match="a store is a URL"):
        StateStore.open(target)


@pytest.mark.parametrize("option", [{"create": False}, {"read_only": True}, {"durability": "relaxed"}], ids=str)
def test_an_engine_takes_its_options_where_it_is_made(option: dict[str, Any]) -> None:
    engine = MemoryEngine()
    for opened in (StateStore, AsyncStateStore):
        with pytest.raises(InvalidValue, match=r"give create, read_only and durability to MemoryEngine"):
            opened.open(engine, **option)


@pytest.mark.parametrize("target", ["memory:", "sqlite:state.db", "file:state"])
def test_a_durability_that_nobody_knows_is_refused(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidValue, match="durability is 'full' or 'relaxed', not 'much'"):
        StateStore.open(target, durability="much")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_an_engine_that_is_copied_from_is_opened_as_it_was_made(tmp_path: Path) -> None:
    with StateStore.open(tmp_path / "a.db") as store:
        store.save_json("notes", "n", 1)
    assert copy_store(SqliteEngine(str(tmp_path / "a.db")), tmp_path / "b.db").documents == 1


def test_no_password_is_shown() -> None:
    with pytest.raises(InvalidValue) as refused:
        StateStore.open("nosuch://user:secret@host/db")
    assert "secret" not in str(refused.value)


def test_a_file_url_names_no_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidValue, match="names a host"):
        StateStore.open("file://state")
    with StateStore.open(f"file://{tmp_path}/state") as store:
        assert store.url == f"file:{tmp_path}/state"


@pytest.mark.parametrize("session", [None, {}, "s", []])
def test_only_a_session_is_saved(store: StateStore, session: Any) -> None:
    with pytest.raises(InvalidValue, match="a session is saved, not"):
        store.save_session(session)


@pytest.mark.parametrize("config", [{"max_sessions": 1}, True, 5])
def test_pruning_takes_a_prune_config(store: StateStore, config: Any) -> None:
    session = Session("alice", "s")
    for refuse in (store.prune_sessions, lambda given: store.save_session_with_prune(session, given)):
        with pytest.raises(InvalidValue, match="PruneConfig"):
            refuse(config)
    assert not store.session_exists("s")
    assert store.prune_sessions(PruneConfig()) == 0


@pytest.mark.parametrize("keys", ["k", 5, iter(["k"]), {"k"}])
def test_keys_are_a_list(store: StateStore, keys: Any) -> None:
    store.save_session(Session("alice", "s"))
    with pytest.raises(InvalidValue, match="keys is a list"):
        store.append("s", UserMessage("a"), keys=keys)
    with pytest.raises(InvalidValue, match="a key is a text"):
        store.append("s", UserMessage("a"), keys=[["k"]])  # type: ignore[list-item]
    assert store.timeline("s") == []


@pytest.mark.parametrize("change", [None, 5])
def test_what_updates_a_session_is_a_function(store: StateStore, change: Any) -> None:
    store.save_session(Session("alice", "s"))
    with pytest.raises(InvalidValue, match="takes a function of a session"):
        store.update_session_with("s", change)


def test_a_path_of_bytes_is_refused(tmp_path: Path) -> None:
    class Bytes:
        def __fspath__(self) -> bytes:
            return bytes(tmp_path / "state.db")

    with pytest.raises(InvalidValue, match="a path is a text, not bytes"):
        StateStore.open(Bytes())  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_an_object_of_one_store_is_not_saved_into_another(tmp_path: Path) -> None:
    with StateStore.open(tmp_path / "a") as one, StateStore.open(tmp_path / "b") as other:
        session = one.get_or_create_session("alice", "s")
        other.get_or_create_session("alice", "s")
        session.add_user_message("hello")
        with pytest.raises(SessionConflict, match="was loaded from"):
            other.save_session(session)
        one.save_session(session)
        assert [len(store.timeline("s")) for store in (one, other)] == [1, 0]


@pytest.mark.parametrize("is_loaded", [False, True], ids=["saved", "loaded"])
def test_an_object_of_one_store_in_memory_is_not_taken_for_stored_in_another(is_loaded: bool) -> None:
    with StateStore.open("memory:") as one, StateStore.open("memory:") as other:
        session = Session("alice", "s")
        one.save_session(session)
        if is_loaded:
            session = one.load_session("s") or session
        with pytest.raises(SessionConflict, match="was loaded from"):
            other.save_session(session)
        assert not other.session_exists("s")


def test_an_object_of_a_store_that_was_opened_again_is_saved(tmp_path: Path) -> None:
    with StateStore.open(tmp_path / "a") as store:
        session = store.get_or_create_session("alice", "s")
    session.add_user_message("hello")
    with StateStore.open(tmp_path / "a") as store:
        store.save_session(session)
        assert len(store.timeline("s")) == 1


def test_an_old_object_does_not_write_into_a_session_created_anew(store: StateStore) -> None:
    old = store.get_or_create_session("alice", "s")
    store.delete_session("s")
    store.get_or_create_session("alice", "s")
    old.add_user_message("from the old life")
    with pytest.raises(SessionNotFound, match="recreate=True"):
        store.save_session(old)
    with pytest.raises(SessionConflict):
        store.save_session(old, recreate=True)
    assert store.timeline("s") == []


def test_an_old_object_that_is_unchanged_is_not_taken_for_a_session_created_anew(store: StateStore) -> None:
    old = store.get_or_create_session("alice", "s")
    store.delete_session("s")
    store.get_or_create_session("alice", "s")
    with pytest.raises(SessionConflict):
        store.save_session(old, recreate=True)


def test_a_batch_is_written_once(store: StateStore) -> None:
    with store.batch() as batch:
        batch.save_json("notes", "n", 1)
    with pytest.raises(StoreClosed, match="this batch is over"):
        batch.save_json("notes", "m", 2)
    with pytest.raises(StoreClosed, match="this batch is over"):
        batch.save_session(Session("alice", "s"))
    assert store.list_category("notes") == ["n"]


def test_an_object_that_a_thread_begins_to_save_between_two_saves_of_a_loop_is_stored_once() -> None:
    memory = MemoryEngine()
    is_saving, may_go_on = threading.Event(), threading.Event()
    in_thread = HookedEngine(memory)
    in_thread.before = lambda _: (is_saving.set(), may_go_on.wait())  # type: ignore[assignment, func-returns-value]
    session = Session("alice", "s")

    async def scenario(plain: StateStore) -> None:
        in_loop = SlowEngine(memory)
        thread = threading.Thread(target=plain.save_session, args=(session,), daemon=True)
        async with AsyncStateStore.open(in_loop) as store:  # type: ignore[arg-type]

            async def save_and_let_the_thread_begin() -> None:
                await store.save_session(session)
                thread.start()
                is_saving.wait()

            first = asyncio.create_task(save_and_let_the_thread_begin())
            await in_loop.is_asked.wait()
            session.add_user_message("once")
            second = asyncio.create_task(store.save_session(session))
            await asyncio.sleep(0)
            in_loop.let_go()
            await first
            with pytest.raises(SessionConflict, match="is being saved in another loop"):
                await second
        may_go_on.set()
        thread.join()

    with StateStore.open(in_thread) as plain:  # type: ignore[arg-type]
        asyncio.run(scenario(plain))
        assert len(plain.timeline("s")) == 1


def test_nothing_is_written_to_a_batch_that_is_being_made() -> None:
    engine = HookedEngine(MemoryEngine())

    def write_more(_: object) -> None:
        with pytest.raises(StoreClosed, match="this batch is over"):
            batch.save_json("notes", "m", 2)

    engine.before = write_more
    with StateStore.open(engine) as store:  # type: ignore[arg-type]
        with store.batch() as batch:
            batch.save_json("notes", "n", 1)
        assert store.list_category("notes") == ["n"]


def test_two_batches_over_the_same_sessions_do_not_wait_for_each_other_for_ever(tmp_path: Path) -> None:
    with StateStore.open(tmp_path) as store:
        a, b = (store.get_or_create_session("alice", name) for name in "ab")

        def write(*sessions: Session) -> None:
            for _ in range(30):
                with store.batch() as batch:
                    for session in sessions:
                        session.add_user_message("x")
                        batch.save_session(session)

        threads = [threading.Thread(target=write, args=order, daemon=True) for order in ((a, b), (b, a))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)
        assert [len(store.timeline(name)) for name in "ab"] == [60, 60]


def test_closing_waits_for_calls_under_way_and_harms_no_other_store(tmp_path: Path) -> None:
    store, other = StateStore.open(tmp_path / "a"), StateStore.open(tmp_path / "b")
    store.get_or_create_session("alice", "s")
    other.get_or_create_session("alice", "s")
    started = threading.Barrier(5)
    outcomes: list[type[Exception] | None] = []

    def write() -> None:
        started.wait()
        while True:
            try:
                store.append("s", UserMessage("x"))
            except Exception as error:  # noqa: BLE001 - what kind it is, is what is tested
                outcomes.append(type(error))
                return

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    started.wait()
    store.close()
    with StateStore.open(tmp_path / "c") as third:
        third.get_or_create_session("alice", "s")
        for thread in threads:
            thread.join()
        assert outcomes == [StoreClosed] * 4
        assert third.session_exists("s")
        assert other.session_exists("s")
    other.close()


def test_a_write_under_way_is_done_before_its_store_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = StateStore.open(tmp_path)
    store.get_or_create_session("alice", "s")
    is_flushing, may_go_on = threading.Event(), threading.Event()
    flush = os.fsync

    def slow_flush(fd: int) -> None:
        is_flushing.set()
        may_go_on.wait(60)
        flush(fd)

    monkeypatch.setattr(os, "fsync", slow_flush)
    errors: list[Exception] = []

    def write() -> None:
        try:
            store.append("s", UserMessage("x"))
        except Exception as error:  # noqa: BLE001 - there should be none
            errors.append(error)

    writing, closing = threading.Thread(target=write), threading.Thread(target=store.close)
    writing.start()
    is_flushing.wait(60)
    closing.start()
    closing.join(0.5)  # time to close what must not be closed yet
    is_waiting = closing.is_alive()
    may_go_on.set()
    writing.join()
    closing.join()
    assert is_waiting
    assert errors == []
    monkeypatch.undo()
    with StateStore.open(tmp_path) as store:
        assert len(store.timeline("s")) == 1


def test_a_store_that_nobody_closed_leaves_no_thread(tmp_path: Path) -> None:
    async def use() -> None:
        store = await AsyncStateStore.open(tmp_path)
        await store.get_or_create_session("alice", "s")

    before = set(threading.enumerate())
    asyncio.run(use())
    gc.collect()
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive()


def test_an_asynchronous_store_says_that_it_is_not_open_yet() -> None:
    opening: Any = AsyncStateStore.open("memory:")
    with pytest.raises(StoreClosed, match="not open yet"):
        opening.list_sessions()
    assert "not open yet" in repr(opening)


def test_a_store_that_was_removed_is_not_an_empty_one(tmp_path: Path) -> None:
    with StateStore.open(tmp_path / "a") as store:
        store.get_or_create_session("alice", "s")
        (tmp_path / "a").rename(tmp_path / "b")
        assert store.session_exists("s")
    with StateStore.open(tmp_path / "empty", read_only=False) as store:
        for path in sorted((tmp_path / "empty").rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        (tmp_path / "empty").rmdir()
        with pytest.raises(StoreUnavailable, match="was removed"):
            store.load_session("s")
        with pytest.raises(StoreUnavailable, match="was removed"):
            store.list_sessions()


def test_a_mistake_in_a_call_names_the_record(store: StateStore) -> None:
    with pytest.raises(TypeError, match=r"^UserMessage\(\)"):
        UserMessage()  # type: ignore[call-arg]
    assert store.list_sessions() == []


def test_who_asks_a_users_store_for_a_session_without_a_user_is_told_the_order(store: StateStore) -> None:
    with pytest.raises(WrongUser, match=r"serves 'bob'.*of 'trip': the user comes first"):
        store.for_user("bob").get_or_create_session("trip")


def test_a_database_whose_name_does_not_tell_is_told_how_to_be_opened(tmp_path: Path) -> None:
    StateStore.open(tmp_path / "state.db").close()
    os.rename(tmp_path / "state.db", tmp_path / "monday.bak")
    for options in ({}, {"read_only": True}):
        with pytest.raises(StoreUnavailable, match=f"sqlite:{tmp_path}/monday.bak opens an SQLite store"):
            StateStore.open(tmp_path / "monday.bak", **options)


@pytest.mark.parametrize("target", ["~/state.db", "~/state", "~", "sqlite:~/state.db", "file:~/state", Path("~/a.db")])
def test_a_path_that_only_a_shell_understands_is_refused(
    target: str | Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidValue, match="expanduser"):
        StateStore.open(target)
    assert list(tmp_path.iterdir()) == []
    StateStore.open("./~/state.db").close()


@pytest.mark.parametrize("target", [":memory:", "file::memory:", "sqlite::memory:"])
def test_the_name_that_sqlite_has_for_memory_makes_no_directory(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidValue, match="memory: is the store that lives in memory"):
        StateStore.open(target)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_with_a_name_that_no_category_has_hides_no_category(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("v1..v2", "old.md", "fine"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.json").write_text("{}")
    with StateStore.open(tmp_path) as store:
        assert store.list_categories() == ["fine"]
        assert [store.list_category(category) for category in store.list_categories()] == [["a"]]
        assert {problem.where for problem in store.check()} >= {"old.md/a.json", "v1..v2/a.json"}
    told = "\n".join(record.getMessage() for record in caplog.records)
    assert "invalid category 'v1..v2'" in told
    assert "invalid category 'old.md'" in told
