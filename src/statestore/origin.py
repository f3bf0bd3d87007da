"""What the store has of a session, as far as one `Session` object knows: the ground that a save compares with."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import msgspec

from statestore.records import AgentResponse, Record, RecordArrays, UserMessage
from statestore.stored import Numbering, Records, SessionFields, Version


class Pending(msgspec.Struct, frozen=True):
    """A record that was appended and not saved yet, with its idempotency key."""

    record: Record
    key: str | None = None


class Origin:
    """What the store has of a session, as far as one `Session` object knows."""

    __slots__ = (
        "_appended",
        "_records",
        "fields",
        "holds_opening",
        "is_part",
        "is_stale",
        "last_seq",
        "layout",
        "metadata",
        "place",
        "version",
    )

    def __init__(
        self,
        version: Version,
        fields: SessionFields,
        metadata: bytes,
        layout: bytes | None,
        *,
        place: str,
        records: Records,
        last_seq: int,
        is_part: bool = False,
        holds_opening: bool = True,
    ) -> None:
        self.version = version
        self.fields = fields
        self.metadata = metadata
        self.layout = layout
        self.place = place
        """The URL of the store that has it."""
        self.last_seq = last_seq
        """The highest number that this object knows to be given out."""
        self.is_part = is_part
        """Whether only the newest records were loaded."""
        self.holds_opening = holds_opening
        """Whether the object has the first of the user's messages, or there is none."""
        self.is_stale = False
        """Somebody else's change was merged with ours, so the object does not hold all that is stored."""
        self._records = records
        self._appended: list[tuple[int, int, str | None]] = []

    def seqs(self) -> tuple[list[int], list[int], list[int]]:
        """The numbers of the stored records, list by list."""
        numbering = self._records.numbering
        columns = list(numbering.users), list(numbering.agents), list(numbering.events)
        for column, seq, _ in self._appended:
            columns[column].append(seq)
        return columns

    def keys(self) -> dict[int, str]:
        """The idempotency keys of the stored records, by their numbers."""
        return self._records.numbering.keys | {seq: key for _, seq, key in self._appended if key is not None}

    def note_appended(self, records: Sequence[Record], keys: Sequence[str | None], seqs: Sequence[int]) -> None:
        """These records are stored now, under these numbers."""
        for record, key, seq in zip(records, keys, seqs, strict=True):
            self._appended.append((column_of(record), seq, key))
            if seq <= self.last_seq:  # its idempotency key was there before: the object holds one record too many
                self.is_stale = True
            self.last_seq = max(self.last_seq, seq)

    def note_truncated(self, first_gone: int) -> None:
        """The records from this number on are gone."""
        users, agents, events = (column[: bisect_left(column, first_gone)] for column in self.seqs())
        self._records = Records(RecordArrays(), Numbering(users, agents, events, self.keys()))
        self._appended = []


def column_of(record: Record) -> int:
    """Which of a session's three lists a record belongs to."""
    return 0 if isinstance(record, UserMessage) else 1 if isinstance(record, AgentResponse) else 2
