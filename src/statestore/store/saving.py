"""From a `Session` object to the change that stores what is new in it, and back."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, cast

from msgspec.structs import replace

from statestore.engine import ChangeSession, NewRecord, NewSession, Outcome, Requires
from statestore.errors import SessionConflict, SessionNotFound
from statestore.jsontext import changed_members, members
from statestore.labels import labels_in, opening_of
from statestore.ledger import Ledger, Origin, Shelf
from statestore.records import Record, UserMessage, body_of, column_of, kind_of
from statestore.session import Session, field_values, ledger_of
from statestore.store.finding import as_given, numbers_of
from statestore.stored import OPTIONAL_FIELDS, Numbering, SessionFields, StoredSession
from statestore.timeline import placed
from statestore.timestamps import nanoseconds


def new_record(record: Record, key: str | None = None) -> NewRecord:
    """A record as an engine takes it."""
    opening = opening_of(record.content) if isinstance(record, UserMessage) else None
    return NewRecord(kind_of(record), body_of(record), nanoseconds(record.timestamp_text), key, opening=opening)


class Draft:
    """What one save will send, and what the object will know once it is stored.

    ``as_new`` sends the session whole, to be created. ``exact`` insists on the version it was loaded at.
    """

    __slots__ = (
        "_cut",
        "_fields",
        "_keys",
        "_known",
        "_ledger",
        "_metadata",
        "_records",
        "_sent",
        "_snapshots",
        "_stored_counts",
        "_told",
        "change",
    )

    def __init__(self, session: Session, *, as_new: bool = False, exact: bool = False) -> None:
        self._ledger = ledger_of(session)
        self._told: tuple[Outcome, str] | None = None
        """What became of the change, and in the store at which place, once that is known."""
        with self._ledger.changing:
            self._draw_up(session, self._ledger, as_new=as_new, exact=exact)

    def _draw_up(self, session: Session, ledger: Ledger, *, as_new: bool, exact: bool) -> None:
        self._known = known = ledger.origin
        self._sent = ledger.pending[:]
        self._stored_counts = [shelf.stored_count for shelf in ledger.shelves]
        as_new = as_new or known is None
        is_edited = ledger.is_edited()
        self._cut = cut = ledger.rewritten_since() if is_edited and not as_new else None
        if as_new and known is not None:
            _refuse_part(session, known)
        if cut is not None and known is not None and known.is_stale:
            raise SessionConflict(
                f"session {session.id} was changed by somebody else since it was loaded, so its history cannot be "
                "rewritten: load it again"
            )

        values = field_values(session)
        was = {} if as_new or known is None else {name: getattr(known.fields, name) for name in values}
        fields = {name: value for name, value in values.items() if value != was.get(name)}
        set_metadata, unset_metadata = ledger.changed_metadata()
        self._metadata = changed_members(known.metadata if known else b"{}", set_metadata, unset_metadata)
        if as_new:
            set_metadata, unset_metadata = members(self._metadata), ()

        if as_new or is_edited:
            self._snapshots = tuple(list(shelf.records) for shelf in ledger.shelves)
            self._records, self._keys = _records_since(ledger, 0 if as_new else cut)
        else:
            self._snapshots = None
            self._records = [pending.record for pending in ledger.pending]
            self._keys = [pending.key for pending in ledger.pending]

        self.change: ChangeSession | None = None
        if not as_new and known is not None:
            is_changed = bool(self._records or fields or set_metadata or unset_metadata or cut is not None)
            if session.updated_text == known.fields.updated:
                if not is_changed:
                    return
                session.touch()
        self._fields = SessionFields(session.user_id, session.created_text, session.updated_text, **values)
        touched = (*set_metadata, *unset_metadata)
        labels = labels_in(session.metadata, touched) if touched else {}
        if cut is not None and known is not None and known.holds_opening:
            first = session.user_messages[:1]
            labels["opening"] = opening_of(first[0].content) if first else None
        self.change = ChangeSession(
            id=str(session.id),
            updated=session.updated_text,
            requires=_requires(session, None if as_new else known, versioned=exact or cut is not None),
            create=_birth(session, known) if as_new else None,
            truncate_after=None if cut is None else cut - 1,
            append=tuple(map(new_record, self._records, self._keys)),
            set_fields=fields | labels if labels else fields,
            set_metadata=set_metadata,
            unset_metadata=unset_metadata,
        )

    def note_stored(self, outcome: Outcome, place: str) -> None:
        """The change happened in the store at this place: let the object know. Interrupted, it can be repeated."""
        self._told = outcome, place
        self._note(self._origin_after(outcome, place))
        self._ledger.unsure = None

    def note_again(self, place: str) -> bool:
        """Whether it is known that the change happened in the store at this place: if so, the object knows it now."""
        if self._told is None or self._told[1] != place:
            return False
        self.note_stored(*self._told)
        return True

    def _origin_after(self, outcome: Outcome, place: str) -> Origin:
        """What the store has now."""
        known = self._known
        if known is None or outcome.before is None:
            layout = known.layout if known else None
            origin = Origin(
                outcome.version, self._fields, self._metadata, layout, place=place, numbering=Numbering, last_seq=0
            )
        else:
            is_ours = not known.is_stale and known.version == outcome.before
            version = outcome.version if is_ours else known.version
            origin = known.after(version, self._fields, self._metadata, is_stale=not is_ours)
        if self._cut is not None:
            origin.note_truncated(self._cut)
        origin.note_appended(self._records, self._keys, outcome.seqs)
        return origin

    def _note(self, origin: Origin) -> None:
        """Let the object know what the store has now. Nothing here depends on how much of it was done before."""
        ledger = self._ledger
        ledger.origin = origin
        with ledger.changing:
            if self._sent and ledger.pending and ledger.pending[0] is self._sent[0]:
                del ledger.pending[: len(self._sent)]
            waiting = [pending.record for pending in ledger.pending]
            for column, shelf in enumerate(cast("tuple[Shelf[Any], ...]", ledger.shelves)):
                if self._snapshots is not None:
                    shelf.note_stored(self._snapshots[column], _in_column(waiting, column))
                else:
                    shelf.note_appended(self._stored_counts[column], _in_column(self._records, column))

    def note_if_found(self, stored: StoredSession, place: str) -> None:
        """After a save with an unknown outcome: take note of it if what is stored now shows that it happened.

        It did if any record is there that nobody else can have stored; somebody else may have removed others since.
        That all are there may be somebody else's doing: with the same idempotency key, by the same rewind, or out of
        the trash. Then what else was to be saved is sent again.
        """
        change, known = self.change, self._known
        if change is None or stored.fields.user_id != self._fields.user_id:
            return
        if change.create is not None and stored.fields.created != change.create.created:
            return
        found = stored.records.in_order()
        had = list(self._had()) if change.create is None else []
        numbers = numbers_of(change.append, found, set(had))
        is_ours = self._can_only_be_ours(change, numbers)
        is_there = (stored.fields, stored.metadata) == (self._fields, self._metadata)
        if not is_ours and not self._is_as_sent(change, numbers, [record.seq for record in found], is_there=is_there):
            if known is not None:
                self._ledger.origin = known.after(
                    known.version, *self._as_stored(known, change, stored), is_stale=known.is_stale
                )
            return
        before = None if change.create is not None else _UNKNOWN
        given = as_given(numbers, known.last_seq if known is not None and change.create is None else 0)
        origin = self._origin_after(Outcome(before, stored.version, given), place)
        if known is not None and not is_ours and not is_there:
            origin.fields, origin.metadata = self._as_stored(known, change, stored)
        held = [(seq, body) for seq, body in had if self._cut is None or seq < self._cut]
        held += zip(given, (sent.body for sent in change.append), strict=True)
        is_all = list(given) == sorted(given) and _is_all_of(stored, origin, sorted(held))
        origin.is_stale = not is_all
        origin.version = stored.version if is_all else origin.version
        self._note(origin)

    def _had(self) -> Iterator[tuple[int, bytes]]:
        """The numbers and bodies of the records that the store had before this save, as far as the object knows."""
        for column in self._ledger.columns():
            for seq, record in zip(column.seqs, column.stored, strict=True):
                yield seq, body_of(record)

    def _can_only_be_ours(self, change: ChangeSession, numbers: list[int | None]) -> bool:
        """Whether a record was found that was new with this save, and has no key that somebody else may have used."""
        if change.create is not None and None in numbers:
            return False  # an earlier save may have stored those that are there, and the trash given them back
        had = {id(record) for shelf in self._ledger.shelves for record in cast("Shelf[Any]", shelf).stored()}
        return any(
            number is not None and sent.key is None and id(record) not in had
            for number, sent, record in zip(numbers, change.append, self._records, strict=True)
        )

    def _is_as_sent(
        self, change: ChangeSession, numbers: list[int | None], there: list[int], *, is_there: bool
    ) -> bool:
        """Whether the records are there as this save would have left them, whoever stored them."""
        if None in numbers:
            return False
        known, cut = self._known, self._cut
        if known is None or cut is None:
            return bool(numbers) or change.create is not None or is_there
        loaded = sorted(chain(*known.seqs()))
        left = sorted({seq for seq in loaded if seq < cut}.union(number for number in numbers if number is not None))
        there = [seq for seq in there if seq >= loaded[0]]
        return there[: len(left)] == left and not any(cut <= seq <= known.last_seq for seq in there)

    def _as_stored(self, known: Origin, change: ChangeSession, stored: StoredSession) -> tuple[SessionFields, bytes]:
        """The fields and metadata that were known before; of those that this save was to change, what is stored now."""
        fields = {name: getattr(stored.fields, name) for name in change.set_fields if name in OPTIONAL_FIELDS}
        there = members(stored.metadata)
        touched = (*change.set_metadata, *change.unset_metadata)
        metadata = changed_members(
            known.metadata,
            {key: there[key] for key in touched if key in there},
            [key for key in touched if key not in there],
        )
        return replace(known.fields, **fields), metadata


_UNKNOWN = object()
"""A version that equals none."""


def _is_all_of(stored: StoredSession, origin: Origin, held: list[tuple[int, bytes]]) -> bool:
    """Whether an object that holds these records, by number and body, holds exactly what is stored."""
    return (
        not origin.is_part
        and held == [(record.seq, record.body) for record in stored.records.in_order()]
        and (origin.fields, origin.metadata) == (stored.fields, stored.metadata)
    )


def _in_column(records: list[Record], column: int) -> list[Record]:
    return [record for record in records if column_of(kind_of(record)) == column]


def _refuse_part(session: Session, known: Origin) -> None:
    if known.is_part:
        raise SessionNotFound(
            f"session {session.id} was deleted since its newest part was loaded; the rest is not here to store it anew"
        )


def _records_since(ledger: Ledger, since: int | None) -> tuple[list[Record], list[str | None]]:
    """What the lists hold from a number on (``None``: what is not stored), in order, with idempotency keys."""
    origin = ledger.origin
    if since is None:
        since = origin.last_seq + 1 if origin else 0
    pending = ledger.pending
    stored_keys = origin.keys() if origin else {}
    records: list[Record] = []
    keys: list[str | None] = []
    for (seq, _, record), rank in placed(ledger.columns(), [item.record for item in pending], since):
        records.append(record)
        keys.append(stored_keys.get(seq) if seq is not None else None if rank is None else pending[rank].key)
    return records, keys


def _birth(session: Session, known: Origin | None) -> NewSession:
    return NewSession(session.user_id, session.created_text, known.layout if known else None)


def _requires(session: Session, origin: Origin | None, *, versioned: bool) -> Requires:
    if origin is None:
        return Requires(absent=True, owner=session.user_id)
    version = origin.version if versioned else None
    return Requires(present=True, owner=session.user_id, version=version, created=session.created_text)
