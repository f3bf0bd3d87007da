"""A session's records as one framework sees them: in pieces, each some of its items, and what is no item of it.

A piece is a record with one item of the framework's own, or what others wrote, as far as it becomes one message in
translation. It stays or goes as a whole, with what is shown beside it. What is no item (a program's own events, another
framework's machinery) lies between the pieces, and stays whatever becomes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct

from statestore.adapters.handoff import dialect_of, turns_of
from statestore.adapters.items import item_in
from statestore.adapters.requirements import REQUIREMENTS
from statestore.adapters.turns import Dialect, Turn
from statestore.records import Record

RecordsOf = Callable[[Any], Sequence[Record]]
_encode: Final = msgspec.json.Encoder(order="deterministic").encode
"""Items are the same whatever the order of their fields."""


class Piece(Struct, eq=False):
    """Items that stay or go together."""

    items: list[Any]
    first: int
    """The place of its first record."""
    turns: list[Turn] = []
    """What others said; none in an item of the framework's own."""

    @property
    def is_own(self) -> bool:
        """Whether the framework wrote it itself."""
        return not self.turns

    def is_joined_by(self, turns: Sequence[Turn], dialect: Dialect) -> bool:
        """Whether what others say next becomes one message with what they said here."""
        return not self.is_own and dialect.write([*self.turns, *turns]) != [*self.items, *dialect.write(turns)]


class Pieces(Struct, frozen=True):
    """The pieces of some records. `of` finds them."""

    framework: str
    records: Sequence[Record]
    owners: Sequence[Piece | None]
    """For each record, the piece that it belongs to."""
    found: Sequence[Piece]
    is_apart: bool = False
    """Whether each record is translated by itself."""

    @classmethod
    def of(cls, framework: str, records: Sequence[Record], *, is_apart: bool = False) -> Pieces:
        """The pieces that a framework sees in records, which follow each other."""
        dialect = dialect_of(framework)
        owners: list[Piece | None] = []
        found: list[Piece] = []
        for place, record in enumerate(records):
            owner = None
            if (item := item_in(framework, record)) is not UNSET:
                owner = Piece([item], place)
            elif turns := turns_of(record):
                if found and not is_apart and found[-1].is_joined_by(turns, dialect):
                    owner = found[-1]
                    owner.turns = [*owner.turns, *turns]
                    owner.items = dialect.write(owner.turns)
                else:
                    owner = Piece(dialect.write(turns), place, list(turns))
            elif place and _is_shown_beside(records[place - 1], record):
                owner = owners[-1]
            owners.append(owner)
            if owner is not None and (not found or found[-1] is not owner):
                found.append(owner)
        return cls(framework, records, owners, found, is_apart)

    @property
    def items(self) -> list[Any]:
        """All items, in order."""
        return [item for piece in self.found for item in piece.items]

    def without(self, gone: Collection[int], records_of: RecordsOf | None = None) -> list[Record]:
        """The records that are left without the items at some places.

        What is left of a piece becomes the framework's own; ``records_of`` makes records of it, as the adapter does.
        """
        changed: dict[Piece, list[Any]] = {}
        place = 0
        for piece in self.found:
            left = [item for index, item in enumerate(piece.items, place) if index not in gone]
            place += len(piece.items)
            if len(left) < len(piece.items):
                changed[piece] = left
        return self._with(changed, records_of, {})

    def holding(self, items: Sequence[Any]) -> list[Record]:
        """The records for exactly these items: pieces stay that the items begin or end with, the others are replaced.

        New items stand where those were whose place they take; those that take nobody's, before what stays after them.
        """
        wanted = [_encode(item) for item in items]
        had = [[_encode(item) for item in piece.items] for piece in self.found]
        start = at = 0
        while start < len(had) and had[start] == wanted[at : at + len(had[start])]:
            at += len(had[start])
            start += 1
        end, to = len(had), len(items)
        while end > start and at <= to - len(had[end - 1]) and had[end - 1] == wanted[to - len(had[end - 1]) : to]:
            to -= len(had[end - 1])
            end -= 1
        new = list(items[at:to])
        changed: dict[Piece, list[Any]] = {}
        for piece in self.found[start:end]:
            count = len(new) if piece is self.found[end - 1] else len(piece.items)
            changed[piece], new = new[:count], new[count:]
        behind = self.found[end].first if end < len(had) else len(self.records)
        return self._with(changed, None, {behind: new} if new else {})

    def _with(
        self, changed: dict[Piece, list[Any]], records_of: RecordsOf | None, inserted: dict[int, list[Any]]
    ) -> list[Record]:
        """The records with some pieces changed into the framework's own items, and others inserted before places."""
        dialect = dialect_of(self.framework)
        if not self.is_apart:
            self._keep_apart(changed, dialect)
        new = {piece.first: items for piece, items in changed.items()} | inserted
        made = {
            place: [record for item in items for record in (records_of or dialect.records)(item)]
            for place, items in new.items()
        }
        records: list[Record] = []
        for place, record in enumerate(self.records):
            records += made.get(place, ())
            if self.owners[place] not in changed:
                records.append(record)
        return records + made.get(len(self.records), [])

    def _keep_apart(self, changed: dict[Piece, list[Any]], dialect: Dialect) -> None:
        """Where nothing is left between what others said, and it would be one message then, make the later one ours."""
        before: Piece | None = None
        for piece in self.found:
            if piece in changed:
                before = None if changed[piece] else before
            elif before is not None and before.is_joined_by(piece.turns, dialect):
                changed[piece] = piece.items
                before = None
            else:
                before = piece


def _is_shown_beside(before: Record, record: Record) -> bool:
    """Whether a record only shows what the one before it holds, whichever framework wrote them."""
    marks = record.extra
    return any(marks[name] is False and name in before.extra for name in marks if name in REQUIREMENTS)
