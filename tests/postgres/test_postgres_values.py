"""What is long, odd or many is stored as in every other engine."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any, Literal, cast
from uuid import uuid4

import pytest
from postgres_hooks import connected, note_statements, run_in

from statestore import CorruptSession, DocumentConflict, InvalidValue, PruneConfig, Session, StateStore
from statestore.conformance.changes import appended, created, put, user
from statestore.engine import Change, DeleteCategory, DeleteDocument, GroupCommits, SessionQuery
from statestore.engines.postgres.batches import arguments
from statestore.engines.postgres.checking import GROUP, GROUP_BYTES
from statestore.engines.postgres.listing import list_sessions
from statestore.engines.postgres.reading import read_sessions
from statestore.engines.postgres.statements import SQL
from statestore.engines.versions import new_version
from statestore.opening import engine_for
from statestore.stored import Cursor


def _seconds_for(store: StateStore, name: str, count: int) -> float:
    sessions = [Session("alice", f"{name}-{number}") for number in range(count)]
    for session in sessions:
        session.parent_session_id = "parent"
        session.set_metadata("number", session.id)
    start = time.perf_counter()
    with store.batch() as batch:
        for session in sessions:
            batch.save_session(session)
    return time.perf_counter() - start


def test_ten_times_as_many_sessions_with_metadata_in_a_batch_take_about_ten_times_as_long(store: StateStore) -> None:
    """Ten small batches are measured beside a large one: whatever else the machine does slows down both."""
    small, large = [], []
    for turn in "ab":
        small.append(sum(_seconds_for(store, f"small-{turn}-{part}", 300) for part in range(10)))
        large.append(_seconds_for(store, f"large-{turn}", 3000))
    assert min(large) < 3 * min(small)
    loaded = store.load_session("large-b-2999")
    assert loaded is not None
    assert loaded.get_metadata("number") == "large-b-2999"
    assert loaded.parent_session_id == "parent"
    assert store.check() == []


def test_a_parent_of_any_length_is_stored_and_found(url: str, store: StateStore) -> None:
    parents = ["p" * 12_000, "".join(f"{number:x}" for number in range(60_000)), "a\0b", "short"]
    for number, parent in enumerate(parents):
        session = Session("alice", f"s{number}")
        session.parent_session_id = parent
        store.save_session(session)
    for number, parent in enumerate(parents):
        assert [found.id for found in store.list_sessions(parent_session_id=parent)] == [f"s{number}"]
    plan = run_in(
        url,
        "SET enable_seqscan = off",
        "EXPLAIN SELECT 1 FROM sessions WHERE sha256(parent_session_id) = sha256('p') AND parent_session_id = 'p'",
    )
    assert "sessions_children" in str(plan)


def test_a_project_of_any_length_is_found_by_index(url: str, store: StateStore) -> None:
    projects = ["p" * 12_000, "".join(f"{number:x}" for number in range(60_000)), "a\0b", "short"]
    for number, project in enumerate(projects):
        session = Session("alice", f"s{number}")
        session.set_metadata("project_id", project)
        store.save_session(session)
    for number, project in enumerate(projects):
        for owner in (None, "alice"):
            found = store.list_sessions(project_id=project, user_id=owner)
            assert [summary.id for summary in found] == [f"s{number}"]
        assert store.count_sessions(project_id=project) == 1
    project = "coalesce(project_id, project, projects)"
    plan = run_in(
        url,
        "SET enable_seqscan = off",
        f"EXPLAIN SELECT 1 FROM sessions WHERE {project} = 'p' AND sha256({project}) = sha256('p') "
        "ORDER BY age, age_rest, id LIMIT 1",
    )
    assert "sessions_newest_of_project" in str(plan)
    assert "Sort" not in str(plan)


def test_the_categories_below_one_are_listed_without_looking_at_what_they_hold(url: str, store: StateStore) -> None:
    below = ["notes", "notes/2023", "notes/2024", "notes/2024/may"]
    for category in (*below, "note", "notes-old", "notes0", "notesy/2024", "other"):
        for number in range(20):
            store.save_json(category, f"n{number}", number)
    assert store.list_categories("notes") == below
    assert store.list_categories("notes/2023") == below[1:2]
    assert store.list_categories("notes/2") == []
    assert len(store.list_categories()) == 9
    ((plan,),) = run_in(
        url,
        "SET enable_seqscan = off",
        f"PREPARE listing (text, text) AS {SQL['categories']}",
        "EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE listing ('notes', 'notes/')",
    )
    assert 4 <= _documents_read(json.loads(plan)[0]["Plan"]) <= 6


def _documents_read(plan: dict[str, Any]) -> int:
    """How many documents the steps of a plan have looked at."""
    own = plan["Actual Rows"] * plan["Actual Loops"] if plan.get("Relation Name") == "documents" else 0
    return round(own) + sum(_documents_read(part) for part in plan.get("Plans", ()))


def test_outcomes_that_are_still_kept_are_not_looked_at_when_old_ones_are_forgotten(
    url: str, store: StateStore
) -> None:
    store.save_json("notes", "n", 1)
    run_in(url, "INSERT INTO tokens VALUES (gen_random_uuid(), now() - interval '61 minutes', '')", "SELECT 1")
    run_in(url, "SELECT tidy_up(100)")
    assert run_in(url, "SELECT outcomes <> '' FROM tokens") == [(True,)]
    plan = run_in(
        url,
        "SET enable_seqscan = off",
        "SET enable_bitmapscan = off",
        "EXPLAIN DELETE FROM tokens WHERE made < now() - interval '1 hour'",
    )
    assert "tokens_oldest" in str(plan)


@pytest.mark.parametrize("version", ["a\0b", "\ud800", ""])
def test_a_version_that_was_never_given_out_is_a_conflict(store: StateStore, version: str) -> None:
    store.save_json("notes", "n", 1)
    with pytest.raises(DocumentConflict):
        store.save_json("notes", "n", 2, if_version=version)
    assert store.load_json("notes", "n") == 1


def test_what_is_too_large_for_a_message_is_refused_at_once_and_takes_nothing_else_down(url: str) -> None:
    async def work() -> None:
        engine = engine_for(url)
        await engine.open()
        large = put("large", bytes(2**30))
        refused, made = await cast("GroupCommits", engine).commit_group([[large], [put("small")]])
        assert isinstance(refused, InvalidValue)
        assert isinstance(made, list)
        await engine.close()

    asyncio.run(work())


GROUPS: dict[str, list[Change]] = {
    "sessions": [appended("s", user("one", key="k")), created("t")],
    "documents": [put("one"), DeleteDocument("notes", "two", "json"), put("new")],
    "a category": [DeleteCategory("notes"), created("t")],
}


@pytest.mark.parametrize("changes", GROUPS.values(), ids=GROUPS.keys())
def test_a_group_of_changes_looks_at_the_documents_that_it_names_and_at_no_others(
    url: str, store: StateStore, changes: list[Change]
) -> None:
    store.get_or_create_session("alice", "s")
    store.save_json("notes", "one", 1)
    store.save_json("notes", "two", 2)
    run_in(
        url,
        "INSERT INTO documents SELECT 'c' || n / 10, 'n' || n, 'json', '00', '{}' FROM generate_series(1, 5000) AS n",
        "ANALYZE documents",
    )
    values = arguments([[change] for change in changes], (new_version() for _ in changes))

    async def looked_at() -> int:
        async with connected(url) as connection, connection.transaction():
            await connection.fetchval(SQL["make_batches"], uuid4(), False, None, *values)
            return await connection.fetchval(
                "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relid = 'documents'::regclass"
            )

    assert asyncio.run(looked_at()) < 50


_MANY_SESSIONS = """
    INSERT INTO sessions (id, number, user_id, version, created, updated, age, age_rest, next_seq, users, agents,
        events, size, project_id, parent_session_id)
    SELECT 's' || n, n, 'u' || n % 9, n, '2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z', -n, 0, 9, 8, 0, 0, 0,
        ('p' || n % 3)::bytea, CASE WHEN n % 7 = 0 THEN ('s' || n / 10)::bytea END
    FROM generate_series(1, 30000) AS n
"""


async def _rows_looked_at(connection: Any, table: str) -> int:
    """How many rows of a table the transaction has looked at."""
    return await connection.fetchval(
        "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relid = $1::text::regclass", table
    )


@pytest.mark.usefixtures("store")
def test_a_page_of_a_listing_looks_at_few_of_many_sessions(url: str) -> None:
    run_in(url, _MANY_SESSIONS, "ANALYZE sessions")
    queries = (
        SessionQuery(limit=20),
        SessionQuery(limit=20, order="id"),
        SessionQuery(limit=20, user_id="u1"),
        SessionQuery(limit=20, project_id="p0"),
        SessionQuery(limit=20, project_id="none"),
        SessionQuery(limit=20, project_id="none", order="id"),
        SessionQuery(limit=20, parent_session_id="s70"),
        SessionQuery(limit=20, parent_session_id="none"),
        SessionQuery(limit=20, top_level=True),
        SessionQuery(limit=20, after=Cursor(2_500_000, "s")),
        SessionQuery(limit=20, updated_since_ns=29_990_000),
    )

    async def looked_at(query: SessionQuery) -> int:
        async with connected(url) as connection, connection.transaction():
            await connection.execute("SET plan_cache_mode = force_generic_plan")  # as the engine does
            await list_sessions(connection, query)
            return await _rows_looked_at(connection, "sessions")

    assert {query: count for query in queries if (count := asyncio.run(looked_at(query))) > 50} == {}


def test_a_check_reads_the_records_of_many_small_sessions_together(
    url: str, store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.batch() as batch:
        for number in range(2 * GROUP + 50):
            session = Session("alice", f"s{number:03}")
            session.add_user_message("x" * (GROUP_BYTES if number == 7 else 10))
            batch.save_session(session)
    run_in(url, "UPDATE records SET body = '{' WHERE id IN ('s006', 's007', 's249')")
    noted = note_statements(monkeypatch)
    found = {problem.where for problem in store.check()}
    assert found >= {"session s006, record 1", "session s007, record 1", "session s249, record 1"}
    assert {where.partition(",")[0] for where in found} == {"session s006", "session s007", "session s249"}
    assert noted.count("check_records") == 5, "before the large one, and it alone, and those after it"


@pytest.mark.parametrize("layout", ["", "{", "[]", r'{"a":"\377"}'])
def test_a_check_tells_of_a_layout_that_is_none(url: str, store: StateStore, layout: str) -> None:
    for name in "ab":
        store.get_or_create_session("alice", name)
    run_in(url, f"UPDATE sessions SET layout = '{layout}' WHERE id = 'b'")
    (problem,) = store.check()
    assert problem.where == "session b"
    assert "its layout is not a JSON object" in problem.what


def test_a_check_tells_of_metadata_that_are_not_utf8(url: str, store: StateStore) -> None:
    for name in "ab":
        store.get_or_create_session("alice", name)
        store.update_session_with(name, lambda session: session.set_metadata("k", "v"))
    run_in(url, r"""UPDATE metadata SET member = '"k":"\377"' WHERE id = 'b'""")
    (problem,) = store.check()
    assert problem.where == "session b"
    assert "its metadata are not a JSON object" in problem.what


@pytest.mark.usefixtures("store")
def test_several_sessions_are_read_without_looking_at_all_records(url: str) -> None:
    records = "SELECT 's' || n, k, 0, '{}' FROM generate_series(1, 30000) AS n, generate_series(1, 8) AS k"
    run_in(url, _MANY_SESSIONS, f"INSERT INTO records {records}", "ANALYZE sessions, records")

    async def looked_at() -> int:
        async with connected(url) as connection, connection.transaction():
            await connection.execute("SET random_page_cost = 100")  # the planner would rather read a table as it lies
            found = await read_sessions(connection, [f"s{number}" for number in range(100, 200)])
            assert len(found) == 100
            return await _rows_looked_at(connection, "records")

    assert asyncio.run(looked_at()) <= 800


@pytest.mark.parametrize("label", ["title", "project_id", "opening"])
def test_a_label_that_is_not_text_costs_its_own_session_and_no_other(
    url: str, store: StateStore, caplog: pytest.LogCaptureFixture, label: str
) -> None:
    for name in "abc":
        session = store.get_or_create_session("alice", name)
        session.add_user_message("a zebra")
        store.save_session(session)
    run_in(url, f"UPDATE sessions SET {label} = '\\xff' WHERE id = 'b'")
    assert sorted(summary.id for summary in store.list_sessions()) == ["a", "c"]
    assert "session b is left out of the listing" in caplog.text
    assert {"a", "c"} <= {hit.session_id for hit in store.search_sessions("zebra")}
    assert ("session b is left out of the hits" in caplog.text) == (label != "project_id")
    assert {record.name for record in caplog.records} == {"statestore"}
    assert len(store.prune_sessions(PruneConfig(max_sessions=1), dry_run=True)) == 1
    (problem,) = store.check()
    assert problem.where == "session b"
    assert f"its {label} is not UTF-8" in problem.what
    if label == "project_id":
        with pytest.raises(CorruptSession, match="session b"):
            store.load_session("b")


@pytest.mark.parametrize("order", ["updated", "id"])
def test_each_of_many_sessions_that_are_left_out_is_looked_at_once(
    url: str,
    store: StateStore,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    order: Literal["updated", "id"],
) -> None:
    run_in(
        url,
        """INSERT INTO sessions (id, number, user_id, version, created, updated, age, age_rest, next_seq, users, agents,
            events, size, title)
        SELECT 's' || lpad(n::text, 5, '0'), n, 'alice', n, '2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z', n / 7,
            n % 7, 1, 0, 0, 0, 0, CASE WHEN n % 100 <> 0 THEN '\\xff'::bytea END
        FROM generate_series(1, 3000) AS n""",
    )
    noted = note_statements(monkeypatch)
    listed = [summary.id for summary in store.list_sessions(limit=3, order=order)]
    assert listed == ["s00100", "s00200", "s00300"]
    assert len(noted) == 2
    left_out = [message for message in caplog.messages if "is left out" in message]
    assert len(left_out) == len(set(left_out))
    assert len(store.list_sessions(limit=31, order=order)) == 30
    assert len(noted) <= 2 + 8


def test_a_session_that_is_left_out_makes_no_page_shorter(url: str, store: StateStore) -> None:
    for number in range(9):
        store.save_session(Session("alice", f"session-{number}"))
    run_in(url, "UPDATE sessions SET updated = 'never' WHERE id IN ('session-1', 'session-7', 'session-8')")
    found: list[str] = []
    after = None
    while page := store.list_sessions(order="id", limit=2, after=after):
        assert len(page) == 2
        found += [summary.id for summary in page]
        after = page[-1].cursor
    assert found == [f"session-{number}" for number in (0, 2, 3, 4, 5, 6)]
