"""The row of a session, while a transaction works on it."""

from __future__ import annotations

from statestore.engines.columns import age_of
from statestore.errors import CorruptSession, InvalidValue
from statestore.timestamps import later_of, nanoseconds


class Header:
    """The row of a session, as the transaction has made it so far."""

    __slots__ = (
        "agents",
        "alternates",
        "created",
        "events",
        "id",
        "next_seq",
        "number",
        "opening",
        "owner",
        "size",
        "stored_version",
        "updated",
        "users",
        "version",
    )

    def __init__(
        self,
        number: int,
        session_id: str,
        owner: str,
        version: str,
        created: str,
        updated: str,
        next_seq: int,
        users: int,
        agents: int,
        events: int,
        alternates: int,
        size: int,
        opening: str | None,
    ) -> None:
        self.number = number
        self.id = session_id
        self.owner = owner
        self.version = self.stored_version = version
        self.created = created
        self.updated = updated
        self.next_seq = next_seq
        self.users = users
        self.agents = agents
        self.events = events
        self.alternates = alternates
        self.size = size
        self.opening = opening

    def count(self, column: int, by: int) -> None:
        """Note that there are more records of a kind, or fewer."""
        if column == 0:
            self.users += by
        elif column == 1:
            self.agents += by
        else:
            self.events += by

    def move_to(self, updated: str) -> None:
        """Note when the session was changed; it never goes back."""
        try:
            self.updated = later_of(self.updated, updated)
        except InvalidValue as error:
            raise CorruptSession(f"session {self.id}: when it was changed last cannot be told: {error}") from error

    def row(self) -> tuple[object, ...]:
        """What goes back into the database, in the place of the version that is there."""
        return (
            self.version,
            self.updated,
            *age_of(nanoseconds(self.updated)),
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
