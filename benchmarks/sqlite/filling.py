"""Filling stores with many sessions, quickly: many at a time, without fsync."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.sqlite.bare import MESSAGE
from statestore import AgentResponse, Session, StateStore, UserMessage

TOGETHER = 500


def fill(path: Path, sessions: int, exchanges: int, text_of: Callable[[int, int], str] | None = None) -> None:
    """A store with this many sessions, of this many exchanges each."""
    with StateStore.open(path, durability="relaxed") as store:
        for first in range(0, sessions, TOGETHER):
            with store.batch() as batch:
                for number in range(first, min(first + TOGETHER, sessions)):
                    session = Session(f"user-{number % 100}", f"session-{number:06}")
                    for exchange in range(exchanges):
                        session.add_user_message(text_of(number, exchange) if text_of else MESSAGE)
                        session.add_agent_response(MESSAGE)
                    batch.save_session(session)


def lengthen(store: StateStore, session_id: str, exchanges: int) -> None:
    """A session with this many exchanges."""
    store.save_session(Session("user", session_id))
    records = [UserMessage(MESSAGE), AgentResponse(MESSAGE)] * TOGETHER
    for first in range(0, exchanges, TOGETHER):
        store.append(session_id, *records[: 2 * min(TOGETHER, exchanges - first)])
