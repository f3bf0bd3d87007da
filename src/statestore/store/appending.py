"""The change that adds records to a session which nobody has loaded."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from msgspec.structs import replace

from statestore.engine import ChangeSession, NewRecord, Requires
from statestore.errors import InvalidValue
from statestore.jsontext import check_label
from statestore.names import check_session_id
from statestore.records import AgentResponse, Event, Record, UserMessage
from statestore.store.saving import new_record
from statestore.timestamps import later_of, now_text


def appending(
    session_id: str, records: Sequence[Record], keys: Sequence[str | None] | None, owner: str | None = None
) -> ChangeSession:
    """Add records to a session that is there, and is this owner's if one is named; with a key for each, or none."""
    session_id = check_session_id(session_id)
    if keys is not None and (isinstance(keys, str) or not isinstance(keys, Sequence)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidValue(f"keys is a list with one key for each record, not {type(keys).__name__}")
    if keys is not None and len(keys) != len(records):
        raise InvalidValue(f"{len(records)} records but {len(keys)} keys: give one for each, or None in its place")
    if keys is not None:
        keys = [None if key is None else check_label(key, "a key", may_be_empty=False) for key in keys]
        _check_keys(records, keys)
    updated = now_text()
    new: list[NewRecord] = []
    for record, key in zip(records, keys or [None] * len(records), strict=True):
        if not isinstance(record, (UserMessage, AgentResponse, Event)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidValue(f"a record is a UserMessage, an AgentResponse or an Event, not {type(record).__name__}")
        new.append(new_record(record, key))
        updated = later_of(updated, record.timestamp_text)
    return ChangeSession(
        id=session_id, updated=updated, requires=Requires(present=True, owner=owner), append=tuple(new)
    )


def joined(changes: Sequence[ChangeSession]) -> ChangeSession:
    """Several that add records to one session, as one."""
    updated = reduce(later_of, [change.updated for change in changes])
    return replace(changes[0], updated=updated, append=tuple(record for change in changes for record in change.append))


def _check_keys(records: Sequence[Record], keys: Sequence[str | None]) -> None:
    """Refuse one key for a question and its answer: the answer would be taken for a repetition, and not be stored."""
    kinds: dict[str, type[Record]] = {}
    for record, key in zip(records, keys, strict=True):
        if key is not None and kinds.setdefault(key, record.__class__) is not record.__class__:
            raise InvalidValue(f"key {key!r} is given to two records: each needs its own, like {f'{key}: answer'!r}")
