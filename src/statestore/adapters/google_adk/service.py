"""`StateStoreSessionService`: ADK's contract for sessions, on a statestore."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

from google.adk.events.event import Event
from google.adk.sessions.base_session_service import BaseSessionService, GetSessionConfig, ListSessionsResponse
from google.adk.sessions.session import Session
from typing_extensions import override

from statestore.adapters.access import Access, ClosesItsStore, Target
from statestore.adapters.google_adk import loading
from statestore.adapters.google_adk.appending import Appending, StaleWhen
from statestore.adapters.google_adk.listing import Listing, SessionPage
from statestore.adapters.google_adk.places import Place, app_state, user_state
from statestore.adapters.google_adk.seen import note_seen
from statestore.adapters.google_adk.shared import change_shared, read_shared
from statestore.errors import InvalidValue


class StateStoreSessionService(ClosesItsStore, BaseSessionService):
    """Sessions of ADK, kept in a statestore.

    ``store`` is an open `AsyncStateStore` (or a `StateStore`, which is used in threads), or a URL or path: then it is
    opened on first use, and ``await service.close()`` closes it.

    ``stale_when`` says when `append_event` raises ``StaleSessionError``. ``"superseded"``, the default, is what ADK's
    own persistent services do: when somebody else has appended since the session object was loaded. With
    ``"overwriting"``, events of several writers follow each other, and the error is raised only where a write would
    be lost: if the event sets a key, of the session's state, the user's or the app's, that somebody else has set since.
    """

    def __init__(self, store: Target, *, stale_when: StaleWhen = "superseded") -> None:
        if stale_when not in ("superseded", "overwriting"):
            raise InvalidValue(f"stale_when is 'superseded' or 'overwriting', not {stale_when!r}")
        self._access = Access(store, opens="async")
        self._stale_when: StaleWhen = stale_when
        self._listing = Listing(self._access)
        self._turns: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()

    @override
    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Make a session, and give its ``app:`` and ``user:`` state to all that share it. One commit."""
        place = Place(app_name, user_id, (session_id or "").strip() or str(uuid4()))
        return await self._access.run(lambda store: loading.create(store, place, state or {}))

    @override
    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """A session with its events; with a ``config``, only the newest are read and decoded."""
        place = Place(app_name, user_id, session_id.strip())
        return await self._access.run(lambda store: loading.load(store, place, config))

    @override
    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """All sessions of an app, or of a user in it, oldest first, with their state and without their events."""
        return ListSessionsResponse(sessions=await self._listing.all(app_name, user_id))

    async def list_sessions_page(
        self, *, app_name: str, user_id: str | None = None, limit: int = 50, after: str | None = None
    ) -> SessionPage:
        """The newest sessions first, so many at a time: ``after=page.cursor`` goes on; no cursor, no more."""
        return await self._listing.page(app_name, user_id, limit, after)

    @override
    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Remove a session with its events. What it shared with others stays."""
        place = Place(app_name, user_id, session_id.strip())
        await self._access.run(lambda store: store.delete_session(place.id))

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """A user's state in an app, without the prefix ``user:``."""
        held = await self._access.run(lambda store: read_shared(store, user_state(app_name, user_id)))
        return held.content.state

    async def update_user_state(
        self, *, app_name: str, user_id: str, change: Callable[[dict[str, Any]], object]
    ) -> dict[str, Any]:
        """Have a user's state changed in place; again, if somebody came between. For counters that must be exact."""
        return await self._access.run(lambda store: change_shared(store, user_state(app_name, user_id), change))

    async def update_app_state(self, *, app_name: str, change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """The same for the state of an app."""
        return await self._access.run(lambda store: change_shared(store, app_state(app_name), change))

    @override
    async def append_event(self, session: Session, event: Event) -> Event:
        """Store an event, with the state it changes, in one commit, and add it to the session object.

        An event that is stored already, by its id, is not stored again. ``SessionNotFoundError`` if the session was
        deleted, ``StaleSessionError`` if somebody else changed it (see ``stale_when``): then nothing is written.
        """
        if event.partial:
            return event
        async with self._turn(session):
            appending = Appending(session, event, self._stale_when)
            seen = await self._access.run(appending.into)
            if seen is not None:
                await super().append_event(session=session, event=event)
                note_seen(session, seen)
        return event

    def _turn(self, session: Session) -> asyncio.Lock:
        """Tasks that append through one session object take turns, so that none is stale because of another."""
        key = (id(asyncio.get_running_loop()), Place(session.app_name, session.user_id, session.id).id)
        turn = self._turns.get(key)
        if turn is None:
            turn = self._turns[key] = asyncio.Lock()
        return turn
