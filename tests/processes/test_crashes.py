"""Writers killed at random moments: everything acknowledged is there once, nothing is there in part."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from contents import leftovers

from children import Child
from statestore import Event, Session, StateStore, UserMessage

KILLS = 30
FOUR = tuple("wxyz")


def _write_without_end(root: Path, life: int, acknowledge: Callable[[str], None]) -> None:
    """Append, save, replace a document, write batches, telling of each when it is done."""
    store = StateStore.open(root)
    session = store.load_session("saved")
    assert session is not None
    turn = 0
    while True:
        word = f"{life}.{turn}"
        store.append("appended", UserMessage(f"append {word}"), Event("tool", f"event {word}"), keys=[word, None])
        acknowledge(f"append {word}")
        session.add_user_message(f"save {word}")
        session.set_metadata("last", word)
        store.save_session(session)
        acknowledge(f"save {word}")
        store.save_json("documents", "one", [life, turn])
        acknowledge(f"document {word}")
        members = [store.load_session(name) for name in FOUR]
        with store.batch() as batch:
            for member in members:
                assert member is not None
                member.add_user_message(f"batch {word}")
                batch.save_session(member)
            batch.save_json("documents", "batch", word)
            batch.save_markdown(f"lives/{life}", "last", word)
        acknowledge(f"batch {word}")
        turn += 1


def _furnish(store: StateStore) -> None:
    for name in ("appended", "saved", *FOUR):
        store.get_or_create_session("alice", name)


def _said(store: StateStore, session_id: str) -> list[str]:
    session = store.load_session(session_id)
    assert session is not None
    return [message.content for message in session.user_messages]


def _check(root: Path, acknowledged: list[str]) -> None:
    with StateStore.open(root) as store:
        for session_id, kind in (("appended", "append"), ("saved", "save"), *((name, "batch") for name in FOUR)):
            counts = Counter(_said(store, session_id))
            assert not [word for word, count in counts.items() if count > 1], "something is there twice"
            promised = {word for word in acknowledged if word.startswith(kind)}
            assert promised <= counts.keys(), "something acknowledged is not there"
        session = store.load_session("appended")
        assert session is not None
        events = [event.data for event in session.events]
        assert events == [f"event {word.removeprefix('append ')}" for word in _said(store, "appended")]
        batches = _said(store, FOUR[0])
        for name in FOUR[1:]:
            assert _said(store, name) == batches, "a batch is there in part"
        if batches:
            last = batches[-1].removeprefix("batch ")
            assert store.load_json("documents", "batch") == last
            assert store.load_markdown(f"lives/{last.partition('.')[0]}", "last") == last
        documents = [word.removeprefix("document ") for word in acknowledged if word.startswith("document")]
        if documents:
            assert store.load_json("documents", "one") >= [int(part) for part in documents[-1].split(".")]
        assert store.check() == []
        assert leftovers(root) == []


@pytest.mark.parametrize("seed", [1, 2])
def test_what_was_acknowledged_survives_kill_9_at_any_moment(seed: int, root: Path, store: StateStore) -> None:
    _furnish(store)
    chance = random.Random(seed)
    acknowledged: list[str] = []
    for life in range(KILLS):
        writer = Child(lambda acknowledge, life=life: _write_without_end(root, life, acknowledge))  # type: ignore[misc]
        writer.wait_for_words()
        time.sleep(chance.uniform(0, 0.04))
        writer.kill()
        ended = writer.ended()
        assert ended.was_killed, ended.error
        acknowledged += ended.told
        _check(root, acknowledged)


def test_a_writer_goes_on_while_others_beside_it_are_killed(root: Path, store: StateStore) -> None:
    _furnish(store)
    chance = random.Random(3)
    told: list[int] = []
    acknowledged: list[str] = []
    for life in range(8):
        writer = Child(lambda acknowledge, life=life: _write_without_end(root, life, acknowledge))  # type: ignore[misc]
        writer.wait_for_words()
        moment = time.monotonic() + chance.uniform(0, 0.04)
        while time.monotonic() < moment:
            told += store.append("appended", UserMessage(f"survivor {len(told)}"))
            session = Session("bob", f"survivor-{len(told)}")
            store.save_session(session)
        writer.kill()
        acknowledged += writer.ended().told
        told += store.append("appended", UserMessage(f"survivor {len(told)}"))
    words = _said(store, "appended")
    assert [word for word in words if word.startswith("survivor")] == [f"survivor {turn}" for turn in range(len(told))]
    assert {word for word in acknowledged if word.startswith("append")} <= set(words)
    assert told == sorted(set(told))
    assert len({tuple(_said(store, name)) for name in FOUR}) == 1
