"""What is long, odd or many is stored as in every other engine."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any, cast
from uuid import uuid4

import pytest
from postgres_hooks import connected, run_in

from statestore import CorruptSession, DocumentConflict, InvalidValue, PruneConfig, Session, StateStore
from statestore.conformance.changes import appended, created, put, user
from statestore.engine import Change, DeleteCategory, DeleteDocument, GroupCommits
from statestore.engines.postgres.batches import arguments
from statestore.engines.postgres.statements import SQL
from statestore.engines.versions import new_version
from statestore.opening import engine_for


def _seconds_for(store: StateStore, count: int) -> float:
    sessions = [Session("alice", f"{count}-{number}") for number in range(count)]
    for session in sessions:
        session.parent_session_id = "parent"
        session.set_metadata("number", session.id)
    start = time.perf_counter()
    with store.batch() as batch:
        for session in sessions:
            batch.save_session(session)
    return time.perf_counter() - start


def test_ten_times_as_many_sessions_with_metadata_in_a_batch_take_about_ten_times_as_long(store: StateStore) -> None:
    few = min(_seconds_for(store, 298), _seconds_for(store, 299), _seconds_for(store, 300))
    many = _seconds_for(store, 3000)
    assert many < 30 * few
    loaded = store.load_session("3000-2999")
    assert loaded is not None
    assert loaded.get_metadata("number") == "3000-2999"
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
    assert len(store.prune_sessions(PruneConfig(max_sessions=1), dry_run=True)) == 1
    (problem,) = store.check()
    assert problem.where == "session b"
    assert f"its {label} is not UTF-8" in problem.what
    if label == "project_id":
        with pytest.raises(CorruptSession, match="session b"):
            store.load_session("b")


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
