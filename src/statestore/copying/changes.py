"""The changes that make a session of the target what it is in the source."""

from __future__ import annotations

from typing import Any

import msgspec

from statestore.copying.standing import PROP
from statestore.engine import ChangeSession, NewRecord, Requires
from statestore.jsontext import changed_members, members
from statestore.store.recreating import fields_of, new_records
from statestore.stored import StoredSession
from statestore.timestamps import nanoseconds


def catching_up(ours: StoredSession, theirs: StoredSession) -> list[ChangeSession]:
    """The changes that give an earlier state of a session the fields and metadata that it has now."""
    old, new = members(theirs.metadata), members(ours.metadata)
    changed = {key: text for key, text in new.items() if old.get(key) != text}
    gone = tuple(key for key in old if key not in new)
    change = ChangeSession(
        ours.id, ours.fields.updated, set_fields=fields_of(ours), set_metadata=changed, unset_metadata=gone
    )
    if changed_members(theirs.metadata, changed, gone) == ours.metadata:
        return [change]
    # The keys are in another order now, which only setting all of them anew can bring about. The moment stays the
    # earlier one until that is done, so that an interrupted copy goes on here.
    emptied = ChangeSession(ours.id, theirs.fields.updated, unset_metadata=tuple(old))
    return [emptied, msgspec.structs.replace(change, set_metadata=new, unset_metadata=())]


def continuation(head: StoredSession, part: StoredSession) -> ChangeSession:
    """The change that adds the records of a part of a session.

    The moment is that of the fields and the metadata that were copied, so that later ones are known as later.
    """
    return ChangeSession(head.id, head.fields.updated, append=new_records(part))


def whole_rest(ours: StoredSession, theirs: StoredSession, rest: StoredSession) -> ChangeSession | None:
    """The one change that adds these records and brings all else up to date; ``None`` if that takes several."""
    change, *more = catching_up(ours, theirs)
    if more:
        return None
    return msgspec.structs.replace(change, append=new_records(rest), requires=Requires(version=theirs.version))


def prop(stored: StoredSession) -> ChangeSession:
    """The change that makes all numbers below the session's next one count as taken; `unprop` must follow."""
    body: dict[str, Any] = {"kind": PROP, "data": None, "timestamp": stored.fields.updated}
    moment = nanoseconds(stored.fields.updated)
    record = NewRecord(PROP, msgspec.json.encode(body), moment, seq=stored.next_seq - 1)
    return ChangeSession(stored.id, stored.fields.updated, append=(record,))


def unprop(stored: StoredSession, last_seq: int) -> ChangeSession:
    """The change that takes a prop away again."""
    return ChangeSession(stored.id, stored.fields.updated, truncate_after=last_seq)
