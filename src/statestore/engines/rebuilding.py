"""Putting a session together again, for engines that keep its parts apart."""

from __future__ import annotations

from typing import Final

import msgspec

from statestore.errors import CorruptSession, InvalidValue
from statestore.jsontext import members
from statestore.timestamps import nanoseconds

PIECE: Final = 300
"""How many records are joined at once: what fits into the processor's cache is joined and decoded faster."""


def check_texts(session_id: str, created: str, updated: str, metadata: bytes) -> None:
    """Raise `CorruptSession` if the moments of a session cannot be told, or its metadata are not a JSON object."""
    try:
        nanoseconds(created)
        nanoseconds(updated)
        if metadata != b"{}":
            members(metadata)
    except InvalidValue as error:
        raise CorruptSession(f"session {session_id}: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise CorruptSession(f"session {session_id}: its metadata are not a JSON object: {error}") from error
