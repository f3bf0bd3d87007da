"""What was given up holds nobody up: no lock stays behind, and nothing is made a second time."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlite_hooks import raw, said

from statestore import UserMessage
from statestore.engine import Batch, ChangeSession, NewRecord, NewSession
from statestore.engines.sqlite.gathering import Gathering, Slot
from statestore.host import step

NOW = "2026-01-31T12:00:00Z"


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Circles of objects stay, as they do for a while in any program."""
    gc.disable()
    yield
    gc.enable()


def _say(text: str, **options: Any) -> ChangeSession:
    body = b'{"content":"%b","timestamp":"%b"}' % (text.encode(), NOW.encode())
    return ChangeSession(options.pop("id", "s"), NOW, append=(NewRecord("user", body, 0),), **options)


@pytest.mark.usefixtures("uncollected")
def test_after_a_group_that_failed_and_an_index_that_is_damaged_everybody_can_write(
    database: Path, opened: Any
) -> None:
    store = opened(f"sqlite:{database}?timeout=3")
    store.get_or_create_session("alice", "s")
    store.append("s", UserMessage("hello world"))
    assert store.search_sessions("hello")
    nobody: Any = None
    refused = _say("b", id="t", create=NewSession(nobody, NOW))
    results = step(store._store._engine.commit_group([[_say("a")], [refused], [_say("c")]]))
    assert [isinstance(result, Exception) for result in results] == [False, True, False]
    with raw(database) as connection:
        connection.execute("UPDATE words_data SET block = x'ffffffffffffffffff' WHERE id = 10")
    store.append("s", UserMessage("news"))
    assert [hit.seq for hit in store.search_sessions("hello")] == [1]
    store.append("s", UserMessage("more"))
    assert said(store, "s") == ["hello world", "a", "c", "news", "more"]


def test_what_a_leader_made_before_it_was_interrupted_is_not_made_again() -> None:
    first, second = (), (_say("second"),)
    while (made := _made_after_an_interrupted_leader(first, second)) is None:
        pass  # the follower was faster than the leader, and made everything itself
    assert made == [second]


def _made_after_an_interrupted_leader(first: Batch, second: Batch) -> list[Batch] | None:
    """What a follower makes whose first batch was made by a leader; ``None`` if there was no such leader."""
    gathering = Gathering()
    made: list[Batch] = []

    def make_the_first_and_die(slots: list[Slot]) -> None:
        for slot in slots:
            slot.result = []
            if slot.batch is first:
                raise KeyboardInterrupt

    def make(slots: list[Slot]) -> None:
        for slot in slots:
            made.append(slot.batch)
            slot.result = []

    leading = gathering._leading  # pyright: ignore[reportPrivateUsage]
    leading.acquire()
    follower = threading.Thread(target=gathering.commit, args=([first, second], make))
    follower.start()
    while not gathering._waiting:  # pyright: ignore[reportPrivateUsage]
        time.sleep(0)
    leading.release()
    try:
        gathering.commit([(_say("own"),)], make_the_first_and_die)
    except KeyboardInterrupt:
        follower.join()
        return made
    follower.join()
    return None


def test_what_a_leader_took_along_and_did_not_make_is_offered_to_the_next_one() -> None:
    """Though the next one leads already: among many writers somebody always does."""
    gathering = Gathering()
    made: list[Batch] = []

    def make(slots: list[Slot]) -> None:
        for slot in slots:
            made.append(slot.batch)
            slot.result = []

    waiting = gathering._waiting  # pyright: ignore[reportPrivateUsage]
    batch = (_say("once"),)
    with gathering._leading:  # pyright: ignore[reportPrivateUsage]
        follower = threading.Thread(target=gathering.commit, args=([batch], make))
        follower.start()
        deadline = time.monotonic() + 60
        for _ in range(2):
            while not waiting and time.monotonic() < deadline:
                time.sleep(0)
            assert waiting
            (taken,) = waiting
            waiting.clear()
    follower.join()
    assert made == [batch]
    assert taken.slots[0].result == []
