"""What a store wrote last it need not read again; if somebody else wrote in between, that is noticed all the same."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlite_hooks import hooked, said

from statestore import SessionConflict, SessionNotFound, StateStore, UserMessage
from statestore.engine import ChangeSession, DeleteSession, NewSession, Requires
from statestore.engines.sqlite import turns
from statestore.engines.sqlite.known import MOST_KNOWN
from statestore.host import step
from statestore.store.appending import appending


def _without_a_turn(database: Path, *statements: str) -> None:
    """What another program does to the file, which knows nothing of turns."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize("is_over", [False, True])
def test_a_session_that_was_just_written_is_not_read_again(
    is_over: bool, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the turn in which the store was opened and the session was written, or in a later one."""
    monkeypatch.setattr(turns, "SHARE", 30.0)
    looked: list[str] = []
    with hooked(before=lambda statement: looked.append(statement)), StateStore.open(database) as store:
        store.get_or_create_session("alice", "one")
        store.append("one", UserMessage("first"))
        if is_over:
            store._store._engine._turns._reserved_until = 0.0  # type: ignore[reportPrivateUsage, attr-defined]
        looked.clear()
        store.append("one", UserMessage("second"))
        assert not [statement for statement in looked if "FROM sessions WHERE id" in statement]
        assert said(store, "one") == ["first", "second"]


def test_what_others_wrote_is_looked_for_only_if_another_had_the_turn(database: Path) -> None:
    looked: list[str] = []

    def looks_of_an_append() -> int:
        store._store._engine._turns._reserved_until = 0.0  # type: ignore[reportPrivateUsage, attr-defined]
        looked.clear()
        store.append("one", UserMessage("ours"))
        return sum("max(change)" in statement for statement in looked)

    with hooked(before=looked.append), StateStore.open(database) as store:
        store.get_or_create_session("alice", "one")
        assert [looks_of_an_append() for _ in range(3)] == [0, 0, 0]
        with StateStore.open(database) as other:
            other.append("one", UserMessage("theirs"))
            assert [looks_of_an_append() for _ in range(3)] == [1, 0, 0]
            other._store._engine._turns._reserved_until = 0.0  # type: ignore[reportPrivateUsage, attr-defined]
            other.append("one", UserMessage("theirs"))
        assert [looks_of_an_append() for _ in range(3)] == [1, 0, 0]
        assert said(store, "one") == [*["ours"] * 3, "theirs", *["ours"] * 3, "theirs", *["ours"] * 3]
        assert store.check() == []


def test_what_somebody_slipped_in_whom_we_did_not_expect_is_kept(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that met nobody lately comes back without a look at who was there meanwhile."""
    monkeypatch.setattr(turns, "SHARE", 30.0)
    monkeypatch.setattr(turns, "MEMORY", 0.0)
    with StateStore.open(database) as store, StateStore.open(database) as other:
        store.get_or_create_session("alice", "one")
        store.append("one", UserMessage("ours"))
        other.append("one", UserMessage("theirs"))
        store.append("one", UserMessage("ours again"))
        assert not store._store._engine._turns.is_after_others  # type: ignore[reportPrivateUsage, attr-defined]
        assert said(store, "one") == ["ours", "theirs", "ours again"]
        assert store.check() == []


def test_what_another_program_appended_in_between_is_kept(database: Path, store: StateStore) -> None:
    store.get_or_create_session("alice", "one")
    assert store.append("one", UserMessage("ours")) == [1]
    theirs = '{"content":"theirs","timestamp":"2026-01-01T00:00:00Z"}'
    _without_a_turn(
        database,
        f"INSERT INTO records SELECT number << 32 | 2, 0, '{theirs}' FROM sessions",
        f"UPDATE sessions SET version = 'other', next_seq = 3, users = 2, alternates = 0, size = size + {len(theirs)}",
    )
    assert store.append("one", UserMessage("ours again")) == [3]
    assert said(store, "one") == ["ours", "theirs", "ours again"]
    assert store.check() == []


def test_a_session_that_another_program_removed_is_not_found(database: Path, store: StateStore) -> None:
    store.get_or_create_session("alice", "one")
    store.append("one", UserMessage("ours"))
    _without_a_turn(database, "DELETE FROM records", "DELETE FROM sessions")
    with pytest.raises(SessionNotFound):
        store.append("one", UserMessage("too late"))
    assert store.count_sessions() == 0


def test_a_session_that_another_program_gave_away_is_refused_and_given_back_is_taken(
    database: Path, store: StateStore
) -> None:
    store.get_or_create_session("alice", "one")
    store.append("one", UserMessage("ours"))
    _without_a_turn(database, "UPDATE sessions SET version = 'given', user_id = 'bob'")
    with pytest.raises(SessionNotFound):
        store.for_user("alice").append("one", UserMessage("hers?"))
    assert store.for_user("bob").append("one", UserMessage("his"))
    _without_a_turn(database, "UPDATE sessions SET version = 'taken', user_id = 'alice'")
    assert store.for_user("alice").append("one", UserMessage("hers"))
    assert said(store, "one") == ["ours", "his", "hers"]


def test_another_store_of_the_same_file_is_noticed(opened: Callable[..., StateStore]) -> None:
    ours, theirs = opened(), opened()
    ours.get_or_create_session("alice", "one")
    for turn in range(20):
        (ours if turn % 3 else theirs).append("one", UserMessage(f"{turn}"))
        if turn == 10:
            theirs.delete_session("one")
            with pytest.raises(SessionNotFound):
                ours.append("one", UserMessage("to nobody"))
            theirs.get_or_create_session("alice", "one")
    assert said(ours, "one") == [f"{turn}" for turn in range(11, 20)]
    assert ours.check() == []


def test_a_change_at_the_very_version_is_made_however_many_sessions_its_group_makes_known(
    database: Path, store: StateStore
) -> None:
    store.get_or_create_session("alice", "one")
    store.append("one", UserMessage("ours"))
    _without_a_turn(database, "UPDATE sessions SET version = 'theirs'")
    moment = "2026-01-01T00:00:00Z"
    births = [ChangeSession(f"{n}", moment, create=NewSession("alice", moment)) for n in range(MOST_KNOWN + 1)]
    change = ChangeSession("one", moment, Requires(version="theirs"), set_metadata={"n": b"1"})
    engine: Any = store._store._engine
    results = step(engine.commit_group([[change] for change in (*births, change)]))
    assert not [result for result in results if isinstance(result, Exception)]
    assert store.check() == []


def test_a_session_that_was_written_to_and_deleted_in_one_group_is_not_known_after_it(database: Path) -> None:
    done: list[str] = []
    with hooked(before=done.append), StateStore.open(database) as store:
        store.get_or_create_session("alice", "one")
        engine: Any = store._store._engine
        written, deleted = step(
            engine.commit_group([[appending("one", [UserMessage("last")], None)], [DeleteSession("one")]])
        )
        assert (written[0].seqs, deleted[0].deleted) == ((1,), 1)
        done.clear()
        with pytest.raises(SessionNotFound):
            store.append("one", UserMessage("to nobody"))
        assert done.count("BEGIN IMMEDIATE") == 1  # it was looked for at once, and not taken for one that is there
        store.get_or_create_session("alice", "one")
        assert store.append("one", UserMessage("anew")) == [1]
        assert said(store, "one") == ["anew"]
        assert store.check() == []


def test_a_batch_that_fails_leaves_nothing_known_that_did_not_happen(store: StateStore) -> None:
    store.get_or_create_session("alice", "one")
    store.append("one", UserMessage("first"))
    stale = store.load_session("one")
    assert stale is not None
    store.append("one", UserMessage("second"))
    stale.user_messages[0] = UserMessage("edited")
    with pytest.raises(SessionConflict):
        store.save_session(stale)
    assert store.append("one", UserMessage("third")) == [3]
    assert said(store, "one") == ["first", "second", "third"]
    assert store.check() == []
