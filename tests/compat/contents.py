"""What a golden store holds: a little of everything that users can store, written through the public store.

The clock stands still and is moved by hand, so that the store says the same on every engine.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from statestore import AgentResponse, Event, NotSupported, Session, StateStore, UserMessage, copy_store

RUST = Path(__file__).parent.parent / "data" / "golden"
FROM_RUST = ("22222222-2222-4222-8222-222222222222", "55555555-5555-4555-8555-555555555555")
"""Sessions that the Rust program wrote, one of them with fields of a newer release."""

BEGIN_NS = 1_769_860_800_000_000_000
"""2026-01-31T12:00:00Z."""
A_CENTURY = 24 * 36_525
"""Hours: what is in the trash can still be had back when these tests run."""


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now_ns = BEGIN_NS

    def read(self) -> int:
        return self.now_ns

    def move(self, seconds: int = 60) -> None:
        self.now_ns += seconds * 1_000_000_000


@contextmanager
def standing_clock() -> Iterator[Clock]:
    """The clock of everything in this process, for as long as the block lasts."""
    clock = Clock()
    with mock.patch.object(time, "time_ns", clock.read):
        yield clock


def fill(store: StateStore, clock: Clock) -> str | None:
    """Write everything; the cursor from which a watch tells the second half, where the engine can watch."""
    _write_conversation(store, clock)
    _write_gaps(store, clock)
    _copy_from_rust(store)
    _write_documents(store)
    _search_once(store)
    cursor = _cursor(store)
    _write_more(store, clock)
    _throw_away(store, clock)
    clock.move()
    store.append("trip", UserMessage("See you on the island."))
    return cursor


def _write_conversation(store: StateStore, clock: Clock) -> None:
    session = Session("alice", "trip")
    session.add_user_message("Which ferry arrives before noon?", key="request-1")
    session.add_event("tool_call", {"name": "timetable", "z": 1, "a": [1.5, None, "\u0000"]}, key="ключ")
    session.add_agent_response(AgentResponse("The 10:40. 🦀", "trip", "seed-a", "evaluate", True))
    session.user_messages.append(UserMessage("", extra={"attachments": [{"name": "a.png"}]}))
    session.add_event("thought")
    session.active_seed_id, session.active_persona_id, session.project_id = "seed-a", "persona-π", "project-7"
    session.set_metadata("title", "A day on the island")
    session.set_metadata("project_ids", ["first", "second"])
    session.set_metadata("numbers", [0, -1, 1.5, 1e16, 18446744073709551615, -0.0])
    session.set_metadata("nested", {"b": {"a": [True, False, None]}, "キー": ""})
    store.save_session(session)
    clock.move()
    store.fork_session("trip", at=3, new_id="fork")
    clock.move()
    store.save_session(Session("bob", "empty"))


def _write_gaps(store: StateStore, clock: Clock) -> None:
    clock.move()
    store.save_session(Session("bob", "gaps"))
    for turn in range(1, 7):
        store.append("gaps", UserMessage(f"turn {turn}"), keys=[f"key-{turn}"])
    clock.move()
    store.rewind_session("gaps", to=3)
    store.append("gaps", UserMessage("turn 7"), Event("note", 7), keys=["key-7", None])


def _copy_from_rust(store: StateStore) -> None:
    with tempfile.TemporaryDirectory() as place:
        sessions = Path(place, "sessions")
        sessions.mkdir()
        for session_id in FROM_RUST:
            shutil.copy(RUST / "sessions" / f"{session_id}.json", sessions)
        copy_store(f"file:{place}", store, into_existing=True)


def _write_documents(store: StateStore) -> None:
    store.save_markdown("notes", "today", "# Today – ünïcode\r\n")
    store.save_markdown("notes", "empty", "")
    store.save_json("projects/alpha", "plan", {"steps": 3, "z": 1, "a": [1e5]})
    store.save_markdown("projects/alpha", "plan", "the plan")
    store.save_json("projects/alpha", "a name.with dots", None)
    store.save_bytes("images", "東京", bytes(range(256)))


def _search_once(store: StateStore) -> None:
    """What was written up to here is in the index of words; what follows is not."""
    try:
        assert store.search_sessions("ferry")
    except NotSupported:
        return


def _cursor(store: StateStore) -> str | None:
    try:
        return store.change_cursor()
    except NotSupported:
        return None


def _write_more(store: StateStore, clock: Clock) -> None:
    clock.move()
    session = Session("ユーザー", "日本 é.x")
    session.add_user_message("私は東京都に住んでいます")
    session.set_metadata("long", "0123456789" * 500)
    session.set_metadata("title", "東京")
    session.parent_session_id = "trip"
    store.save_session(session)
    clock.move()
    store.save_session(Session("bob", "deleted"))
    store.delete_session("deleted")
    store.append("gaps", UserMessage("turn 8"), keys=["key-8"])
    store.rewind_session("gaps", to=7)
    store.update_session_with("empty", lambda session: session.set_metadata("visited", True))
    store.save_json("projects/alpha", "gone", 1)
    store.delete_file("projects/alpha", "gone", kind="json")


def _throw_away(store: StateStore, clock: Clock) -> None:
    for user in ("alice", "bob"):
        clock.move()
        session = Session(user, f"{user}'s trash")
        session.add_user_message("thrown away", key="once")
        session.add_event("tool", [1])
        session.set_metadata("title", "Away")
        store.save_session(session)
        store.delete_session(session.id, trash_hours=A_CENTURY)
