"""What was said, as a store tells it."""

from __future__ import annotations

from statestore import StateStore


def user_words(store: StateStore, session_id: str) -> list[str]:
    """What the user said in a session, in order."""
    session = store.load_session(session_id)
    assert session is not None, f"{session_id} is gone"
    return [message.content for message in session.user_messages]
