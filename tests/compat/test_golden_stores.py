"""Stores that each release wrote, on every engine: all is there, and work goes on as if nothing had happened."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from compat.described import described, found_words, told_since
from compat.dumps import ENGINES, NAMES, dumped, load
from compat.make_golden import STORES
from faces import Face
from processes import rust_program
from soak.grounds import Ground, fresh
from statestore import PruneConfig, StateStore, UserMessage, copy_store
from statestore.engines.postgres import migrating

RELEASES = sorted(path.name for path in STORES.iterdir())
KEYS = {
    "trip": {"request-1": 1, "ключ": 2},
    "fork": {"request-1": 1, "ключ": 2},
    "gaps": {"key-1": 1, "key-2": 2, "key-3": 3, "key-7": 7},
}
"""The idempotency keys of records that are there."""


@contextmanager
def golden(release: str, engine: str) -> Iterator[Ground]:
    """A golden store, in a place of its own."""
    with fresh(engine) as ground:
        load(ground, STORES / release)
        yield ground


def told(release: str, name: str = "described.json") -> Any:
    return json.loads((STORES / release / name).read_text())


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=ENGINES)
def ground(request: pytest.FixtureRequest, release: str) -> Iterator[Ground]:
    with golden(release, request.param) as ground:
        yield ground


def test_a_golden_store_is_sound_and_holds_what_its_description_says(face: Face, release: str, ground: Ground) -> None:
    store = face.open(ground.target, create=False)
    assert store.check() == []
    assert _plain(described(store)) == told(release)["store"]
    assert found_words(store) in (None, told(release)["words"])


def _plain(description: dict[str, Any]) -> Any:
    return json.loads(json.dumps(description))


def test_a_copy_of_a_golden_store_has_the_bytes_that_it_always_had(release: str, ground: Ground) -> None:
    assert (
        copy_store(ground.target, "memory:").digest == told(release, "engines.json")[ground.engine]["digest of a copy"]
    )


def test_reading_a_golden_store_changes_nothing_in_it(release: str, ground: Ground) -> None:
    before = dumped(ground)
    with StateStore.open(ground.target, read_only=True) as store:
        assert store.check() == []
        assert _plain(described(store)) == told(release)["store"]
        assert found_words(store) in (None, told(release)["words"])
    assert dumped(ground) == before


def test_a_dump_that_was_put_back_is_the_dump(release: str, ground: Ground) -> None:
    """So the loaders, which know nothing of our engines, lose nothing."""
    if ground.engine not in ("files", "postgres"):  # its tables have the form of the release that made them
        assert dumped(ground) == (STORES / release / NAMES[ground.engine]).read_bytes().decode()


def test_a_watch_goes_on_from_a_cursor_that_the_release_gave_out(release: str, ground: Ground) -> None:
    own = told(release, "engines.json")[ground.engine]
    if "cursor" not in own:
        assert ground.engine == "valkey-cluster", "which cannot be watched"
        return
    with StateStore.open(ground.target) as store:
        assert told_since(store, own["cursor"]) == told(release)["since the cursor"]


def test_work_goes_on_in_a_golden_store(ground: Ground) -> None:
    with StateStore.open(ground.target) as store:
        _repeat_requests(store)
        _go_on_talking(store)
        _use_the_trash(store)
        _replace_documents(store)
        _prune(store)
        assert store.check() == []
        now = described(store)
    with StateStore.open(ground.target, read_only=True) as reopened:
        assert reopened.check() == []
        assert described(reopened) == now
    if ground.engine == "files":
        _read_by_the_rust_program(Path(ground.target.removeprefix("file:")), now)


def _repeat_requests(store: StateStore) -> None:
    """What was acknowledged by the old release is acknowledged again, and not stored twice."""
    for session_id, keys in KEYS.items():
        before = store.timeline(session_id)
        for key, seq in keys.items():
            assert store.append(session_id, UserMessage("again"), keys=[key]) == [seq]
        assert store.timeline(session_id) == before


def _go_on_talking(store: StateStore) -> None:
    assert store.append("gaps", UserMessage("anew"), keys=["key-5"]) == [10], "no number is given out twice"
    assert store.append("gaps", UserMessage("anew"), keys=["key-5"]) == [10]
    assert len(store.rewind_session("gaps", to=7)) == 1
    assert store.append("gaps", UserMessage("more")) == [11]
    for summary in store.list_sessions(order="id"):
        session = store.load_session(summary.id)
        assert session is not None
        session.add_user_message("and on")
        session.set_metadata("visited", True)
        store.save_session(session)
        assert store.timeline(summary.id)[-1].record == session.user_messages[-1]
    newer = store.load_json("sessions", "55555555-5555-4555-8555-555555555555")
    assert newer["user_messages"][0]["attachments"] == [{"name": "a.png"}], "what we do not know is kept"
    assert store.fork_session("trip", at=3, new_id="another").parent_session_id == "trip"
    assert {s.id for s in store.list_sessions(parent_session_id="trip")} == {"fork", "another", "日本 é.x"}


def _use_the_trash(store: StateStore) -> None:
    assert store.for_user("alice").restore_session("alice's trash").user_id == "alice"
    assert store.append("alice's trash", UserMessage("again"), keys=["once"]) == [1]
    assert [entry.kind for entry in store.timeline("alice's trash")] == ["user", "tool"]
    assert [trashed.session.id for trashed in store.list_trash()] == ["bob's trash"]
    assert store.erase_user("bob") == 3, "two sessions, and one in the trash"
    assert store.list_trash() == []


def _replace_documents(store: StateStore) -> None:
    plan = store.get_document("projects/alpha", "plan", kind="json")
    assert plan is not None
    store.save_json("projects/alpha", "plan", {"steps": 4}, if_version=plan.version)
    assert store.load_json("projects/alpha", "plan") == {"steps": 4}
    assert store.delete_category("notes") == 2
    assert store.list_categories() == ["images", "projects/alpha"]


def _prune(store: StateStore) -> None:
    config = PruneConfig(max_sessions=4, ttl_hours=0)
    doomed = {candidate.session.id for candidate in store.prune_sessions(config, dry_run=True)}
    assert store.prune_sessions(config) == len(doomed) == 3
    assert not doomed & {summary.id for summary in store.list_sessions()}


def _read_by_the_rust_program(root: Path, now: dict[str, Any]) -> None:
    """The one older program there is reads what we left, whole."""
    for session_id, told in now["sessions"].items():
        messages = [json.loads(body) for _, kind, body in told["timeline"] if kind == "user"]
        loaded = rust_program.load(root, session_id)
        assert [message["content"] for message in loaded["user_messages"]] == [m["content"] for m in messages]


def test_the_steps_that_made_a_golden_schema_are_never_edited(release: str) -> None:
    """A store that they made would differ from those that they make now. Add a step instead."""
    made_by = (STORES / release / NAMES["postgres"]).read_text().partition("-- What is in them.")[0]
    assert "\n".join(migrating.MIGRATIONS).startswith(made_by.rstrip("\n"))
