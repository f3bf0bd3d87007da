"""Making sessions, and loading them with all their events or the newest."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.session import Session

from statestore.adapters.google_adk.appending import STATE, state_in
from statestore.adapters.google_adk.events import FOREIGN, Carried, Texts, events_in, outline_of, texts_of
from statestore.adapters.google_adk.moments import text_of_seconds
from statestore.adapters.google_adk.places import Place
from statestore.adapters.google_adk.scopes import Scopes, json_scopes_of
from statestore.adapters.google_adk.seen import made_session, marker_of, seen_in
from statestore.adapters.google_adk.shared import change_shared, read_both, read_shared
from statestore.adapters.identifiers import label_of
from statestore.adapters.several import for_each
from statestore.engine import Change, ChangeSession, NewSession, PreconditionFailed, Requires
from statestore.errors import SessionConflict
from statestore.jsontext import json_text
from statestore.store.async_store import AsyncStateStore
from statestore.store.beneath import engine_of
from statestore.store.decoding import decoded_as
from statestore.store.writing import MAX_ATTEMPTS
from statestore.stored import StoredSession

_MORE: Final = 2
"""By how much a window grows when what is no event took the place of some."""


async def create(store: AsyncStateStore, place: Place, state: Mapping[str, Any]) -> Session:
    """Make a session, with what its state gives to its app and its user."""
    given = json_scopes_of(state)
    born = text_of_seconds(time.time())
    metadata = place.birth_metadata | ({STATE: given.session} if given.session else {})
    change = ChangeSession(
        id=place.id,
        updated=born,
        requires=Requires(absent=True),
        create=NewSession(label_of(place.user_id), born),
        set_fields={"project_id": label_of(place.app_name)},
        set_metadata={key: json_text(value, key) for key, value in metadata.items()},
    )
    shared = [one for one in ((place.app_state, given.app), (place.user_state, given.user)) if one[1]]
    is_one_commit = engine_of(store).atomic_scope == "store"
    for _ in range(MAX_ATTEMPTS):
        changes: list[Change] = [change]
        if is_one_commit:
            known = await for_each(store, [where for where, _ in shared], lambda where: read_shared(store, where))
            changes += [
                held.put(held.content.changed_by(delta)) for held, (_, delta) in zip(known, shared, strict=True)
            ]
        try:
            await engine_of(store).commit(changes)
        except PreconditionFailed as failed:
            if failed.failures[0].index == 0:
                raise AlreadyExistsError(f"Session with id {place.session_id} already exists.") from None
            continue  # somebody changed a shared state meanwhile
        for where, delta in () if is_one_commit else shared:
            await change_shared(store, where, lambda held, delta=delta: held.update(delta))
        made = await load(store, place)
        if made is not None:
            return made
    raise SessionConflict(f"session {place.id} could not be made: what it shares changed {MAX_ATTEMPTS} times")


async def load(store: AsyncStateStore, place: Place, config: GetSessionConfig | None = None) -> Session | None:
    """A session with its events, or those that are asked for; ``None`` if there is none."""
    last = None if config is None else config.num_recent_events
    after = None if config is None else config.after_timestamp
    window = last
    while True:
        stored = await engine_of(store).read_session(place.id, last=None if after else window)
        if stored is None:
            return None
        texts, count = await _texts(store, stored)
        if after:
            texts = [one for one in texts if _is_since(one[1], after)]
        if not last or not window or after or len(texts) >= last or count < window:
            break
        window *= _MORE
    shared = await read_both(store, place)
    seen = seen_in(stored, shared, is_whole=last is None and not after)
    return made_session(
        place,
        Scopes(state_in(stored), shared.user.state, shared.app.state).merged(),
        events_in(stored, texts if last is None else texts[len(texts) - min(last, len(texts)) :]),
        seen.newest,
        marker_of(seen),
    )


async def _texts(store: AsyncStateStore, stored: StoredSession) -> tuple[Texts, int]:
    """The events of a session, and how many records they are in. What cannot be read is named in a warning."""
    try:
        carried = decoded_as(stored.records, Carried)
    except (msgspec.DecodeError, ValueError, RecursionError):
        carried = await store.timeline_as(stored.id, Carried)
    return texts_of(carried), len(carried)


def _is_since(text: bytes, moment: float) -> bool:
    """Whether an event is not older than a moment. What cannot be told is kept, and told by who decodes it."""
    try:
        return text is FOREIGN or outline_of(text).timestamp >= moment
    except msgspec.DecodeError:
        return True
