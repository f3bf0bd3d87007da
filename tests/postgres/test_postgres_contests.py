"""Many writers of one thing, in many processes: nothing is lost, nothing is twice, nobody gets an error."""

from __future__ import annotations

import pytest
from postgres_hooks import drop_schema, said

import contestants
from children import together, together_each
from statestore import StateStore

WRITERS = "ABCDEF"


@pytest.fixture
def shared(store: StateStore) -> StateStore:
    store.get_or_create_session("alice", "shared")
    return store


@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_six_processes_append_and_each_message_is_there_once(start_method: str, url: str, shared: StateStore) -> None:
    arguments = [(url, "shared", writer, 60) for writer in WRITERS]
    told = together(start_method, contestants.append_many, arguments)
    found = [(entry.seq, entry.record.content) for entry in shared.timeline("shared")]  # type: ignore[union-attr]
    assert [seq for seq, _ in found] == list(range(1, 361))
    for writer, numbers in zip(WRITERS, told, strict=True):
        mine = [(seq, f"{writer}:{turn}") for turn, seq in enumerate(numbers)]
        assert [pair for pair in found if pair[1].startswith(writer)] == mine
    assert shared.check() == []


def test_six_processes_load_add_and_save_and_each_message_is_there_once(url: str, shared: StateStore) -> None:
    together("fork", contestants.save_many, [(url, "shared", writer, 30) for writer in WRITERS])
    assert sorted(said(shared, "shared")) == sorted(f"{writer}:{turn}" for writer in WRITERS for turn in range(30))
    assert shared.check() == []


def test_threads_of_several_processes_lose_nothing(url: str, shared: StateStore) -> None:
    told = together("spawn", contestants.append_in_threads, [(url, "shared", writer, 4, 20) for writer in "XYZ"])
    numbers = sorted(seq for own in told for seqs in own.values() for seq in seqs)
    assert numbers == list(range(1, 241))
    assert len(said(shared, "shared")) == 240


def test_four_processes_count_in_one_metadata_key_and_every_count_counts(url: str, shared: StateStore) -> None:
    together("fork", contestants.count_in_metadata, [(url, "shared", 20)] * 4)
    session = shared.load_session("shared")
    assert session is not None
    assert session.get_metadata("count") == 80


def test_three_processes_replace_one_document_and_no_update_is_lost(url: str, shared: StateStore) -> None:
    results = together("fork", contestants.count_in_document, [(url, 30)] * 3)
    successes = sorted((success for own in results for success in own), key=lambda success: success[2])
    assert [value for _, _, value, _ in successes] == list(range(1, 91))
    assert shared.load_json("counters", "one") == 90


def test_keyed_appends_of_four_processes_are_stored_once(url: str, shared: StateStore) -> None:
    results = together("fork", contestants.append_with_keys, [(url, "shared", 15, 3)] * 4)
    (told,) = {tuple(numbers) for own in results for numbers in own}
    assert sorted(told) == list(range(1, 16))
    assert len(said(shared, "shared")) == 15
    assert shared.check() == []


def test_four_processes_with_one_new_id_get_one_session(url: str, store: StateStore) -> None:
    session_ids = [f"new-{number}" for number in range(15)]
    results = together("fork", contestants.create_and_greet, [(url, writer, session_ids) for writer in "ABCD"])
    for place, session_id in enumerate(session_ids):
        assert len({own[place] for own in results}) == 1
        assert sorted(said(store, session_id)) == list("ABCD")


def test_batches_of_many_items_are_seen_whole_and_never_wait_in_a_circle(url: str, store: StateStore) -> None:
    for name in contestants.FIVE:
        store.save_json("five", name, 0)
        store.get_or_create_session("alice", name)
    works = [(contestants.batch_up, (url, 10))] * 3
    works += [(contestants.read_five, (url, order, 3)) for order in ("abcde", "edcba")]  # type: ignore[list-item]
    results = together_each("fork", works)
    for seen in results[3:]:
        assert seen
        assert all(row == sorted(row) for row in seen), "what is read later is not older"
    assert store.load_json("five", "e") == 30


def test_what_is_revived_while_others_prune_lives(url: str, store: StateStore) -> None:
    works = [(contestants.revive_many, (url, writer, 15)) for writer in "AB"]
    works += [(contestants.prune_all_the_time, (url, 2))]  # type: ignore[list-item]
    *kept, pruned = together_each("fork", works)
    alive = {summary.id for summary in store.list_sessions()}
    assert alive == {session_id for own in kept for session_id in own}
    assert pruned == 30 - len(alive)


@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_ten_processes_open_what_is_not_there_yet_and_write_at_once(start_method: str, url: str) -> None:
    for turn in range(3 if start_method == "fork" else 1):
        told = together(start_method, contestants.open_and_greet, [(url, f"w{number}") for number in range(10)])
        assert sorted(seq for (seq,) in told) == list(range(1, 11)), turn
        with StateStore.open(url, create=False) as store:
            assert sorted(said(store, "shared")) == sorted(f"w{number}" for number in range(10))
        drop_schema(url)
