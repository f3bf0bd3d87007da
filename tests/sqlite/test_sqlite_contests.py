"""Many writers of one thing, in processes and threads: nothing is lost, nothing is twice, nobody gets an error."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlite_hooks import said, seqs, verdict

import contestants
from children import together, together_each
from statestore import StateStore, UserMessage

START_METHODS = ("fork", "spawn")
WRITERS = "ABCDEFGH"


def _check_all_there(store: StateStore, writers: dict[str, int], told: dict[str, list[int]]) -> None:
    numbers = seqs(store, "shared")
    assert numbers == sorted(set(numbers))
    by_writer: dict[str, list[tuple[int, int]]] = {writer: [] for writer in writers}
    for seq, word in zip(numbers, said(store, "shared"), strict=True):
        writer, _, turn = word.partition(":")
        by_writer[writer].append((int(turn), seq))
    for writer, count in writers.items():
        assert [turn for turn, _ in by_writer[writer]] == list(range(count))
        if writer in told:
            assert [seq for _, seq in by_writer[writer]] == told[writer]
    assert len(numbers) == sum(writers.values())
    (summary,) = store.list_sessions()
    assert summary.message_count == len(numbers)
    assert store.check() == []


@pytest.fixture
def shared(store: StateStore) -> StateStore:
    store.get_or_create_session("alice", "shared")
    return store


@pytest.mark.parametrize("start_method", START_METHODS)
def test_eight_processes_append_800_messages_and_each_is_there_once(
    start_method: str, database: Path, shared: StateStore
) -> None:
    arguments = [(str(database), "shared", writer, 100) for writer in WRITERS]
    told = together(start_method, contestants.append_many, arguments)
    _check_all_there(shared, dict.fromkeys(WRITERS, 100), dict(zip(WRITERS, told, strict=True)))
    shared.close()
    assert verdict(database) == "ok"


def test_eight_processes_load_add_and_save_and_each_message_is_there_once(database: Path, shared: StateStore) -> None:
    together("fork", contestants.save_many, [(str(database), "shared", writer, 60) for writer in WRITERS])
    _check_all_there(shared, dict.fromkeys(WRITERS, 60), {})


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
    _check_all_there(shared, {name: len(numbers) for name, numbers in told.items()}, told)
    assert len(told) == 2 + 3 * 4


def test_four_processes_count_in_one_metadata_key_and_every_count_counts(database: Path, shared: StateStore) -> None:
    together("fork", contestants.count_in_metadata, [(str(database), "shared", 25)] * 4)
    session = shared.load_session("shared")
    assert session is not None
    assert session.get_metadata("count") == 100


def test_three_processes_replace_one_document_and_no_update_is_lost(database: Path, shared: StateStore) -> None:
    results = together("fork", contestants.count_in_document, [(str(database), 50)] * 3)
    successes = sorted((success for own in results for success in own), key=lambda success: success[2])
    assert [value for _, _, value, _ in successes] == list(range(1, 151))
    assert shared.load_json("counters", "one") == 150
    version = ""
    for value, based_on, new_value, new_version in successes:
        assert new_value == value + 1
        assert based_on == version
        version = new_version
    assert len({new for *_, new in successes}) == 150


def test_keyed_appends_of_four_processes_are_stored_once(database: Path, shared: StateStore) -> None:
    results = together("fork", contestants.append_with_keys, [(str(database), "shared", 25, 3)] * 4)
    (told,) = {tuple(numbers) for own in results for numbers in own}
    assert sorted(told) == seqs(shared, "shared") == list(range(1, 26))
    assert said(shared, "shared") == [f"key-{turn}" for _, turn in sorted(zip(told, range(25), strict=True))]
    assert shared.check() == []


def test_four_processes_with_one_new_id_get_one_session(database: Path, store: StateStore) -> None:
    session_ids = [f"new-{number}" for number in range(25)]
    arguments = [(str(database), writer, session_ids) for writer in "ABCD"]
    results = together("fork", contestants.create_and_greet, arguments)
    for place, session_id in enumerate(session_ids):
        session = store.load_session(session_id)
        assert session is not None
        assert {told[place] for told in results} == {session.created_text}
        assert sorted(message.content for message in session.user_messages) == list("ABCD")
    assert store.count_sessions() == 25


def test_what_was_saved_survives_a_prune_that_runs_meanwhile(database: Path, store: StateStore) -> None:
    here = str(database)
    first, second, _ = together_each(
        "fork",
        [
            (contestants.revive_many, (here, "A", 80)),
            (contestants.revive_many, (here, "B", 80)),
            (contestants.prune_all_the_time, (here, 2)),
        ],
    )
    for session_id in (*first, *second):
        assert said(store, session_id) == ["I am still here"]
    assert {summary.id for summary in store.list_sessions()} == {*first, *second}
    assert store.check() == []


@pytest.mark.parametrize("start_method", START_METHODS)
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
