"""The one naming rule: what may be a category, a document's name, a session's id.

The rule is the same on every engine, so that anything can move anywhere.
"""

from __future__ import annotations

import uuid
from functools import lru_cache
from typing import Final

from statestore.errors import InvalidName

MAX_PART_BYTES: Final = 200
MAX_CATEGORY_BYTES: Final = 500
SESSIONS: Final = "sessions"
RESERVED_PART: Final = ".statestore"
TRASH: Final = f"{RESERVED_PART}/trash"
"""Where the store keeps what it threw away: to an engine a category like any other, to users none."""
RESERVED_METADATA_KEY: Final = "statestore"
"""Where the store's own notes are kept, in the seed's layout."""
SUFFIXES: Final = (".json", ".md", ".bin")


class SessionId(str):
    """A session's id. A plain ``str`` is as good; ``SessionId.new()`` draws a random one."""

    __slots__ = ()

    @classmethod
    def new(cls) -> SessionId:
        """A fresh random id (UUID version 4)."""
        return cls(uuid.uuid4())


def check_session_id(session_id: str) -> str:
    """The id as a plain text if it follows the rule; raises `InvalidName` if not."""
    if type(session_id) is str:
        return _checked_id(session_id)  # most ids come again and again
    return _check_part("session id", session_id, session_id)


@lru_cache(maxsize=256)
def _checked_id(session_id: str) -> str:
    return _check_part("session id", session_id, session_id)


def check_name(name: str) -> str:
    """A document's name as a plain text if it follows the rule; raises `InvalidName` if not."""
    return _check_part("name", name, name)


def check_category(category: str) -> str:
    """A category (``notes``, ``projects/alpha``) as a plain text if it follows the rule."""
    if not isinstance(category, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidName(f"a category is a text, not {type(category).__name__}")
    category = str.__str__(category)  # what is judged is what is used
    for part in category.split("/"):
        if category and not part:
            raise InvalidName(f"invalid category {category!a}: the part before or after a '/' is empty")
        _check_part("category", category, part)
        if part.casefold().endswith(SUFFIXES):
            raise InvalidName(f"invalid category {category!r}: no part may end in {', '.join(SUFFIXES)}")
    if len(category.encode()) > MAX_CATEGORY_BYTES:
        raise InvalidName(f"invalid category {category[:40]!r}…: longer than {MAX_CATEGORY_BYTES} bytes of UTF-8")
    return category


def check_stored_category(category: str) -> None:
    """Raise `InvalidName` for the category of a document that no store can have made; its trash it did."""
    if category != TRASH:
        check_category(category)


def _check_part(what: str, whole: str, part: str) -> str:
    if not isinstance(part, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidName(f"a {what} is a text, not {type(part).__name__}")
    whole, part = str.__str__(whole), str.__str__(part)
    reason = _broken_rule(part)
    if reason:
        shown = whole if len(whole) <= 80 else whole[:80] + "…"
        raise InvalidName(f"invalid {what} {shown!a}: {reason}")
    return whole


def _broken_rule(part: str) -> str | None:
    if not part:
        return "it is empty"
    if part == ".":
        return "'.' means this directory"
    if ".." in part:
        return "it contains '..'"
    if "/" in part:
        return "it contains '/'"
    if "\\" in part:
        return "it contains '\\'"
    if part.casefold() == RESERVED_PART:
        return f"{RESERVED_PART} is the store's own"
    if part.isascii():
        if not part.isprintable():
            return "it contains a control character"
        size = len(part)
    else:
        if any(ch < " " or "\x7f" <= ch <= "\x9f" for ch in part):
            return "it contains a control character"
        try:
            size = len(part.encode())
        except UnicodeEncodeError:
            return "it contains a lone surrogate"
    return f"it is {size} bytes of UTF-8, {MAX_PART_BYTES} are allowed" if size > MAX_PART_BYTES else None
