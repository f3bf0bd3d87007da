"""A state as the parts that belong to the session, to its user, and to its app. What is temporary belongs to nobody."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from google.adk.sessions.state import State
from msgspec import Struct, field
from pydantic_core import PydanticSerializationError, to_jsonable_python


class Scopes(Struct, frozen=True):
    """State by whom it belongs to; the keys are without their prefixes."""

    session: dict[str, Any] = field(default_factory=dict[str, Any])
    user: dict[str, Any] = field(default_factory=dict[str, Any])
    app: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def is_empty(self) -> bool:
        """Whether nothing is set."""
        return not (self.session or self.user or self.app)

    def merged(self) -> dict[str, Any]:
        """The state as a session shows it."""
        return (
            self.session
            | {State.APP_PREFIX + key: value for key, value in self.app.items()}
            | {State.USER_PREFIX + key: value for key, value in self.user.items()}
        )


def scopes_of(state: Mapping[str, Any]) -> Scopes:
    """A state, or what is to change in it, in its parts."""
    scopes = Scopes()
    for key, value in state.items():
        if key.startswith(State.APP_PREFIX):
            scopes.app[key.removeprefix(State.APP_PREFIX)] = value
        elif key.startswith(State.USER_PREFIX):
            scopes.user[key.removeprefix(State.USER_PREFIX)] = value
        elif not key.startswith(State.TEMP_PREFIX):
            scopes.session[key] = value
    return scopes


def json_scopes_of(state: Mapping[str, Any]) -> Scopes:
    """The same as plain JSON. What is temporary is never stored, and may be of any kind."""
    scopes = scopes_of(state)
    return Scopes(as_json(scopes.session), as_json(scopes.user), as_json(scopes.app))


def as_json(state: Mapping[str, Any]) -> dict[str, Any]:
    """A state as plain JSON, as ADK's own services write it: what has no form in JSON is told by its ``repr``."""
    try:
        return to_jsonable_python(state)
    except (PydanticSerializationError, UnicodeDecodeError):
        logging.getLogger("statestore").warning(
            "some values of the state are not JSON, and are stored as texts that describe them", exc_info=True
        )
        return to_jsonable_python(state, serialize_unknown=True, bytes_mode="base64")
