"""A directory with a store in ``state.db``, as agents would have left it."""

from __future__ import annotations

from pathlib import Path

import pytest
from leftovers import ANSWER, TITLES, keep

from statestore import Session, StateStore


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """Where the program runs: a directory that holds ``state.db``."""
    place = tmp_path / "here"
    place.mkdir()
    with StateStore.open(place / "state.db", durability="relaxed") as store:
        trip = Session("alice", "trip")
        trip.add_user_message("Which ferry arrives before noon?")
        trip.add_event("tool_call", {"name": "timetable", "arguments": {"from": "harbour", "before": "12:00"}})
        trip.add_agent_response(ANSWER)
        trip.set_metadata("project_id", "holidays")
        store.save_session(trip)
        for number, (session_id, title) in enumerate(TITLES.items(), 1):
            keep(store, "bob", session_id, title, "Noted: " + title, days=number)
        keep(store, "carol", "0aaaaaaa-1000-4000-8000-000000000000", "One long id", "Yes.", days=20)
        keep(store, "carol", "0aaaaaaa-2000-4000-8000-000000000000", "Another long id", "Yes.", days=30)
        store.save_markdown("notes", "today", "# Today\n\nCall the harbour.\n")
        store.save_json("projects/alpha", "plan", {"steps": [1, 2]})
        store.save_bytes("images", "logo", b"\x89PNG\x00\xff")
    return place
