"""Writers killed at random moments: everything acknowledged is there once, nothing is there in part, and it goes on."""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path

import pytest
from contents import leftovers

from children import Child, Tell
from statestore import Event, Session, StateStore, UserMessage
from words import user_words

KILLS = 25
FOUR = tuple("wxyz")


def _furnish(target: Path) -> None:
    with StateStore.open(target) as store:
        for name in ("appended", "saved", "rewound", "alive", *FOUR):
            store.get_or_create_session("alice", name)


def _write_without_end(target: Path, life: int, tell: Tell) -> None:
    """Append, save, replace a document, write batches, rewind, search, telling of each when it is done."""
    store = StateStore.open(target)
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
        store.save_json("documents", "one", [life, turn])
        tell(f"document {word}")
        members = [store.load_session(name) for name in FOUR]
        with store.batch() as batch:
            for member in members:
                assert member is not None
                member.add_user_message(f"batch {word}")
                batch.save_session(member)
            batch.save_json("documents", "batch", word)
            batch.save_markdown(f"lives/{life}", "last", word)
        tell(f"batch {word}")
        if turn % 5 == 4:
            store.rewind_session("rewound", to=0)
            store.append("rewound", UserMessage(word), UserMessage(word))
            store.search_sessions("append")
        turn += 1


def _begun(target: Path, life: int) -> Child:
    """A writer that has written something."""
    writer = Child(lambda tell: _write_without_end(target, life, tell))
    writer.wait_for_words()
    return writer


def _killed(writer: Child) -> list[str]:
    """What a writer told before it was killed."""
    writer.kill()
    ended = writer.ended()
    assert ended.was_killed, ended.error
    return ended.told


def _check(target: Path, acknowledged: list[str], life: int) -> None:
    with StateStore.open(target) as store:
        for session_id, kind in (("appended", "append"), ("saved", "save"), *((name, "batch") for name in FOUR)):
            counts = Counter(user_words(store, session_id))
            assert not [word for word, count in counts.items() if count > 1], "something is there twice"
            promised = {word for word in acknowledged if word.startswith(kind)}
            assert promised <= counts.keys(), "something acknowledged is not there"
        session = store.load_session("appended")
        assert session is not None
        events = [event.data for event in session.events]
        assert events == [f"event {word.removeprefix('append ')}" for word in user_words(store, "appended")]
        batches = user_words(store, FOUR[0])
        for name in FOUR[1:]:
            assert user_words(store, name) == batches, "a batch is there in part"
        if batches:
            last = batches[-1].removeprefix("batch ")
            assert store.load_json("documents", "batch") == last
            assert store.load_markdown(f"lives/{last.partition('.')[0]}", "last") == last
        documents = [word.removeprefix("document ") for word in acknowledged if word.startswith("document")]
        if documents:
            assert store.load_json("documents", "one") >= [int(part) for part in documents[-1].split(".")]
        assert len(user_words(store, "rewound")) in (0, 2)
        assert store.append("alive", UserMessage("yes")) == [life + 1]
        assert store.check() == []
    if target.is_dir():
        assert leftovers(target) == []


@pytest.mark.parametrize("seed", [1, 2])
def test_what_was_acknowledged_survives_kill_9_at_any_moment(seed: int, target: Path) -> None:
    _furnish(target)
    chance = random.Random(seed)
    acknowledged: list[str] = []
    for life in range(KILLS):
        writer = _begun(target, life)
        time.sleep(chance.uniform(0, 0.04))  # how far it comes is left to chance, and does not matter
        acknowledged += _killed(writer)
        _check(target, acknowledged, life)


def test_a_writer_goes_on_while_others_beside_it_are_killed(target: Path) -> None:
    _furnish(target)
    told: list[int] = []
    acknowledged: list[str] = []
    with StateStore.open(target) as store:
        for life in range(8):
            writer = _begun(target, life)
            for _ in range(20):
                told += store.append("appended", UserMessage(f"survivor {len(told)}"))
                store.save_session(Session("bob", f"survivor-{len(told)}"))
            acknowledged += _killed(writer)
            told += store.append("appended", UserMessage(f"survivor {len(told)}"))
        words = user_words(store, "appended")
        survivors = [word for word in words if word.startswith("survivor")]
        assert survivors == [f"survivor {turn}" for turn in range(len(told))]
        assert {word for word in acknowledged if word.startswith("append")} <= set(words)
        assert told == sorted(set(told))
        assert len({tuple(user_words(store, name)) for name in FOUR}) == 1
    with StateStore.open(target) as store:
        assert store.check() == []
