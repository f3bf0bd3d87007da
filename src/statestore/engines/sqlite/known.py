"""Sessions as we wrote them last: their rows need not be looked up again.

Whether they still are as we left them shows when they are written: the version in the database must be the one that we
know. If it is not, nothing of the transaction happens, and it is made again from what is there.
"""

from __future__ import annotations

from typing import Final

from statestore.engines.sqlite.headers import Header
from statestore.errors import CorruptSession

MOST_KNOWN: Final = 200
"""How many sessions are known after a commit; during one, none is forgotten that was relied on."""


class OutdatedHeader(CorruptSession):
    """A session is not as we left it: whatever was made of it so far must not be committed."""


class KnownHeaders(dict[str, Header]):
    """The rows of sessions, by id."""

    def forget_if_many(self) -> None:
        """After a commit: begin anew, where there are too many."""
        if len(self) > MOST_KNOWN:
            self.clear()
