"""A copy through our engines, there and back, ends in the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from statestore import StateStore
from statestore.conformance.fidelity import SESSION, parsed
from statestore.host import step
from statestore.opening import engine_for
from statestore.seedform import session_json
from statestore.store.recreating import creation
from statestore.stored import StoredSession

GOLDEN = sorted((Path(__file__).parents[1] / "data" / "golden" / "sessions").glob("*.json"))


def copied(stored: StoredSession, url: str) -> StoredSession:
    """A session as it comes back from another store."""
    engine = engine_for(url)
    step(engine.open())
    try:
        step(engine.commit([creation(stored)]))
        again = step(engine.read_session(stored.id))
    finally:
        step(engine.close())
    assert again is not None
    return again


@pytest.mark.parametrize("text", [SESSION, *(path.read_text() for path in GOLDEN)], ids=lambda text: text[11:25])
def test_a_copy_through_every_engine_ends_in_the_same_bytes(tmp_path: Path, text: str) -> None:
    stored = parsed(text)
    for number, url in enumerate(["memory:", "file:{}", "memory:", "file:{}", "file:{}"]):
        stored = copied(stored, url.format(tmp_path / str(number)))
        assert session_json(stored).decode() == text


def test_events_numbers_and_keys_are_copied(tmp_path: Path) -> None:
    with StateStore.open(f"file:{tmp_path}/first") as store:
        session = store.get_or_create_session("alice", "s")
        session.add_event("tool", {"n": 1e16}, key="k")
        session.add_user_message("one")
        session.add_agent_response("two")
        store.save_session(session)
        store.rewind_session("s", to=2)
    engine = engine_for(f"file:{tmp_path}/first")
    step(engine.open())
    first = step(engine.read_session("s"))
    step(engine.close())
    assert first is not None
    last = copied(copied(first, "memory:"), f"file:{tmp_path}/second")
    assert session_json(last) == session_json(first)
    assert last.records.in_order() == first.records.in_order()
    assert last.next_seq == first.next_seq == 4
    assert (tmp_path / "first/sessions/s.json").read_bytes() == (tmp_path / "second/sessions/s.json").read_bytes()
