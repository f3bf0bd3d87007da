"""Many writers of one thing, in processes, threads and tasks: nobody's word is lost."""

from __future__ import annotations

import asyncio
import fcntl
import os
import threading
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import Any

import pytest

import contestants
from children import together, together_each
from contestants import check_each_is_there_once
from statestore import AsyncStateStore, PruneConfig, Session, StateStore, UserMessage
from statestore.engines.files.locks import BATCHES
from statestore.store import pruning
from words import user_words

START_METHODS = ("fork", "spawn")
WRITERS = "ABCDEFGH"


@pytest.fixture
def either(target: Path) -> Iterator[StateStore]:
    """A store of either kind."""
    with StateStore.open(target) as store:
        yield store


@pytest.mark.parametrize("start_method", START_METHODS)
def test_eight_processes_append_800_messages_and_each_is_there_once(
    start_method: str, target: Path, either: StateStore
) -> None:
    either.get_or_create_session("alice", "shared")
    arguments = [(str(target), "shared", writer, 100) for writer in WRITERS]
    told = together(start_method, contestants.append_many, arguments)
    check_each_is_there_once(either, dict.fromkeys(WRITERS, 100), dict(zip(WRITERS, told, strict=True)))


def test_eight_processes_load_add_and_save_and_each_message_is_there_once(target: Path, either: StateStore) -> None:
    either.get_or_create_session("alice", "shared")
    together("fork", contestants.save_many, [(str(target), "shared", writer, 100) for writer in WRITERS])
    check_each_is_there_once(either, dict.fromkeys(WRITERS, 100))


@pytest.mark.parametrize("start_method", START_METHODS)
def test_three_processes_replace_one_document_and_no_update_is_lost(
    start_method: str, target: Path, either: StateStore
) -> None:
    results = together(start_method, contestants.count_in_document, [(str(target), 50)] * 3)
    successes = sorted((success for own in results for success in own), key=lambda success: success[2])
    assert [value for _, _, value, _ in successes] == list(range(1, 151))
    assert either.load_json("counters", "one") == 150
    version = ""
    for value, based_on, new_value, new_version in successes:
        assert new_value == value + 1
        assert based_on == version
        version = new_version
    assert len({new for *_, new in successes}) == 150


def test_four_processes_with_one_new_id_get_one_session(target: Path, either: StateStore) -> None:
    session_ids = [f"new-{number}" for number in range(25)]
    results = together("fork", contestants.create_and_greet, [(str(target), writer, session_ids) for writer in "ABCD"])
    for place, session_id in enumerate(session_ids):
        session = either.load_session(session_id)
        assert session is not None
        assert {told[place] for told in results} == {session.created_text}
        assert sorted(message.content for message in session.user_messages) == list("ABCD")
    assert either.count_sessions() == 25


def test_what_was_saved_survives_a_prune_that_runs_meanwhile(target: Path, either: StateStore) -> None:
    here = str(target)
    work = [
        (contestants.revive_many, (here, "A", 100)),
        (contestants.revive_many, (here, "B", 100)),
        (contestants.prune_all_the_time, (here, 2)),
    ]
    first, second, _ = together_each("fork", work)
    for session_id in (*first, *second):
        assert user_words(either, session_id) == ["I am still here"]
    assert {summary.id for summary in either.list_sessions()} == {*first, *second}
    assert either.check() == []


def _five(store: StateStore) -> None:
    with store.batch() as batch:
        for name in contestants.FIVE:
            batch.save_json("five", name, 0)
            session = Session("alice", name)
            session.set_metadata("title", "0")
            batch.save_session(session)


def test_readers_never_see_a_part_of_a_batch(root: Path, store: StateStore) -> None:
    _five(store)
    here = str(root)
    work = [
        (contestants.batch_up, (here, 40)),
        (contestants.batch_up, (here, 40)),
        (contestants.read_five, (here, "abcde", 2)),
        (contestants.read_five, (here, "edcba", 2)),
        (contestants.list_five, (here, 2)),
    ]
    *_, forwards, backwards, listings = together_each("fork", work)
    for seen in (*forwards, *backwards):
        assert seen == sorted(seen), "a document read later is older than one read before it"
    for titles in listings:
        assert len(titles) == 5
        assert len(set(titles)) == 1, "a listing shows a part of a batch"
    assert [store.load_json("five", name) for name in contestants.FIVE] == [80] * 5
    assert store.check() == []


def test_a_batch_does_not_wait_for_those_who_come_later_to_list(
    store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save_markdown("notes", "old", "old")
    is_listed, may_end, is_waiting, comes_later = (threading.Event() for _ in range(4))
    scandir, flock = os.scandir, fcntl.flock

    def scan(directory: Any) -> Any:
        if threading.current_thread().name == "first":
            is_listed.set()
            may_end.wait()
        return scandir(directory)

    def lock(file: FileIO, operation: int) -> None:
        name = os.path.basename(os.readlink(f"/proc/self/fd/{file.fileno()}"))
        if threading.current_thread().name == "batch" and operation == fcntl.LOCK_EX and name == BATCHES:
            is_waiting.set()
        if threading.current_thread().name == "later" and operation == fcntl.LOCK_SH:
            try:
                flock(file, operation | fcntl.LOCK_NB)
            except BlockingIOError:
                comes_later.set()  # and waits
            else:
                if name == BATCHES:
                    comes_later.set()  # and goes first
                return
        flock(file, operation)

    def make_batch() -> None:
        with store.batch() as batch:
            batch.save_markdown("notes", "one", "1")
            batch.save_markdown("notes", "two", "2")

    seen: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: store.list_category("notes"), name="first"),
        threading.Thread(target=make_batch, name="batch"),
        threading.Thread(target=lambda: seen.append(store.list_category("notes")), name="later"),
    ]
    monkeypatch.setattr(os, "scandir", scan)
    monkeypatch.setattr(fcntl, "flock", lock)
    for thread, event in zip(threads, (is_listed, is_waiting, comes_later), strict=True):
        thread.start()
        event.wait()
    may_end.set()
    for thread in threads:
        thread.join()
    assert seen == [["old", "one", "two"]]


def test_what_was_saved_after_it_was_judged_is_not_pruned(store: StateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("idle", "revived"):
        session = Session("alice", name)
        session.updated_at = contestants.LONG_AGO
        store.save_session(session)
    judge = pruning.doomed

    def judge_then_save(*arguments: object) -> object:
        verdict = judge(*arguments)  # type: ignore[arg-type]
        store.append("revived", UserMessage("wait"))
        return verdict

    monkeypatch.setattr(pruning, "doomed", judge_then_save)
    assert store.prune_sessions(PruneConfig(max_sessions=0, ttl_hours=1)) == 1
    assert [summary.id for summary in store.list_sessions()] == ["revived"]


def test_four_processes_open_one_store_at_the_same_time(root: Path, store: StateStore) -> None:
    assert together("fork", contestants.open_many, [(str(root), 100)] * 4) == [100] * 4
    assert store.check() == []


def test_listing_works_while_documents_come_and_go(root: Path, store: StateStore) -> None:
    here = str(root)
    work = [
        (contestants.create_and_delete, (here, "A", 300)),
        (contestants.create_and_delete, (here, "B", 300)),
        (contestants.list_all_the_time, (here, 2)),
    ]
    *_, listings = together_each("fork", work)
    assert listings > 0
    assert store.list_category("come-and-go") == []


def test_eight_threads_append_400_messages_through_one_store(store: StateStore) -> None:
    store.get_or_create_session("alice", "shared")
    told: dict[str, list[int]] = {}

    def append(writer: str) -> None:
        told[writer] = [store.append("shared", UserMessage(f"{writer}:{turn}"))[0] for turn in range(50)]

    contestants.in_threads(append, list(WRITERS))
    check_each_is_there_once(store, dict.fromkeys(WRITERS, 50), told)


def test_eight_threads_that_save_one_object_store_each_message_once(store: StateStore) -> None:
    session = store.get_or_create_session("alice", "shared")

    def talk(writer: str) -> None:
        for turn in range(25):
            session.add_user_message(f"{writer}:{turn}")
            store.save_session(session)

    contestants.in_threads(talk, list(WRITERS))
    check_each_is_there_once(store, dict.fromkeys(WRITERS, 25))


def test_sixty_four_tasks_append_and_each_message_is_there_once(root: Path, store: StateStore) -> None:
    writers = {f"task{number}": 6 for number in range(64)}

    async def contest() -> dict[str, list[int]]:
        async with AsyncStateStore.open(root) as shared:
            await shared.get_or_create_session("alice", "shared")

            async def append(writer: str) -> list[int]:
                return [(await shared.append("shared", UserMessage(f"{writer}:{turn}")))[0] for turn in range(6)]

            told = await asyncio.gather(*map(append, writers))
            return dict(zip(writers, told, strict=True))

    check_each_is_there_once(store, writers, asyncio.run(contest()))
