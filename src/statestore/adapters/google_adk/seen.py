"""What a session object knew of the store when it was loaded or last written: how a stale one is told from a current.

It is kept in the place that ADK's ``Session`` has for it, and copied with the object. It names records by number and
the session by its version, so no clock is asked, and no rounding makes a current session look stale.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from google.adk.events.event import Event
from google.adk.sessions.session import Session
from msgspec import Struct, field

from statestore.adapters.google_adk.moments import seconds_of
from statestore.adapters.google_adk.places import Place
from statestore.adapters.google_adk.shared import SharedPair
from statestore.stored import StoredSession

_encode: Final = msgspec.json.Encoder().encode


class Seen(Struct, frozen=True, array_like=True):
    """A moment of a session."""

    created: str
    """When the session was made: one that was deleted and made anew is another."""
    number: int
    """Of the last record that the object knows, and all before it."""
    version: str
    newest: float
    """No event that is stored is newer."""
    is_whole: bool
    """Whether the object holds all events up to that number."""
    app_revision: int = 0
    user_revision: int = 0
    own_app: dict[str, int] = field(default_factory=dict[str, int])
    own_user: dict[str, int] = field(default_factory=dict[str, int])
    """Keys that the object set itself, on top of revisions that it has not seen."""


def seen_in(stored: StoredSession, shared: SharedPair, *, is_whole: bool) -> Seen:
    """What who reads this has seen."""
    return Seen(
        stored.fields.created,
        stored.next_seq - 1,
        str(stored.version),
        seconds_of(stored.fields.updated),
        is_whole,
        shared.app.revision,
        shared.user.revision,
    )


def seen_by(session: Session) -> Seen | None:
    """What a session object has seen; ``None`` if it did not come from here."""
    marker = session._storage_update_marker  # pyright: ignore[reportPrivateUsage] - its place for every service
    if marker is None:
        return None
    try:
        return msgspec.json.decode(marker, type=Seen)
    except msgspec.DecodeError:
        return None


def made_session(place: Place, state: dict[str, Any], events: list[Event], newest: float, marker: str) -> Session:
    """The object for what was read, with the mark of what was seen."""
    session = Session(
        id=place.session_id,
        app_name=place.app_name,
        user_id=place.user_id,
        state=state,
        events=events,
        last_update_time=newest,
    )
    session._storage_update_marker = marker  # pyright: ignore[reportPrivateUsage]
    return session


def note_seen(session: Session, seen: Seen) -> None:
    """Let a session object know."""
    session._storage_update_marker = marker_of(seen)  # pyright: ignore[reportPrivateUsage]
    session.last_update_time = seen.newest


def marker_of(seen: Seen) -> str:
    """What was seen, as a session object keeps it."""
    return _encode(seen).decode()
