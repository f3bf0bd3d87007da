"""Ids in fewer characters: most are UUIDs, whose 36 characters say no more than 23 do."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

_SHORT: Final = "="


def short(id: str) -> str:
    """An id as it is stored: a UUID as ``=`` and 22 characters, anything else as it is."""
    if len(id) == 36:
        try:
            data = bytes.fromhex(id.replace("-", ""))
        except ValueError:
            return id
        if len(data) == 16 and _spelt(data) == id:
            return _SHORT + urlsafe_b64encode(data)[:22].decode()
    return _SHORT + id if id.startswith(_SHORT) else id


def full(stored: str) -> str:
    """The id behind what is stored."""
    if not stored.startswith(_SHORT):
        return stored
    rest = stored[1:]
    return rest if rest.startswith(_SHORT) else _spelt(urlsafe_b64decode(rest + "=="))


def _spelt(data: bytes) -> str:
    text = data.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
