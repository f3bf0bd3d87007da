"""Many processes that write one thing: nothing is lost, nothing is twice, nobody gets an error."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Callable

import pytest
import valkey_contestants as contestants

from statestore import Session, StateStore

WRITERS = "ABCD"
Contestant = Callable[[str, str, int], list[int]]


def contest(work: Contestant, url: str, count: int) -> dict[str, list[int]]:
    """What each of some processes was told."""
    with multiprocessing.get_context("spawn").Pool(len(WRITERS)) as pool:
        told = pool.starmap(work, [(url, writer, count) for writer in WRITERS], chunksize=1)
    return dict(zip(WRITERS, told, strict=True))


def said(store: StateStore, session_id: str) -> dict[int, str]:
    return {entry.seq: entry.record.content for entry in store.timeline(session_id)}  # type: ignore[union-attr]


@pytest.fixture(params=["server", "cluster"])
def shared(request: pytest.FixtureRequest) -> str:
    """A store with a session that all share."""
    url: str = request.getfixturevalue("url" if request.param == "server" else "cluster_url")
    with StateStore.open(url) as store:
        store.save_session(Session.with_id("alice", "shared"))
    return url


@pytest.mark.parametrize("work", [contestants.append_to_one, contestants.append_by_tasks])
def test_processes_keep_every_message(shared: str, work: Contestant) -> None:
    told = contest(work, shared, 100)
    with StateStore.open(shared) as store:
        found = said(store, "shared")
        assert sorted(found) == list(range(1, 401))
        for writer, numbers in told.items():
            assert {found[number] for number in numbers} == {f"{writer}:{turn}" for turn in range(100)}
        (summary,) = store.list_sessions()
        assert summary.message_count == 400
        assert store.check() == []


def test_a_key_is_stored_once_whoever_brings_it(shared: str) -> None:
    told = contest(contestants.append_with_keys, shared, 50)
    with StateStore.open(shared) as store:
        assert sorted(said(store, "shared").values()) == sorted(f"all:{turn}" for turn in range(50))
    assert len({tuple(numbers) for numbers in told.values()}) == 1


def test_counting_together_counts_right(shared: str) -> None:
    contest(contestants.count_up, shared, 15)
    with StateStore.open(shared) as store:
        session = store.load_session("shared")
        assert session is not None
        assert session.metadata["n"] == 15 * len(WRITERS)


def test_one_process_creates_a_session(shared: str) -> None:
    told = contest(contestants.create_one, shared, 20)
    winners = Counter(turn for won in told.values() for turn in won)
    assert winners == Counter(range(20))
    with StateStore.open(shared) as store:
        for writer, won in told.items():
            assert all(said(store, f"new-{turn}") == {1: writer} for turn in won)
        assert store.count_sessions() == 21
        assert store.check() == []
