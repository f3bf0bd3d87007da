"""Searching texts that are more than PostgreSQL's own index of words can hold."""

from __future__ import annotations

import pytest
from postgres_hooks import run_in

from statestore import StateStore, UserMessage

TEXTS = {
    "many words": " ".join(f"w{number}" for number in range(20_000)) + " the striped zebra",
    "one word often": "echo " * 1000 + "echo zebra echo",
    "more than a megabyte": " ".join(f"{number:x}beef{number * 7919:x}" for number in range(120_000))
    + " zebra crossing",
    "one long word": "x" * 100_000 + " zebra",
}


@pytest.fixture
def filled(store: StateStore) -> StateStore:
    for name, text in TEXTS.items():
        store.get_or_create_session("alice", name)
        store.append(name, UserMessage(text))
    return store


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("zebra", set(TEXTS)),
        ('"striped zebra"', {"many words"}),
        ('"the zebra"', set()),
        ('"w19998 w19999 the"', {"many words"}),
        ('"w19999 w19998"', set()),
        ("w19999 zebra", {"many words"}),
        ('"echo zebra"', {"one word often"}),
        ('"echo zebra echo"', {"one word often"}),
        ('"zebra cross"*', {"more than a megabyte"}),
        ("0beef0 zebra", {"more than a megabyte"}),
        (f"{119_999:x}beef{119_999 * 7919:x}", {"more than a megabyte"}),
        (f"{119_999:x}bee* crossing", {"more than a megabyte"}),
        ("x" * 100_000, {"one long word"}),
    ],
)
def test_what_is_too_long_for_the_index_is_found_exactly(filled: StateStore, query: str, expected: set[str]) -> None:
    hits = filled.search_sessions(query)
    assert {hit.session_id for hit in hits} == expected
    assert all(hit.marks for hit in hits)


def test_an_index_made_by_other_rules_is_made_anew(url: str, store: StateStore) -> None:
    store.get_or_create_session("alice", "s")
    store.append("s", UserMessage("zebra"))
    assert len(store.search_sessions("zebra")) == 1
    run_in(url, "UPDATE words SET lexemes = '''horse'':1'")
    assert store.search_sessions("zebra") == []
    run_in(url, "UPDATE indexing SET rules = rules + 1000")
    assert len(store.search_sessions("zebra")) == 1


def test_an_index_that_fell_behind_what_is_kept_is_made_anew(url: str, store: StateStore) -> None:
    store.get_or_create_session("alice", "s")
    store.append("s", UserMessage("zebra one"), UserMessage("zebra two"))
    assert len(store.search_sessions("zebra")) == 2
    store.rewind_session("s", to=1)
    for number in range(5):
        store.append("s", UserMessage(f"horse {number}"))
    run_in(url, "SELECT tidy_up(2)")
    assert [hit.seq for hit in store.search_sessions("zebra")] == [1]
    assert len(store.search_sessions("horse")) == 5
    assert run_in(url, "SELECT count(*) FROM words WHERE seq = 2") == [(0,)]
