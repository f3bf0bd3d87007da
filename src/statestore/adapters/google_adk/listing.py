"""Listing sessions: their headers, their state, and none of their events.

Headers come in one read, whatever their number. A session's state lies in its metadata, which is read once and kept
as long as the session's version is the same; so a listing reads what changed since the last one.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from google.adk.sessions.base_session_service import ListSessionsResponse
from google.adk.sessions.session import Session
from msgspec import Struct
from msgspec.structs import replace

from statestore.adapters.access import Access
from statestore.adapters.google_adk.places import (
    Place,
    StatePlace,
    app_state,
    place_of,
    user_state,
    users_category,
)
from statestore.adapters.google_adk.scopes import Scopes
from statestore.adapters.google_adk.seen import Seen, made_session, marker_of, seen_in
from statestore.adapters.google_adk.shared import Shared, SharedPair, read_shared
from statestore.adapters.identifiers import ORIGINAL_ID, label_of
from statestore.adapters.several import for_each
from statestore.errors import CorruptData
from statestore.store.async_store import AsyncStateStore
from statestore.store.beneath import engine_of
from statestore.store.reading import understanding
from statestore.stored import SessionSummary

_KEPT: Final = 20_000
"""Of how many sessions the state is kept."""


class SessionPage(ListSessionsResponse):
    """Some sessions, and where to go on: ``list_sessions_page(…, after=page.cursor)``."""

    cursor: str | None = None


class _Known(Struct, gc=False):
    """A session at a version: what its header tells, decoded, and what a listing needs beyond it."""

    version: str
    place: Place | None
    state: bytes
    seen: Seen
    marker: str = ""

    def marked(self, app_revision: int, user_revision: int) -> str:
        """The mark for an object that saw these revisions of shared state: mostly the same as last time."""
        seen = self.seen
        if not self.marker or (seen.app_revision, seen.user_revision) != (app_revision, user_revision):
            self.seen = replace(seen, app_revision=app_revision, user_revision=user_revision)
            self.marker = marker_of(self.seen)
        return self.marker


class _Held(Struct):
    state: msgspec.Raw = msgspec.Raw(b"{}")
    original_id: Any = None


class Listing:
    """Lists for one service."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._known: OrderedDict[str, _Known] = OrderedDict()

    async def all(self, app_name: str, user_id: str | None) -> list[Session]:
        """All sessions of an app, or of a user in it, oldest first by their last update."""
        sessions = await self._sessions(app_name, user_id, await self._summaries(app_name, user_id))
        return sorted(sessions, key=lambda session: (session.last_update_time, session.user_id, session.id))

    async def page(self, app_name: str, user_id: str | None, limit: int, after: str | None) -> SessionPage:
        """The next sessions, newest first."""
        summaries = await self._summaries(app_name, user_id, limit, after)
        sessions = await self._sessions(app_name, user_id, summaries)
        return SessionPage(sessions=sessions, cursor=summaries[-1].cursor if len(summaries) == limit else None)

    async def _summaries(
        self, app_name: str, user_id: str | None, limit: int | None = None, after: str | None = None
    ) -> list[SessionSummary]:
        project, user = label_of(app_name), None if user_id is None else label_of(user_id)
        return await self._access.run(
            lambda store: store.list_sessions(project_id=project, user_id=user, limit=limit, after=after)
        )

    async def _sessions(self, app_name: str, user_id: str | None, summaries: Sequence[SessionSummary]) -> list[Session]:
        if unknown := [one for one in summaries if not self._is_known(one)]:
            await self._look_up(unknown)
        found: list[tuple[_Known, Place]] = []
        for summary in summaries:
            known = self._known.get(summary.id)
            place = None if known is None else known.place
            if known is None or place is None or place.app_name != app_name or user_id not in (None, place.user_id):
                continue  # gone meanwhile, or another program's session in a project of the same name
            found.append((known, place))
        user_ids = {place.user_id for _, place in found}
        app, users = await self._access.run(lambda store: _shared(store, app_name, user_ids))
        states = {user_id: Scopes({}, user.state, app.state).merged() for user_id, user in users.items()}
        sessions = [
            made_session(
                place,
                {**msgspec.json.decode(known.state), **states[place.user_id]},
                [],
                known.seen.newest,
                known.marked(app.revision, users[place.user_id].revision),
            )
            for known, place in found
        ]
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return sessions

    def _is_known(self, summary: SessionSummary) -> bool:
        known = self._known.get(summary.id)
        return known is not None and known.version == summary.version

    async def _look_up(self, summaries: Sequence[SessionSummary]) -> None:
        """Read what is not known of some sessions, several at once. Of one that is gone, nothing is known."""
        found = await self._access.run(lambda store: for_each(store, summaries, lambda one: _read(store, one.id)))
        for summary, known in zip(summaries, found, strict=True):
            self._known.pop(summary.id, None)
            if known is not None:
                self._known[summary.id] = known


async def _shared(store: AsyncStateStore, app_name: str, user_ids: set[str]) -> tuple[Shared, dict[str, Shared]]:
    """The states of an app and of some users; those that have none are not asked for, if there are many."""
    app = await read_shared(store, app_state(app_name))
    places: dict[str, StatePlace] = {user_id: user_state(app_name, user_id) for user_id in user_ids}
    if len(places) > 1:
        stored = set(await store.list_category(users_category(app_name)))
        places = {user_id: place for user_id, place in places.items() if place.name in stored}
    read = await for_each(store, places.values(), lambda place: read_shared(store, place))
    held = {user_id: shared.content for user_id, shared in zip(places, read, strict=True)}
    return app.content, {user_id: held.get(user_id) or Shared() for user_id in user_ids}


async def _read(store: AsyncStateStore, session_id: str) -> _Known | None:
    try:
        stored = await engine_of(store).read_session(session_id, last=0)
        if stored is None:
            return None
        with understanding(session_id):
            held = msgspec.json.decode(stored.metadata, type=_Held)
    except CorruptData as error:
        logging.getLogger("statestore").warning("session %s cannot be listed: %s", session_id, error)
        return None
    place = place_of(session_id, {ORIGINAL_ID: held.original_id})
    seen = seen_in(stored, SharedPair(Shared(), Shared()), is_whole=False)
    return _Known(str(stored.version), place, bytes(held.state), seen)
