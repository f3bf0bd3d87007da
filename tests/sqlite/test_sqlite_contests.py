"""Many writers of one thing, in processes and threads: nothing is lost, nothing is twice, nobody gets an error."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlite_hooks import said, seqs

import contestants
from children import together, together_each
from contestants import check_each_is_there_once
from statestore import StateStore, UserMessage


@pytest.fixture
def shared(store: StateStore) -> StateStore:
    store.get_or_create_session("alice", "shared")
    return store


def test_two_stores_in_one_process_and_threads_in_several_lose_nothing(
    database: Path, shared: StateStore, opened: Callable[..., StateStore]
) -> None:
    second = opened()
    mine: dict[str, list[int]] = {"first": [], "second": []}

    def append(name: str) -> None:
        store = shared if name == "first" else second
        mine[name] = [store.append("shared", UserMessage(f"{name}:{turn}"))[0] for turn in range(100)]

    results: list[dict[str, list[int]]] = []
    contest = threading.Thread(
        target=lambda: results.extend(
            together(
                "spawn",
                contestants.append_in_threads,
                [(str(database), "shared", writer, 4, 20) for writer in "XYZ"],
            )
        )
    )
    contest.start()
    contestants.in_threads(append, list(mine))
    contest.join()
    assert len(results) == 3
    told = mine | {name: numbers for own in results for name, numbers in own.items()}
    check_each_is_there_once(shared, {name: len(numbers) for name, numbers in told.items()}, told)
    assert len(told) == 2 + 3 * 4


def test_four_processes_count_in_one_metadata_key_and_every_count_counts(database: Path, shared: StateStore) -> None:
    together("fork", contestants.count_in_metadata, [(str(database), "shared", 25)] * 4)
    session = shared.load_session("shared")
    assert session is not None
    assert session.get_metadata("count") == 100


def test_keyed_appends_of_four_processes_are_stored_once(database: Path, shared: StateStore) -> None:
    results = together("fork", contestants.append_with_keys, [(str(database), "shared", 25, 3)] * 4)
    (told,) = {tuple(numbers) for own in results for numbers in own}
    assert sorted(told) == seqs(shared, "shared") == list(range(1, 26))
    assert said(shared, "shared") == [f"key-{turn}" for _, turn in sorted(zip(told, range(25), strict=True))]
    assert shared.check() == []


@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_six_processes_that_make_one_store_at_once_make_one(start_method: str, database: Path) -> None:
    arguments = [(str(database), writer) for writer in "ABCDEF"]
    told = together(start_method, contestants.open_and_greet, arguments)
    assert sorted(told) == [[seq] for seq in range(1, 7)]
    with StateStore.open(database) as store:
        assert sorted(said(store, "shared")) == list("ABCDEF")
        assert store.check() == []


def test_opening_a_store_twice_leaves_the_first_ones_locks(database: Path, shared: StateStore) -> None:
    """A process that closes any descriptor of a file gives up all its locks on it, SQLite's too."""
    log = Path(f"{database}-wal")
    shared.append("shared", UserMessage("A:0"))
    for options in ({}, {"read_only": True}, {"create": False}):
        StateStore.open(database, **options).close()
        before = log.stat().st_ino
        # an interpreter of its own, which opens, writes and, if it takes itself for the last one, removes the log
        together("spawn", contestants.append_many, [(str(database), "shared", "B", 1)])
        assert log.exists(), f"another process took itself for the last one: {options}"
        assert log.stat().st_ino == before
    shared.append("shared", UserMessage("A:1"))
    read = together("spawn", contestants.read_all, [(str(database), "shared")])
    assert read == [["A:0", "B:0", "B:0", "B:0", "A:1"]]


def test_one_who_only_reads_sees_whole_batches_whether_others_have_the_store_open_or_not(database: Path) -> None:
    with StateStore.open(database) as store:
        store.get_or_create_session("alice", "shared")
    writes, *reads = together_each(
        "fork",
        [
            (contestants.open_write_and_close, (str(database), 150)),
            (contestants.read_until_done, (str(database),)),
            (contestants.read_until_done, (str(database),)),
        ],
    )
    assert writes == 150
    assert min(reads) > 10
    with StateStore.open(database) as store:
        assert len(said(store, "shared")) == 300
        assert store.check() == []
