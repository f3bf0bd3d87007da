"""Writers killed at each point of a transaction: what was acknowledged is there, and nothing is there in part."""

from __future__ import annotations

import os
import signal
import sqlite3
from pathlib import Path

import pytest
from sqlite_hooks import LOCK_FILES, files_beside, hooked, said, verdict

from children import Child, Tell
from statestore import Session, StateStore, StoreUnavailable, UserMessage
from statestore.engines.sqlite import upkeep as upkeep_module

POINTS = (
    ("before", "BEGIN IMMEDIATE"),
    ("after", "BEGIN IMMEDIATE"),
    ("after", "INSERT INTO records"),
    ("after", "UPDATE sessions"),
    ("after", "INSERT INTO changes"),
    ("before", "COMMIT"),
    ("after", "COMMIT"),
    ("before", "PRAGMA wal_checkpoint"),
    ("after", "PRAGMA wal_checkpoint"),
)


@pytest.mark.parametrize(("when", "point"), POINTS)
def test_what_was_acknowledged_survives_kill_9_at_this_point_of_a_transaction(
    when: str, point: str, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep_module, "PAGES_BETWEEN_CHECKPOINTS", 10)
    monkeypatch.setattr(upkeep_module, "COMMITS_BETWEEN_CHECKPOINTS", 1)
    with StateStore.open(database) as store:
        store.get_or_create_session("alice", "one")
        store.get_or_create_session("alice", "two")
    for nth in range(1, 4):

        def work(tell: Tell, nth: int = nth) -> None:
            left = 0

            def die(statement: str) -> None:
                nonlocal left
                if statement.startswith(point) and left:
                    left -= 1
                    if not left:
                        os.kill(os.getpid(), signal.SIGKILL)

            with hooked(**{when: die}):
                store = StateStore.open(database)
                left = nth
                for turn in range(100):
                    with store.batch() as batch:
                        for name in ("one", "two"):
                            session = store.load_session(name)
                            assert session is not None
                            session.add_user_message(f"{nth}.{turn}")
                            session.add_agent_response(f"{nth}.{turn}")
                            batch.save_session(session)
                    tell(f"{nth}.{turn}")

        ended = Child(work).ended()
        assert ended.was_killed, ended.error
        with StateStore.open(database) as store:
            words = said(store, "one")
            assert words == said(store, "two")
            assert words[::2] == words[1::2]
            mine = [word for word in words[::2] if word.startswith(f"{nth}.")]
            assert mine[: len(ended.told)] == ended.told
            assert len(mine) - len(ended.told) in (0, 1)
            assert store.check() == []
            store.save_session(Session("alice", f"alive-{nth}"))
    assert verdict(database) == "ok"


def test_a_log_left_by_a_killed_process_is_used_by_the_next_one(database: Path) -> None:
    def work(tell: Tell) -> None:
        store = StateStore.open(database)
        store.get_or_create_session("alice", "one")
        for turn in range(30):
            store.append("one", UserMessage(f"{turn}"))
            tell(f"{turn}")
        os.kill(os.getpid(), signal.SIGKILL)

    ended = Child(work).ended()
    assert ended.was_killed
    assert Path(f"{database}-wal").stat().st_size > 0
    with StateStore.open(database, read_only=True) as reader:
        assert said(reader, "one") == ended.told
    with StateStore.open(database) as store:
        assert said(store, "one") == ended.told
    assert files_beside(database) == LOCK_FILES


def test_a_reader_is_told_of_a_writer_that_died_with_a_rollback_journal(database: Path) -> None:
    with StateStore.open(f"sqlite:{database}?journal=rollback") as store:
        store.get_or_create_session("alice", "one")

    def work(tell: Tell) -> None:
        connection = sqlite3.connect(database, isolation_level=None)
        connection.execute("PRAGMA cache_size=5")  # so that what is not committed yet is in the file already
        connection.execute("BEGIN IMMEDIATE")
        rows = [("notes", str(number), "md", "v", b"x" * 5000) for number in range(300)]
        connection.executemany("INSERT INTO documents VALUES (?, ?, ?, ?, ?)", rows)
        tell("written")
        signal.pause()

    child = Child(work)
    child.wait_for_words()
    child.kill()
    assert child.ended().was_killed
    with pytest.raises(StoreUnavailable, match="whose writer died: open it once for writing"):
        StateStore.open(database, read_only=True)
    with StateStore.open(f"sqlite:{database}?journal=rollback") as store:
        assert store.list_category("notes") == []
    with StateStore.open(database, read_only=True) as store:
        assert store.session_exists("one")
