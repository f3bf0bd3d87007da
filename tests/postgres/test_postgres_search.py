"""Searching: texts that are more than PostgreSQL's own index of words can hold, and how that index is kept."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Sequence
from typing import Any

import asyncpg
import pytest
from postgres_hooks import forget_after_looking, note_statements, run_in

from statestore import AsyncStateStore, SearchHit, StateStore, StoreUnavailable, UserMessage
from statestore.engines.postgres import catching_up, cutting, indexing
from statestore.engines.postgres.lexemes import LAST_POSITION, MOST_PLACES, indexed_form
from statestore.engines.postgres.statements import SQL

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


@pytest.mark.parametrize(
    ("text", "lexemes"),
    [
        ("So, so: it's", "'it':3 's':4 'so':1,2"),
        ("東京 tokyo 東京都", "'tokyo':3 '京':2 '京都':5 '東京':1,4 '都':6"),
        ("echo " * MOST_PLACES, f"'echo':{','.join(map(str, range(1, MOST_PLACES + 1)))}"),
    ],
)
def test_a_text_is_indexed_with_all_places_of_its_words(url: str, store: StateStore, text: str, lexemes: str) -> None:
    store.get_or_create_session("alice", "s")
    store.append("s", UserMessage(text))
    store.search_sessions("echo")
    assert run_in(url, "SELECT lexemes::text, line FROM words") == [(lexemes, None)]


@pytest.mark.parametrize(
    ("text", "is_long"),
    [
        ("echo " * MOST_PLACES + "zebra", False),
        ("echo " * (MOST_PLACES + 1) + "zebra", True),
        (" ".join(f"w{number}" for number in range(LAST_POSITION)), False),
        (" ".join(f"w{number}" for number in range(LAST_POSITION + 1)), True),
        (" ".join(f"{number:060}" for number in range(7000)), False),
        (" ".join(f"{number:060}" for number in range(8000)), True),
    ],
)
def test_only_a_text_of_which_a_tsvector_cannot_tell_all_is_kept_as_a_line_besides(text: str, is_long: bool) -> None:
    form = indexed_form(text)
    assert form is not None
    assert (form.line is not None) == is_long


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
    form = cutting.indexed_form
    in_the_loop: list[str] = []

    def noted_form(text: str, *wanted: Any) -> Any:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            in_the_loop.append(text)
        return form(text, *wanted)

    monkeypatch.setattr(cutting, "indexed_form", noted_form)

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


def test_words_are_cut_while_the_server_is_busy_with_those_before_them(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cutting, "BYTES_A_PIECE", 1)
    form = cutting.indexed_form
    cut: list[str] = []
    added: list[Sequence[int]] = []
    execute = asyncpg.Connection.execute

    def noted_form(text: str, *wanted: Any) -> Any:
        cut.append(text)
        return form(text, *wanted)

    async def note_and_execute(connection: Any, query: str, *values: Any) -> Any:
        if query == SQL["add_words"]:
            added.append(values[2])
            while len(cut) < min(len(added) + 1, 3):  # noqa: ASYNC110 - until the next one is cut
                await asyncio.sleep(0)
            assert len(cut) == min(len(added) + 1, 3), "no more than one ahead"
        return await execute(connection, query, *values)

    async def work() -> None:
        async with AsyncStateStore.open(url) as store:
            await store.get_or_create_session("alice", "s")
            await store.append("s", *(UserMessage(f"zebra {number}") for number in range(3)))
            monkeypatch.setattr(cutting, "indexed_form", noted_form)
            monkeypatch.setattr(asyncpg.Connection, "execute", note_and_execute)
            async with asyncio.timeout(30):
                assert len(await store.search_sessions("zebra")) == 3
        assert added == [(1,), (2,), (3,)]

    asyncio.run(work())


def test_a_search_that_is_cancelled_while_words_are_cut_ahead_leaves_nothing_behind(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cutting, "BYTES_A_PIECE", 1)
    execute = asyncpg.Connection.execute
    is_adding = asyncio.Event()

    async def stay_at_it(connection: Any, query: str, *values: Any) -> Any:
        if query == SQL["add_words"]:
            is_adding.set()
            await asyncio.Event().wait()
        return await execute(connection, query, *values)

    async def work() -> None:
        async with AsyncStateStore.open(url) as store:
            await store.get_or_create_session("alice", "s")
            await store.append("s", *(UserMessage(f"zebra {number} " + "horse " * 10_000) for number in range(3)))
            with monkeypatch.context() as patch:
                patch.setattr(asyncpg.Connection, "execute", stay_at_it)
                search = asyncio.create_task(store.search_sessions("zebra"))
                await is_adding.wait()
                assert "statestore-cutting" in {task.get_name() for task in asyncio.all_tasks()}
                search.cancel()
                await asyncio.wait([search])
                await asyncio.sleep(0)
                assert "statestore-cutting" not in {task.get_name() for task in asyncio.all_tasks()}
            assert len(await store.search_sessions("zebra")) == 3

    asyncio.run(work())
    gc.collect()
    assert caplog.records == []


def test_what_was_indexed_before_a_search_failed_need_not_be_indexed_again(
    url: str, store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.get_or_create_session("alice", "s")
    for number in range(4):
        store.append("s", UserMessage("x" * 600_000 + f" zebra{number}"))
    form = cutting.indexed_form

    def form_of_some(text: str, *wanted: Any) -> Any:
        if text.endswith("zebra3"):
            raise StoreUnavailable("no longer there")
        return form(text, *wanted)

    with monkeypatch.context() as patch, pytest.raises(StoreUnavailable, match="no longer there"):
        patch.setattr(cutting, "indexed_form", form_of_some)
        store.search_sessions("zebra*")
    assert run_in(url, "SELECT seq FROM words ORDER BY seq") == [(1,), (2,)]
    assert len(store.search_sessions("zebra*")) == 4
