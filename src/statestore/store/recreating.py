"""The change that creates a session anew, with all that it has: for copies, imports, and what leaves the trash."""

from __future__ import annotations

import msgspec

from statestore.engine import ChangeSession, NewRecord, NewSession, Requires
from statestore.jsontext import check_object, members
from statestore.labels import LABEL_KEYS, labels_in, opening_of
from statestore.records import Record, UserMessage
from statestore.stored import OPTIONAL_FIELDS, StoredSession
from statestore.timestamps import nanoseconds


def creation(stored: StoredSession, *, is_whole: bool = True) -> ChangeSession:
    """The change that creates a copy of a session with the records that were read of it.

    If more will follow, numbers are taken only as far as the records go.
    """
    if stored.layout is not None:
        check_object(stored.layout)
    metadata = members(stored.metadata)
    return ChangeSession(
        id=stored.id,
        updated=stored.fields.updated,
        requires=Requires(absent=True),
        create=NewSession(
            stored.fields.user_id, stored.fields.created, stored.layout, stored.next_seq if is_whole else 1
        ),
        append=new_records(stored),
        set_fields={name: value for name, value in fields_of(stored).items() if value is not None},
        set_metadata=metadata,
    )


def new_records(stored: StoredSession) -> tuple[NewRecord, ...]:
    """The records of a session, or of a part of it, as they are added to another: numbers and keys included."""
    numbers, decoded = stored.records.numbering, stored.records.decoded()
    columns = zip(numbers.columns, decoded, strict=True)
    known: dict[int, Record] = {
        seq: record for seqs, column in columns for seq, record in zip(seqs, column, strict=True)
    }
    added: list[NewRecord] = []
    for record in stored.records.in_order():
        said = known[record.seq]
        opening = opening_of(said.content) if isinstance(said, UserMessage) else None
        moment = nanoseconds(said.timestamp_text)
        added.append(NewRecord(record.kind, record.body, moment, record.key, record.seq, opening))
    return tuple(added)


def fields_of(stored: StoredSession) -> dict[str, str | None]:
    """The fields and the labels that follow from the metadata; ``None`` where unset."""
    metadata = msgspec.json.decode(stored.metadata)
    fields: dict[str, str | None] = {name: getattr(stored.fields, name) for name in OPTIONAL_FIELDS}
    return fields | labels_in(metadata, LABEL_KEYS)
