"""Exports of one user: that user's sessions alone, whatever happens to them and to their ids meanwhile."""

from __future__ import annotations

import asyncio
import io
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from exchanging import VARIETY, engine_of, exported, store_with

from statestore import AsyncStateStore, CorruptData, InvalidValue, SessionNotFound, StateStore
from statestore.conformance.changes import created, user
from statestore.engine import Change, ChangeSession, DeleteSession, NewRecord, SessionQuery
from statestore.engines.memory import MemoryEngine
from statestore.exchange import (
    FORMATS,
    Format,
    async_export_sessions,
    async_import_sessions,
    export_sessions,
    gathering,
    import_path,
    import_sessions,
)
from statestore.host import step

SECRET = b"bobs0wn"
BOBS = created("b", user("bobs0wn"), user_id="bob", metadata={"title": b'"bobs0wn"'}, fields={"title": "bobs0wn"})


def long(user_id: str, said: str) -> ChangeSession:
    """A session in several parts; it does not tell by its numbers or its age whose it is."""
    return created("long", *(user(f"{said} {n}", n) for n in range(1, 101)), user_id=user_id)


def becomes_bobs(store: StateStore, session_id: str) -> None:
    """An id changes hands."""
    step(engine_of(store).commit([DeleteSession(session_id)]))
    step(engine_of(store).commit([created(session_id, user("bobs0wn"), user_id="bob")]))


def is_gone(store: StateStore, session_id: str) -> None:
    step(engine_of(store).commit([DeleteSession(session_id)]))


@pytest.mark.parametrize("format", FORMATS)
def test_all_of_a_user_is_what_a_store_without_the_others_would_give(format: Format) -> None:
    store, alone = store_with(*VARIETY, BOBS), store_with(*VARIETY)
    assert b"".join(export_sessions(store.for_user("alice"), format=format)) == exported(alone, format=format)
    assert SECRET in b"".join(export_sessions(store.for_user("bob"), format=format))


@pytest.mark.parametrize("format", FORMATS)
def test_event_loops_export_a_user_too(format: Format) -> None:
    async def of_alice() -> bytes:
        async with AsyncStateStore.open(engine_of(store_with(*VARIETY, BOBS))) as store:
            return b"".join([chunk async for chunk in async_export_sessions(store.for_user("alice"), format=format)])

    assert asyncio.run(of_alice()) == exported(store_with(*VARIETY), format=format)


@pytest.mark.parametrize("format", FORMATS)
def test_a_named_session_of_another_user_is_one_that_is_not_there(format: Format) -> None:
    alice = store_with(*VARIETY, BOBS).for_user("alice")

    def raised(session_id: str) -> str:
        with pytest.raises(SessionNotFound) as caught:
            list(export_sessions(alice, ["a", session_id], format=format))
        return str(caught.value).replace(f"session {session_id}", "session ID")

    def told(session_id: str) -> tuple[bytes, list[str]]:
        errors: list[str] = []
        chunks = export_sessions(
            alice,
            ["a", session_id, "odd"],
            format=format,
            unreadable=lambda name, error: errors.append(f"{type(error)} {error}".replace(name, "ID")),
        )
        return b"".join(chunks), errors

    assert raised("b") == raised("nobody")
    assert told("b") == told("nobody")
    assert SECRET not in told("b")[0]


def test_damaged_records_of_another_user_do_not_tell_that_a_session_is_there() -> None:
    store = store_with(created("damaged", NewRecord("user", b'{"content":1}', 0), user_id="bob"))
    with pytest.raises(SessionNotFound):
        list(export_sessions(store.for_user("alice"), ["damaged"]))
    assert b"".join(export_sessions(store.for_user("alice"))) == b""


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("happens", [becomes_bobs, is_gone])
def test_what_is_not_the_users_any_more_when_its_turn_comes_is_left_out(
    format: Format, happens: Callable[[StateStore, str], None]
) -> None:
    store, alone = store_with(*VARIETY), store_with(*VARIETY[:-1])
    done: list[str] = []
    left_out: list[object] = []
    chunks = export_sessions(
        store.for_user("alice"), format=format, unreadable=lambda *told: left_out.append(told), done=done.append
    )
    text = b""
    while not done:  # by now everything was listed
        text += next(chunks)
    gone = "odd" if done[0] != "odd" else "none"
    happens(store, gone)
    text += b"".join(chunks)
    assert set(done) == {change.id for change in VARIETY} - {gone}
    assert left_out == []
    assert SECRET not in text
    if format == "jsonl":
        assert text == exported(alone)


@pytest.mark.parametrize("happens", [becomes_bobs, is_gone])
def test_what_was_named_and_is_not_the_users_any_more_is_an_error(happens: Callable[[StateStore, str], None]) -> None:
    store = store_with(*VARIETY)
    chunks = export_sessions(store.for_user("alice"), ["a", "odd"])
    text = [next(chunks), next(chunks)]
    happens(store, "odd")
    with pytest.raises(SessionNotFound, match="there is no session odd"):
        text.extend(chunks)
    assert SECRET not in b"".join(text)


def test_a_session_that_goes_when_a_whole_store_is_exported_is_left_out_and_a_new_one_of_its_id_is_not() -> None:
    for happens, is_there in ((is_gone, False), (becomes_bobs, True)):
        store, done = store_with(*VARIETY), list[str]()
        chunks = export_sessions(store, done=done.append)
        while not done:
            next(chunks)
        happens(store, "odd")
        assert (SECRET in b"".join(chunks)) is is_there
        assert ("odd" in done) is is_there


@pytest.mark.parametrize("looks", range(1, 13))
def test_a_long_session_whose_id_changes_hands_between_two_of_its_reads_never_shows_the_others_words(
    looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "WINDOW_RECORDS", 10)
    store = store_with(long("alice", "mine"), created("z", user("last")))
    engine = engine_of(store)
    plain_read, seen = engine.read_session, iter(range(1, 1000))

    async def read_and_change_hands(session_id: str, **bounds: int | None) -> object:
        found = await plain_read(session_id, **bounds)
        if session_id == "long" and next(seen) == looks:
            await engine.commit([DeleteSession("long")])
            await engine.commit([long("bob", "bobs0wn")])
        return found

    monkeypatch.setattr(engine, "read_session", read_and_change_hands)
    assert b"".join(export_sessions(store.for_user("alice"))) == exported(store, "z")


def test_a_long_session_whose_id_changes_hands_after_its_beginning_was_exported_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gathering, "WINDOW_RECORDS", 10)
    store = store_with(long("alice", "mine"))
    chunks = export_sessions(store.for_user("alice"))
    text = [next(chunks), next(chunks), next(chunks)]
    step(engine_of(store).commit([DeleteSession("long")]))
    step(engine_of(store).commit([long("bob", "bobs0wn")]))
    with pytest.raises(SessionNotFound, match="session long was deleted while"):
        text.extend(chunks)
    assert b"mine 1" in b"".join(text)
    assert SECRET not in b"".join(text)


@pytest.fixture
def damaged(tmp_path: Path) -> Iterator[StateStore]:
    """Alice and Bob have a session that is so damaged that no listing shows it; Carol has none."""
    with StateStore.open(tmp_path / "s.db", durability="relaxed") as store:
        for name, owner in (("a1", "alice"), ("a2", "alice"), ("b1", "bob"), ("b2", "bob"), ("c1", "carol")):
            store.get_or_create_session(owner, name)
    with sqlite3.connect(tmp_path / "s.db") as connection:
        connection.execute("UPDATE sessions SET created = 'then' WHERE id IN ('a2', 'b2')")
    connection.close()
    with StateStore.open(tmp_path / "s.db", read_only=True) as store:
        yield store


@pytest.mark.parametrize("format", FORMATS)
def test_that_sessions_of_a_user_are_too_damaged_to_be_listed_is_told_and_no_id_of_anybody(
    damaged: StateStore, format: Format
) -> None:
    alice = damaged.for_user("alice")
    told: list[tuple[str, str]] = []
    text = b"".join(
        export_sessions(alice, format=format, unreadable=lambda name, error: told.append((name, str(error))))
    )
    assert text == exported(damaged, "a1", format=format)
    assert told == [("", "sessions of 'alice' are damaged, and no listing shows them: check() does")]
    with pytest.raises(CorruptData, match="sessions of 'alice' are damaged"):
        next(export_sessions(alice, format=format))


def test_what_is_damaged_of_others_does_not_hinder_a_user(damaged: StateStore) -> None:
    assert b"".join(export_sessions(damaged.for_user("carol"))) == exported(damaged, "c1")


class Counted:
    """An engine's sessions change whenever they are counted: after the first time, and before the second."""

    def __init__(self, store: StateStore, after: Change, before: Change | None = None) -> None:
        self._engine = engine_of(store)
        self._plain_count = self._engine.count_sessions
        self._changes = (after, before)
        self.count = 0

    async def count_sessions(self, query: SessionQuery) -> int:
        self.count += 1
        after, before = self._changes
        if self.count == 2 and before is not None:
            await self._engine.commit([before])
        counted = await self._plain_count(query)
        if self.count == 1:
            await self._engine.commit([after])
        return counted


def test_the_whole_store_is_not_checked_because_sessions_were_deleted_while_they_were_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = store_with(*VARIETY)
    counted = Counted(store, DeleteSession("odd"))
    monkeypatch.setattr(engine_of(store), "count_sessions", counted.count_sessions)
    monkeypatch.delattr(MemoryEngine, "check")
    assert b"".join(export_sessions(store.for_user("alice"))) == exported(store, "a", "gap", "kept", "none")
    assert counted.count == 2


def test_sessions_that_were_replaced_while_they_were_counted_are_not_taken_for_damaged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = store_with(*VARIETY)
    counted = Counted(store, DeleteSession("odd"), created("new"))
    monkeypatch.setattr(engine_of(store), "count_sessions", counted.count_sessions)
    assert b"".join(export_sessions(store.for_user("alice"))) == exported(store)
    assert counted.count == 2


def test_a_store_of_the_other_face_is_told_which_function_takes_it() -> None:
    async def told() -> None:
        async with AsyncStateStore.open("memory:") as store:
            for loops in (store, store.for_user("alice")):
                with pytest.raises(InvalidValue, match=r"not Async\w+, which is for event loops: use async_export_"):
                    export_sessions(loops)  # type: ignore[arg-type]
            with pytest.raises(InvalidValue, match="not AsyncStateStore, which is for event loops: use async_imp"):
                import_sessions(store, io.BytesIO())  # type: ignore[arg-type]

    asyncio.run(told())
    with store_with() as store:
        for plain in (store, store.for_user("alice")):
            with pytest.raises(InvalidValue, match=r"not \w+Store, which is for plain code: use export_sessions"):
                async_export_sessions(plain)  # type: ignore[arg-type]
        with pytest.raises(InvalidValue, match="not StateStore, which is for plain code: use import_sessions"):
            async_import_sessions(store, io.BytesIO())  # type: ignore[arg-type]


@pytest.mark.parametrize("export", [export_sessions, async_export_sessions])
def test_what_is_no_store_is_not_exported(export: Callable[[Any], object]) -> None:
    with pytest.raises(InvalidValue, match=r"Store is needed here, not str$"):
        export("state.db")


def test_nothing_is_imported_into_the_store_of_a_user(tmp_path: Path) -> None:
    store = store_with()
    (tmp_path / "all.jsonl").write_bytes(exported(store_with(*VARIETY, BOBS)))
    alice = store.for_user("alice")
    reason = "a StateStore is needed here, not UserStore: the sessions of an export may be anybody's"
    with (tmp_path / "all.jsonl").open("rb") as stream, pytest.raises(InvalidValue, match=reason):
        import_sessions(alice, stream)  # type: ignore[arg-type]
    for path in (tmp_path / "all.jsonl", tmp_path):
        with pytest.raises(InvalidValue, match=reason):
            list(import_path(alice, path))  # type: ignore[arg-type]
    assert store.list_sessions() == []

    async def into_alice() -> None:
        async with AsyncStateStore.open("memory:") as loops:
            async_import_sessions(loops.for_user("alice"), io.BytesIO())  # type: ignore[arg-type]

    with pytest.raises(InvalidValue, match="not AsyncUserStore: the sessions of an export may be anybody's"):
        asyncio.run(into_alice())
