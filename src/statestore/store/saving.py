"""From a `Session` object to the change that stores what is new in it, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from statestore.engine import ChangeSession, NewRecord, NewSession, Outcome, Requires
from statestore.errors import NotSupported, SessionConflict, SessionNotFound
from statestore.jsontext import changed_members, members
from statestore.labels import LABEL_KEYS, labels_in, opening_of
from statestore.ledger import Ledger, Origin, Shelf
from statestore.records import USER, Record, UserMessage, body_of, column_of, is_found_by_number, kind_of
from statestore.session import Session, field_values, ledger_of
from statestore.stored import Numbering, SessionFields
from statestore.timeline import placed
from statestore.timestamps import nanoseconds


def new_record(record: Record, key: str | None = None) -> NewRecord:
    """A record as an engine takes it."""
    moment = nanoseconds(record.timestamp_text)
    if isinstance(record, UserMessage):
        return NewRecord(USER, body_of(record), moment, key, None, opening_of(record.content))
    return NewRecord(kind_of(record), body_of(record), moment, key)


class Draft:
    """What one save will send, and what the object will know once it is stored.

    ``as_new`` sends the session whole, to be created. ``exact`` insists on the version it was loaded at.
    """

    __slots__ = (
        "_keys",
        "_sent",
        "_snapshots",
        "_stored_counts",
        "_told",
        "change",
        "cut",
        "fields",
        "known",
        "ledger",
        "metadata",
        "records",
    )

    def __init__(self, session: Session, *, as_new: bool = False, exact: bool = False) -> None:
        self.ledger = ledger_of(session)
        self._told: tuple[Outcome, str] | None = None
        """What became of the change, and in the store at which place, once that is known."""
        with self.ledger.changing:
            self._draw_up(session, self.ledger, as_new=as_new, exact=exact)

    def _draw_up(self, session: Session, ledger: Ledger, *, as_new: bool, exact: bool) -> None:
        self.known = known = ledger.origin
        self._sent = ledger.pending[:]
        self._stored_counts = [shelf.stored_count for shelf in ledger.shelves]
        as_new = as_new or known is None
        is_edited = ledger.is_edited()
        self.cut = cut = ledger.rewritten_since() if is_edited and not as_new else None
        _refuse_what_cannot_be_sent(session, known, as_new=as_new, is_rewrite=cut is not None)

        values = field_values(session, known.fields if known else None)
        was = {} if as_new or known is None else {name: getattr(known.fields, name) for name in values}
        fields = {name: value for name, value in values.items() if value != was.get(name)}
        set_metadata, unset_metadata = ledger.changed_metadata()
        self.metadata = changed_members(known.metadata if known else b"{}", set_metadata, unset_metadata)
        if as_new:
            set_metadata, unset_metadata = members(self.metadata), ()
        self._take_records(ledger, as_new=as_new, is_edited=is_edited)
        if cut is not None:
            _refuse_to_renumber(session, self.records)

        self.change: ChangeSession | None = None
        if not as_new and known is not None and session.updated_text == known.fields.updated:
            if not (self.records or fields or set_metadata or unset_metadata or cut is not None):
                return
            session.touch()
        self.fields = SessionFields(session.user_id, session.created_text, session.updated_text, **values)
        labels = self._labels(session, set_metadata, unset_metadata)
        self.change = ChangeSession(
            id=str(session.id),
            updated=session.updated_text,
            requires=_requires(session, None if as_new else known, versioned=exact or cut is not None),
            create=_birth(session, known) if as_new else None,
            truncate_after=None if cut is None else cut - 1,
            append=tuple(map(new_record, self.records, self._keys)),
            set_fields=fields | labels if labels else fields,
            set_metadata=set_metadata,
            unset_metadata=unset_metadata,
        )

    def _take_records(self, ledger: Ledger, *, as_new: bool, is_edited: bool) -> None:
        """The records to send: all, all from where the lists were edited, or those that were added."""
        if as_new or is_edited:
            self._snapshots = tuple(list(shelf.records) for shelf in ledger.shelves)
            self.records, self._keys = _records_since(ledger, 0 if as_new else self.cut)
        else:
            self._snapshots = None
            self.records = [pending.record for pending in ledger.pending]
            self._keys = [pending.key for pending in ledger.pending]

    def _labels(
        self, session: Session, set_metadata: Mapping[str, bytes], unset_metadata: Sequence[str]
    ) -> dict[str, str | None]:
        """What listings will show otherwise, since these metadata or the first message may have changed.

        It is worked out from what is stored, not from what was set: a UUID is stored as a text.
        """
        stored = {key: msgspec.json.decode(set_metadata[key]) for key in LABEL_KEYS if key in set_metadata}
        labels = labels_in(stored, (*set_metadata, *unset_metadata))
        if self.cut is not None and self.known is not None and self.known.holds_opening:
            first = self._first_message(session, self.known, self.cut)
            labels["opening"] = None if first is None else opening_of(first.content)
        return labels

    def _first_message(self, session: Session, known: Origin, cut: int) -> UserMessage | None:
        """The first of the user's messages once this is stored: a record whose key is known is not."""
        users, *_ = known.seqs()
        if users and users[0] < cut:
            return session.user_messages[0]
        keys = {key for seq, key in known.keys().items() if seq < cut}
        for record, key in zip(self.records, self._keys, strict=True):
            if isinstance(record, UserMessage) and key not in keys:
                return record
            if key is not None:
                keys.add(key)
        return None

    def note_stored(self, outcome: Outcome, place: str) -> None:
        """The change happened in the store at this place: let the object know. Interrupted, it can be repeated."""
        self._told = outcome, place
        self.note(self.origin_after(outcome, place))
        self.ledger.unsure = None

    def note_again(self, place: str) -> bool:
        """Whether it is known that the change happened in the store at this place: if so, the object knows it now."""
        if self._told is None or self._told[1] != place:
            return False
        self.note_stored(*self._told)
        return True

    def origin_after(self, outcome: Outcome, place: str) -> Origin:
        """What the store has now."""
        known = self.known
        if known is None or outcome.before is None:
            layout = known.layout if known else None
            origin = Origin(
                outcome.version, self.fields, self.metadata, layout, place=place, numbering=Numbering, last_seq=0
            )
        else:
            is_ours = not known.is_stale and known.version == outcome.before
            version = outcome.version if is_ours else known.version
            origin = known.after(version, self.fields, self.metadata, is_stale=not is_ours)
        if self.cut is not None:
            origin.note_truncated(self.cut)
        origin.note_appended(self.records, self._keys, outcome.seqs)
        return origin

    def note(self, origin: Origin) -> None:
        """Let the object know what the store has now. Nothing here depends on how much of it was done before."""
        ledger = self.ledger
        ledger.origin = origin
        with ledger.changing:
            if self._sent and ledger.pending and ledger.pending[0] is self._sent[0]:
                del ledger.pending[: len(self._sent)]
            waiting = [pending.record for pending in ledger.pending]
            for column, shelf in enumerate(cast("tuple[Shelf[Any], ...]", ledger.shelves)):
                if self._snapshots is not None:
                    shelf.note_stored(self._snapshots[column], _in_column(waiting, column))
                else:
                    shelf.note_appended(self._stored_counts[column], _in_column(self.records, column))


def _in_column(records: list[Record], column: int) -> list[Record]:
    return [record for record in records if column_of(kind_of(record)) == column]


def _refuse_what_cannot_be_sent(session: Session, known: Origin | None, *, as_new: bool, is_rewrite: bool) -> None:
    if known is not None and as_new and known.is_part:
        raise SessionNotFound(
            f"session {session.id} was deleted since its newest part was loaded; the rest is not here to store it anew"
        )
    if known is not None and is_rewrite and known.is_stale:
        raise SessionConflict(
            f"session {session.id} was changed by somebody else since it was loaded, so its history cannot be "
            "rewritten: load it again"
        )


def _refuse_to_renumber(session: Session, records: Sequence[Record]) -> None:
    """Refuse to give new numbers to what others find by its number: their thread could not be read any more."""
    if any(map(is_found_by_number, records)):
        raise NotSupported(
            f"session {session.id} is a LangGraph thread, whose checkpoints name its records by their numbers: "
            "take messages back in the graph (update_state), or rewind the session"
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
