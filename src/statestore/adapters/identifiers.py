"""A framework's ids as ours, and back: any text becomes a name that every engine can keep.

What the naming rule allows stays as it is, so that people recognise it. What it refuses is percent-encoded, as in a
URL: ``team/alice`` is stored as ``team%2Falice``. A text that looks like the encoded form of another one is encoded
too. So no two texts ever share a name, and every name leads back to its text.

A text that does not fit into 200 bytes becomes its beginning and its SHA-256: ``long…%~ab12…``. That cannot be turned
back, so whoever stores under such a name keeps the text beside it: for sessions, in ``metadata["original_id"]``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from statestore.errors import InvalidName, InvalidValue
from statestore.jsontext import check_label
from statestore.names import MAX_PART_BYTES, SUFFIXES, SessionId, check_category, check_name

ORIGINAL_ID: Final = "original_id"
"""The metadata key that holds the text behind a shortened id."""

_EMPTY: Final = "%"
_SHORTENED: Final = re.compile(r"%~[0-9a-f]{64}", re.ASCII)
_KEPT_BYTES: Final = 100
"""How much of a text that is too long stays readable."""
_REFUSED: Final = re.compile(r"[%/\\\x00-\x1f\x7f-\x9f\ud800-\udfff]|^\.(?=$|statestore$)|\.(?=\.)|(?<=\.)\.", re.I)
_SUFFIX: Final = re.compile(r"\.(?=(?:json|md|bin)$)", re.I)


def stored_id(text: str) -> SessionId:
    """The session id for a framework's id; an ordinary one is its own."""
    return SessionId(stored_name(text))


def foreign_id(session_id: str, metadata: Mapping[str, Any] | None = None) -> str:
    """The framework's id behind a session id. A shortened one is looked up in the session's ``metadata``."""
    if "%" not in session_id:  # nothing in it is encoded
        return session_id
    if is_shortened(session_id):
        original = (metadata or {}).get(ORIGINAL_ID)
        if isinstance(original, str) and stored_name(original) == session_id:
            return original
        raise InvalidName(f"the text behind {session_id!r} is not in its session's metadata[{ORIGINAL_ID!r}]")
    return original_name(session_id)


def birth_metadata(text: str) -> dict[str, Any]:
    """What a session that is created for a framework's id must have in its metadata, to find the way back."""
    return {ORIGINAL_ID: text} if is_shortened(stored_name(text)) else {}


def joined_text(*parts: str) -> str:
    """Several texts as one, which no other texts give: ``joined_text("app", "alice", "7")`` is ``app:alice:7``."""
    if not parts:
        raise InvalidName("an id has at least one part")
    return ":".join(_check_text(part).replace("%", "%25").replace(":", "%3A") for part in parts)


def id_parts(session_id: str, metadata: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """The parts of an id that was made of a `joined_text`."""
    return tuple(part.replace("%3A", ":").replace("%25", "%") for part in foreign_id(session_id, metadata).split(":"))


def stored_name(text: str) -> str:
    """The document name for any text."""
    return _stored(text, _needs_encoding, _encoded)


def original_name(name: str) -> str:
    """The text behind a name from `stored_name`; other names, and shortened ones, are their own."""
    return _decoded(name) if _is_encoded(name) else name


def label_of(text: str) -> str:
    """The user or the project for any text: as it is, unless listings could not hold it."""
    try:
        return check_label(text, "an id")
    except InvalidValue:
        return stored_name(text)


def stored_category(*parts: str) -> str:
    """The category for a path of any texts: ``stored_category("memories", "a/b")`` is ``memories/a%2Fb``.

    `InvalidName` if it does not fit into 500 bytes.
    """
    return check_category("/".join(_stored(part, _part_needs_encoding, _encoded_part) for part in parts))


def category_parts(category: str) -> tuple[str, ...]:
    """The texts that `stored_category` was given; shortened ones are their own."""
    return tuple(_decoded(part) if _is_encoded_part(part) else part for part in category.split("/"))


def is_shortened(name: str) -> bool:
    """Whether a name stands for a text that was too long to keep."""
    return "%~" in name and _SHORTENED.fullmatch(name[-66:]) is not None


def _stored(text: str, needs_encoding: Callable[[str], bool], encoded: Callable[[str], str]) -> str:
    if not needs_encoding(_check_text(text)):
        return str.__str__(text)
    name = encoded(text)
    if len(name.encode()) <= MAX_PART_BYTES:
        return name
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    kept = name.encode()[:_KEPT_BYTES].decode(errors="ignore").rpartition("%")
    beginning = kept[0] if len(kept[2]) < 2 and kept[1] else "".join(kept)  # no half of an escape
    return f"{beginning}%~{digest}"


def _check_text(text: object) -> str:
    if not isinstance(text, str):
        raise InvalidName(f"an id is a text, not {type(text).__name__}")
    return text


# -- Names. What needs encoding: what the rule refuses, and what would be taken for something encoded.


def _needs_encoding(text: str) -> bool:
    return not _is_allowed(text) or is_shortened(text) or _is_encoded(text)


def _is_allowed(text: str) -> bool:
    try:
        check_name(text)
    except InvalidName:
        return False
    return True


def _is_encoded(name: str) -> bool:
    """Whether a name is what some text that needs it is encoded to."""
    if "%" not in name or is_shortened(name):
        return False
    text = _decoded(name)
    return text != name and _encoded(text) == name and _needs_encoding(text)


def _encoded(text: str) -> str:
    return _REFUSED.sub(_escape, text) or _EMPTY


def _escape(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "surrogatepass"))


def _decoded(name: str) -> str:
    """The text behind something encoded; anything else comes back as something that is not encoded to it."""
    if name == _EMPTY:
        return ""
    return unquote_to_bytes(name).decode("utf-8", "surrogatepass" if _is_utf8(name) else "replace")


def _is_utf8(name: str) -> bool:
    try:
        unquote_to_bytes(name).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


# -- Parts of categories: the same, and no part may look like a file.


def _part_needs_encoding(text: str) -> bool:
    return text.casefold().endswith(SUFFIXES) or not _is_allowed(text) or is_shortened(text) or _is_encoded_part(text)


def _is_encoded_part(part: str) -> bool:
    if "%" not in part or is_shortened(part):
        return False
    text = _decoded(part)
    return text != part and _encoded_part(text) == part and _part_needs_encoding(text)


def _encoded_part(text: str) -> str:
    return _SUFFIX.sub("%2E", _encoded(text))
