"""Searching: texts that are more than PostgreSQL's own index of words can hold, and how that index is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from postgres_hooks import forget_after_looking, note_statements, run_in

from statestore import AsyncStateStore, SearchHit, StateStore, StoreUnavailable, UserMessage
from statestore.engines.postgres import catching_up, indexing

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


def test_changes_that_are_forgotten_while_they_are_indexed_are_found_nevertheless(
    url: str, store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.get_or_create_session("alice", "a")
    assert store.search_sessions("zebra") == []
    store.append("a", UserMessage("zebra"))
    store.get_or_create_session("alice", "b")
    for number in range(5):
        store.append("b", UserMessage(f"horse {number}"))
    forget_after_looking(monkeypatch, catching_up, url, kept=2)
    assert [hit.session_id for hit in store.search_sessions("zebra")] == ["a"]


def test_what_another_store_indexes_while_a_reader_searches_is_found_once(
    store: StateStore, opened: Callable[..., StateStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    store.get_or_create_session("alice", "s")
    store.append("s", UserMessage("zebra one"))
    assert len(store.search_sessions("zebra")) == 1
    store.append("s", UserMessage("zebra two"))
    look_up = indexing.pending_of

    async def look_up_and_wait(*asked: Any, **options: Any) -> Any:
        pending = await look_up(*asked, **options)
        monkeypatch.undo()
        assert len(store.search_sessions("zebra")) == 2
        return pending

    reader = opened(read_only=True)
    monkeypatch.setattr(indexing, "pending_of", look_up_and_wait)
    assert sorted(hit.seq or 0 for hit in reader.search_sessions("zebra")) == [1, 2]


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the index does not have yet is gone through a few records and sessions at a time."""
    monkeypatch.setattr(indexing, "RECORDS_A_STEP", 3)
    monkeypatch.setattr(indexing, "SESSIONS_A_STEP", 2)


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("is_indexed", [False, True])
def test_a_reader_finds_the_same_in_the_same_order_as_who_may_write_in_however_many_steps(
    store: StateStore, opened: Callable[..., StateStore], is_indexed: bool
) -> None:
    for number in range(7):
        session = store.get_or_create_session("alice", f"s{number}")
        session.set_metadata("title", "zebra " * number)
        store.save_session(session)
        store.append(session.id, *(UserMessage("a zebra " * count + "here") for count in range(number)))
    if is_indexed:
        store.search_sessions("zebra")
        for number in range(0, 7, 2):
            store.append(f"s{number}", UserMessage("one more zebra"))
            session = store.load_session(f"s{number}")
            assert session is not None
            session.set_metadata("title", "no horse" if number % 4 else "another zebra")
            store.save_session(session)
    reader = opened(read_only=True)
    found = {query: _all_hits(reader, query) for query in ("zebra", '"a zebra"', "zeb*", "another", "no horse")}
    assert len(found["zebra"]) > 20
    assert found == {query: _all_hits(store, query) for query in found}


def _all_hits(store: StateStore, query: str) -> list[SearchHit]:
    """The hits of a query, asked for a few at a time."""
    hits: list[SearchHit] = []
    while page := store.search_sessions(query, limit=4, after=hits[-1].cursor if hits else None):
        hits += page
    return hits


@pytest.mark.usefixtures("small_steps")
def test_a_reader_sends_along_only_what_has_the_words_and_no_more_than_a_step_of_it(
    store: StateStore, opened: Callable[..., StateStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    store.get_or_create_session("alice", "s")
    store.append("s", *(UserMessage(f"zebra number{number}") for number in range(12)))
    reader = opened(read_only=True)
    noted = note_statements(monkeypatch)
    assert [hit.seq for hit in reader.search_sessions("number7")] == [8]
    assert noted.count("search") == 2, "in the index, and for the one step that has it"
    noted.clear()
    assert len(reader.search_sessions("zebra", limit=50)) == 12
    assert noted.count("search") == 1 + 12 // 3


def test_a_long_text_is_cut_into_words_beside_the_event_loop(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    form = indexing.indexed_form
    in_the_loop: list[str] = []

    def noted_form(text: str, *wanted: Any) -> Any:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            in_the_loop.append(text)
        return form(text, *wanted)

    monkeypatch.setattr(indexing, "indexed_form", noted_form)

    async def work() -> None:
        async with AsyncStateStore.open(url) as store:
            await store.get_or_create_session("alice", "s")
            await store.append("s", UserMessage("zebra " * 10_000))
            assert len(await store.search_sessions("zebra")) == 1
            assert in_the_loop == []
            await store.append("s", UserMessage("a zebra"))
            assert len(await store.search_sessions("zebra")) == 2
            assert in_the_loop == ["a zebra"], "for so little no thread is worth its while"

    asyncio.run(work())


def test_what_was_indexed_before_a_search_failed_need_not_be_indexed_again(
    url: str, store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.get_or_create_session("alice", "s")
    for number in range(4):
        store.append("s", UserMessage("x" * 600_000 + f" zebra{number}"))
    form = indexing.indexed_form

    def form_of_some(text: str, *wanted: Any) -> Any:
        if text.endswith("zebra3"):
            raise StoreUnavailable("no longer there")
        return form(text, *wanted)

    with monkeypatch.context() as patch, pytest.raises(StoreUnavailable, match="no longer there"):
        patch.setattr(indexing, "indexed_form", form_of_some)
        store.search_sessions("zebra*")
    assert run_in(url, "SELECT seq FROM words ORDER BY seq") == [(1,), (2,)]
    assert len(store.search_sessions("zebra*")) == 4
