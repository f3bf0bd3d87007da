"""The change that adds records to a session which nobody has loaded."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import repeat

from msgspec.structs import replace

from statestore.engine import ChangeSession, NewRecord, Requires
from statestore.errors import InvalidValue
from statestore.jsontext import check_label
from statestore.names import check_session_id
from statestore.records import AgentResponse, Event, Record, UserMessage
from statestore.store.saving import new_record
from statestore.timestamps import later_of, nanoseconds, now_text


def appending(
    session_id: str, records: Sequence[Record], keys: Sequence[str | None] | None, owner: str | None = None
) -> ChangeSession:
    """Add records to a session that is there, and is this owner's if one is named; with a key for each, or none."""
    session_id = check_session_id(session_id)
    updated = now_text()
    latest = nanoseconds(updated)
    new: list[NewRecord] = []
    for record, key in zip(records, repeat(None) if keys is None else _checked_keys(records, keys), strict=False):
        if not isinstance(record, (UserMessage, AgentResponse, Event)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidValue(f"a record is a UserMessage, an AgentResponse or an Event, not {type(record).__name__}")
        added = new_record(record, key)
        if added.timestamp_ns > latest:
            updated, latest = record.timestamp_text, added.timestamp_ns
        new.append(added)
    return ChangeSession(session_id, updated, Requires(present=True, owner=owner), append=tuple(new))


def joined(changes: Sequence[ChangeSession]) -> ChangeSession:
    """Several that add records to one session, as one."""
    updated = reduce(later_of, [change.updated for change in changes])
    return replace(changes[0], updated=updated, append=tuple(record for change in changes for record in change.append))


def _checked_keys(records: Sequence[Record], keys: Sequence[str | None]) -> Sequence[str | None]:
    """A key for each record, or none. One key for a question and its answer is refused: the answer would be taken for a
    repetition, and not be stored.
    """
    if isinstance(keys, str) or not isinstance(keys, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidValue(f"keys is a list with one key for each record, not {type(keys).__name__}")
    if len(keys) != len(records):
        raise InvalidValue(f"{len(records)} records but {len(keys)} keys: give one for each, or None in its place")
    keys = [None if key is None else check_label(key, "a key", may_be_empty=False) for key in keys]
    kinds: dict[str, type[Record]] = {}
    for record, key in zip(records, keys, strict=True):
        if key is not None and kinds.setdefault(key, record.__class__) is not record.__class__:
            raise InvalidValue(f"key {key!r} is given to two records: each needs its own, like {f'{key}: answer'!r}")
    return keys
