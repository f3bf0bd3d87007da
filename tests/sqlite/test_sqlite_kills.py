"""Writers killed at any moment: everything acknowledged is there once, nothing is there in part, and it goes on."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from sqlite_hooks import LOCK_FILES, files_beside, hooked, said, verdict

from children import Child, Tell
from statestore import Event, Session, StateStore, UserMessage
from statestore.engines.sqlite import upkeep as upkeep_module

KILLS = 40
THREE = tuple("xyz")


def _write_without_end(database: Path, life: int, tell: Tell) -> None:
    """Append, save, write batches, telling of each when it is done."""
    store = StateStore.open(database)
    session = store.load_session("saved")
    assert session is not None
    turn = 0
    while True:
        word = f"{life}.{turn}"
        store.append("appended", UserMessage(f"append {word}"), Event("tool", f"event {word}"), keys=[word, None])
        tell(f"append {word}")
        session.add_user_message(f"save {word}")
        session.set_metadata("last", word)
        store.save_session(session)
        tell(f"save {word}")
        members = [store.load_session(name) for name in THREE]
        with store.batch() as batch:
            for member in members:
                assert member is not None
                member.add_user_message(f"batch {word}")
                batch.save_session(member)
            batch.save_json("documents", "batch", word)
        tell(f"batch {word}")
        if turn % 5 == 4:
            store.rewind_session("rewound", to=0)
            store.append("rewound", UserMessage(word), UserMessage(word))
            store.search_sessions("append")
        turn += 1


def _furnish(store: StateStore) -> None:
    for name in ("appended", "saved", "rewound", *THREE):
        store.get_or_create_session("alice", name)


def _messages(store: StateStore, session_id: str) -> list[str]:
    session = store.load_session(session_id)
    assert session is not None
    return [message.content for message in session.user_messages]


def _check(database: Path, acknowledged: list[str]) -> None:
    with StateStore.open(database) as store:
        for session_id, kind in (("appended", "append"), ("saved", "save"), *((name, "batch") for name in THREE)):
            counts = Counter(_messages(store, session_id))
            assert not [word for word, count in counts.items() if count > 1], "something is there twice"
            promised = {word for word in acknowledged if word.startswith(kind)}
            assert promised <= counts.keys(), "something acknowledged is not there"
        session = store.load_session("appended")
        assert session is not None
        events = [event.data for event in session.events]
        assert events == [f"event {word.removeprefix('append ')}" for word in _messages(store, "appended")]
        batches = _messages(store, THREE[0])
        for name in THREE[1:]:
            assert _messages(store, name) == batches, "a batch is there in part"
        if batches:
            assert store.load_json("documents", "batch") == batches[-1].removeprefix("batch ")
        assert len(_messages(store, "rewound")) in (0, 2)
        assert store.append("alive", UserMessage("yes")) if store.session_exists("alive") else True
        assert store.check() == []


@pytest.mark.parametrize("seed", [1, 2])
def test_what_was_acknowledged_survives_kill_9_at_any_moment(seed: int, database: Path) -> None:
    with StateStore.open(database) as store:
        _furnish(store)
        store.get_or_create_session("alice", "alive")
    chance = random.Random(seed)
    acknowledged: list[str] = []
    for life in range(KILLS // 2):
        writer = Child(lambda tell, life=life: _write_without_end(database, life, tell))  # type: ignore[misc]
        writer.wait_for_words()
        time.sleep(chance.uniform(0, 0.04))  # how far it comes is left to chance, and does not matter
        writer.kill()
        ended = writer.ended()
        assert ended.was_killed, ended.error
        acknowledged += ended.told
        _check(database, acknowledged)
    assert verdict(database) == "ok"


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


def test_a_writer_goes_on_while_others_beside_it_are_killed(database: Path, store: StateStore) -> None:
    _furnish(store)
    told: list[int] = []
    acknowledged: list[str] = []
    for life in range(6):
        writer = Child(lambda tell, life=life: _write_without_end(database, life, tell))  # type: ignore[misc]
        writer.wait_for_words()
        for _ in range(20):
            told += store.append("appended", UserMessage(f"survivor {len(told)}"))
        writer.kill()
        acknowledged += writer.ended().told
        told += store.append("appended", UserMessage(f"survivor {len(told)}"))
    words = said(store, "appended")
    assert [word for word in words if word.startswith("survivor")] == [f"survivor {turn}" for turn in range(len(told))]
    assert {word for word in acknowledged if word.startswith("append")} <= set(words)
    assert told == sorted(set(told))
    assert store.check() == []


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
