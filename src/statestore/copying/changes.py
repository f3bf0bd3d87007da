"""The changes that make a session of the target what it is in the source."""

from __future__ import annotations

from typing import Any

import msgspec

from statestore.copying.standing import PROP
from statestore.engine import SESSION_FIELDS, ChangeSession, NewRecord, NewSession, Requires
from statestore.jsontext import changed_members, members
from statestore.labels import labels_in, opening_of
from statestore.records import Record, UserMessage
from statestore.stored import StoredSession
from statestore.timestamps import nanoseconds


def new_records(stored: StoredSession) -> tuple[NewRecord, ...]:
    """The records of a session, or of a part of it, as they are added to another: numbers and keys included."""
    numbers, decoded = stored.records.numbering, stored.records.decoded()
    columns = zip((numbers.users, numbers.agents, numbers.events), decoded, strict=True)
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


def creation(stored: StoredSession, *, is_whole: bool) -> ChangeSession:
    """The change that creates a copy of a session with the records that were read of it.

    If more will follow, numbers are taken only as far as the records go.
    """
    fields = _fields_of(stored)
    return ChangeSession(
        id=stored.id,
        updated=stored.fields.updated,
        requires=Requires(absent=True),
        create=NewSession(
            stored.fields.user_id, stored.fields.created, stored.layout, stored.next_seq if is_whole else 1
        ),
        append=new_records(stored),
        set_fields={name: value for name, value in fields.items() if value is not None},
        set_metadata=members(stored.metadata),
    )


def catching_up(ours: StoredSession, theirs: StoredSession) -> list[ChangeSession]:
    """The changes that give an earlier state of a session the fields and metadata that it has now."""
    old, new = members(theirs.metadata), members(ours.metadata)
    changed = {key: text for key, text in new.items() if old.get(key) != text}
    gone = tuple(key for key in old if key not in new)
    change = ChangeSession(
        ours.id, ours.fields.updated, set_fields=_fields_of(ours), set_metadata=changed, unset_metadata=gone
    )
    if changed_members(theirs.metadata, changed, gone) == ours.metadata:
        return [change]
    # The keys are in another order now, which only setting all of them anew can bring about. The moment stays the
    # earlier one until that is done, so that an interrupted copy goes on here.
    emptied = ChangeSession(ours.id, theirs.fields.updated, unset_metadata=tuple(old))
    return [emptied, msgspec.structs.replace(change, set_metadata=new, unset_metadata=())]


def continuation(window: StoredSession) -> ChangeSession:
    """The change that adds the records of a part of a session."""
    return ChangeSession(window.id, window.fields.updated, append=new_records(window))


def prop(stored: StoredSession) -> ChangeSession:
    """The change that makes all numbers below the session's next one count as taken; `unprop` must follow."""
    body: dict[str, Any] = {"kind": PROP, "data": None, "timestamp": stored.fields.updated}
    moment = nanoseconds(stored.fields.updated)
    record = NewRecord(PROP, msgspec.json.encode(body), moment, seq=stored.next_seq - 1)
    return ChangeSession(stored.id, stored.fields.updated, append=(record,))


def unprop(stored: StoredSession, last_seq: int) -> ChangeSession:
    """The change that takes a prop away again."""
    return ChangeSession(stored.id, stored.fields.updated, truncate_after=last_seq)


def _fields_of(stored: StoredSession) -> dict[str, str | None]:
    """The fields and the labels that follow from the metadata; ``None`` where unset."""
    metadata = msgspec.json.decode(stored.metadata)
    fields: dict[str, str | None] = {name: getattr(stored.fields, name) for name in SESSION_FIELDS}
    return fields | labels_in(metadata, ("title", "project_id", "project_ids"))
