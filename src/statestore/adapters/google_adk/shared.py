"""The state of apps and users: one JSON document each, merged key by key, with a count of its changes.

::

    {"revision": 17, "state": {"theme": "dark", "visits": 4}, "changed": {"theme": 3, "visits": 17}}

``changed`` tells which revision last set a key: whoever saw an older one has not seen that value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from copy import deepcopy
from typing import Any

from msgspec import Struct, field

from statestore.adapters.google_adk.places import Place, StatePlace
from statestore.adapters.google_adk.scopes import as_json
from statestore.adapters.several import for_each
from statestore.engine import PutDocument
from statestore.errors import DocumentConflict
from statestore.store.async_store import AsyncStateStore
from statestore.store.documents import put_json
from statestore.store.writing import MAX_ATTEMPTS


class Shared(Struct, omit_defaults=True):
    """What such a document holds."""

    revision: int = 0
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    changed: dict[str, int] = field(default_factory=dict[str, int])

    def unseen(self, keys: Iterable[str], seen: int, own: Mapping[str, int]) -> list[str]:
        """Which keys somebody set after a revision; what one set oneself at ``own`` revisions was seen, too."""
        return [key for key in keys if self.changed.get(key, 0) > max(seen, own.get(key, 0))]

    def changed_by(self, delta: Mapping[str, Any]) -> Shared:
        """The same with some keys set."""
        revision = self.revision + 1
        return Shared(revision, {**self.state, **delta}, self.changed | dict.fromkeys(delta, revision))


class HeldShared(Struct, frozen=True):
    """Such a state as it is stored, with the version that a change of it is based on."""

    place: StatePlace
    content: Shared
    version: str = ""

    def put(self, content: Shared) -> PutDocument:
        """The change that stores a new content, unless somebody else was faster."""
        return put_json(self.place.category, self.place.name, content, self.version)


async def read_shared(store: AsyncStateStore, place: StatePlace) -> HeldShared:
    """The state of an app or a user; an empty one, if there is none."""
    document = await store.get_document(place.category, place.name, kind="json")
    if document is None:
        return HeldShared(place, Shared())
    return HeldShared(place, document.decoded(Shared), document.version)


async def change_shared(
    store: AsyncStateStore, place: StatePlace, change: Callable[[dict[str, Any]], object]
) -> dict[str, Any]:
    """Read a state, have it changed in place, and store it; again if somebody came between. The state then."""
    for _ in range(MAX_ATTEMPTS):
        held = await read_shared(store, place)
        state = deepcopy(held.content.state)
        change(state)
        keys = [key for key in {**state, **held.content.state} if _differ(state, held.content.state, key)]
        if not keys:
            return state
        revision = held.content.revision + 1
        content = Shared(revision, as_json(state), held.content.changed | dict.fromkeys(keys, revision))
        with suppress(DocumentConflict):
            await store.save_json(place.category, place.name, content, if_version=held.version)
            return content.state
    raise DocumentConflict(f"{place.category}/{place.name} changed {MAX_ATTEMPTS} times while it was being updated")


def _differ(one: dict[str, Any], other: dict[str, Any], key: str) -> bool:
    """Whether a key has another value: 1 and ``True`` are two, as they are in JSON."""
    if key not in one or key not in other or one[key] != other[key]:
        return True
    return json.dumps(one[key], default=repr) != json.dumps(other[key], default=repr)


class SharedPair(Struct, frozen=True):
    """The states that a session shares with others."""

    app: Shared
    user: Shared


async def read_both(store: AsyncStateStore, place: Place) -> SharedPair:
    """The states of a session's app and user."""
    app, user = await for_each(store, (place.app_state, place.user_state), lambda where: read_shared(store, where))
    return SharedPair(app.content, user.content)
