"""Where things are kept: a session under its app, its user and its own id; state of apps and users in documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from statestore.adapters.conversations import FRAMEWORK
from statestore.adapters.dialects.google_adk import NAME
from statestore.adapters.identifiers import (
    birth_metadata,
    id_parts,
    joined_text,
    stored_category,
    stored_id,
    stored_name,
)
from statestore.errors import InvalidName

_STATE: Final = "state"
_USERS: Final = "users"


class StatePlace(Struct, frozen=True):
    """The document that holds the state of an app, or of a user in an app."""

    category: str
    name: str


class Place(Struct, frozen=True):
    """A session's address in ADK."""

    app_name: str
    user_id: str
    session_id: str

    @property
    def id(self) -> str:
        """The id that the session has in the store: ``app:user:session``."""
        return str(stored_id(self._text))

    @property
    def birth_metadata(self) -> dict[str, Any]:
        """What the session is made with."""
        return {FRAMEWORK: NAME, **birth_metadata(self._text)}

    @property
    def _text(self) -> str:
        return joined_text(self.app_name, self.user_id, self.session_id)

    @property
    def app_state(self) -> StatePlace:
        """Where the app's state is kept."""
        return app_state(self.app_name)

    @property
    def user_state(self) -> StatePlace:
        """Where the user's state is kept."""
        return user_state(self.app_name, self.user_id)


def place_of(session_id: str, metadata: Mapping[str, Any] | None = None) -> Place | None:
    """The address behind a session's id; ``None`` if no ADK session has such an id."""
    try:
        parts = id_parts(session_id, metadata)
    except InvalidName:
        return None
    return Place(*parts) if len(parts) == 3 else None


def app_state(app_name: str) -> StatePlace:
    """Where an app's state is kept."""
    return StatePlace(stored_category(NAME, app_name), _STATE)


def user_state(app_name: str, user_id: str) -> StatePlace:
    """Where a user's state is kept."""
    return StatePlace(users_category(app_name), stored_name(user_id))


def users_category(app_name: str) -> str:
    """The category that holds the states of all users of an app."""
    return stored_category(NAME, app_name, _USERS)
