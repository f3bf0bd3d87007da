"""The row of a session, while a transaction works on it."""

from __future__ import annotations

from msgspec import Struct

from statestore.engines.columns import age_of
from statestore.errors import CorruptSession, InvalidValue
from statestore.timestamps import nanoseconds


class Header(Struct, gc=False):
    """The row of a session, as the transaction has made it so far."""

    number: int
    id: str
    owner: str
    version: str
    created: str
    updated: str
    next_seq: int
    users: int
    agents: int
    events: int
    alternates: int
    size: int
    opening: str | None
    stored_version: str = ""
    """The version that is in the database, once it is no longer ``version``."""
    updated_ns: int | None = None
    """The moment that ``updated`` tells, once somebody asked."""
    writes: int = 0
    """How often it was written since it was looked up."""

    def count(self, users: int, agents: int, events: int) -> None:
        """Note that there are more records of each kind, or fewer."""
        self.users += users
        self.agents += agents
        self.events += events

    def move_to(self, updated: str) -> None:
        """Note when the session was changed; it never goes back."""
        moment = nanoseconds(updated)
        if moment > self._moment():
            self.updated, self.updated_ns = updated, moment

    def _moment(self) -> int:
        if self.updated_ns is None:
            try:
                self.updated_ns = nanoseconds(self.updated)
            except InvalidValue as error:
                raise CorruptSession(f"session {self.id}: when it was changed last cannot be told: {error}") from error
        return self.updated_ns

    def row(self) -> tuple[object, ...]:
        """What goes back into the database, in the place of the version that is there."""
        age, age_rest = age_of(self._moment())
        return (
            self.version,
            self.updated,
            age,
            age_rest,
            self.next_seq,
            self.users,
            self.agents,
            self.events,
            self.alternates,
            self.size,
            self.opening,
            self.number,
            self.stored_version,
        )
