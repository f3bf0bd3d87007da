"""The names of all keys, and where a session is in a listing.

What changes together has the same text in braces, so that a cluster keeps it in one place. Names are escaped, so that
nobody's braces get in the way.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

PLACE_DIGITS: Final = 21
_LATEST: Final = 253_402_560_000 * 10**9
"""Some days after the year 9999: offsets may lead there."""


def place_in_listing(updated_ns: int) -> str:
    """What a session is listed by: texts of one length, of which that of the latest moment sorts first."""
    return f"{min(max(_LATEST - updated_ns, 0), 10**PLACE_DIGITS - 1):0{PLACE_DIGITS}}"


@lru_cache(maxsize=4096)
def encoded(text: str) -> str:
    """A name as part of a key, without braces; ``decoded`` is the way back."""
    return text.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")


def decoded(text: str) -> str:
    """The name behind a part of a key."""
    return text.replace("%7D", "}").replace("%7B", "{").replace("%25", "%")


class Keys:
    """All keys of one store begin with its prefix."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.store = f"{prefix}:store"
        """Which version the layout has, and which store this is: a hash."""
        self.newest = f"{prefix}:newest"
        """Place and id of every session: a sorted set."""
        self.ids = f"{prefix}:ids"
        """The id of every session: a sorted set."""
        self.categories = f"{prefix}:categories"
        """The name of every category: a sorted set."""
        self.changes = f"{prefix}:changes"
        """What happened: a stream."""
        self.change = f"{prefix}:change"
        """The number of the last change."""
        self._session = f"{prefix}:s:{{"
        self._category = f"{prefix}:d:{{"
        self.any_session = f"{self._session}*"
        """What all keys of sessions match; so may others, which `session_in` tells apart."""
        self.any_document = f"{self._category}*"
        """What all keys of categories and documents match; `category_in` tells others apart."""
        self.any_newest_of = f"{self.newest}:*"
        """What the indexes of all users match; `is_newest_of` tells others apart."""

    def session(self, session_id: str) -> str:
        """What the keys of a session begin with."""
        return f"{self._session}{encoded(session_id)}}}"

    def parts_of(self, session: str) -> tuple[str, ...]:
        """All keys of a session, which begin so: header, records, idempotency keys, metadata."""
        return tuple(f"{session}:{part}" for part in "hrkm")

    def session_in(self, key: str) -> tuple[str, str] | None:
        """The id in a key of a session, and which part of the session the key is; ``None`` if it is none of ours."""
        session_id, _, part = key[len(self._session) :].rpartition("}:")
        session_id = decoded(session_id)
        return (session_id, part) if key in self.parts_of(self.session(session_id)) else None

    def newest_of(self, user_id: str) -> str:
        """Place and id of every session of a user: a sorted set."""
        return f"{self.newest}:{encoded(user_id)}"

    def is_newest_of(self, key: str) -> bool:
        """Whether a key is the index of a user."""
        return key == self.newest_of(decoded(key[len(self.newest) + 1 :]))

    def category(self, category: str) -> str:
        """The names and kinds in a category: a sorted set."""
        return f"{self._category}{encoded(category)}}}"

    def category_in(self, key: str) -> str | None:
        """The category in its key, or in that of a document; ``None`` if the key is none of ours."""
        category = decoded(key[len(self._category) :].partition("}")[0])
        base = self.category(category)
        return category if key == base or key.startswith(f"{base}:") else None

    def document(self, category: str, name: str, kind: str) -> str:
        """A document: a hash."""
        return f"{self.category(category)}:{kind}:{name}"

    def token(self, item: str, token: str) -> str:
        """What came of a batch, for whoever asks again; kept where the item with this name is."""
        return f"{item}:t:{token}"
