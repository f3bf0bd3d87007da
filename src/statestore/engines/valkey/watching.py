"""Telling what happened to sessions, from the stream of changes."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from statestore.engine import ChangePage
from statestore.engines.telling import ChangeRow, Moment, tell
from statestore.engines.valkey.calling import Caller
from statestore.engines.valkey.keys import Keys
from statestore.engines.valkey.planning import MAX_SEQ
from statestore.engines.valkey.reading import HEAD, SEPARATOR
from statestore.engines.valkey.scripts import READ
from statestore.errors import CorruptData, CursorExpired
from statestore.records import AGENT, USER, decode_body, kind_of
from statestore.stored import StoredRecord

MOST: Final = 1_000
"""How many changes are looked at for one page at most."""

log = logging.getLogger("statestore")
_unpack = msgspec.msgpack.Decoder(list[Any]).decode
_parts = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode
_text_or_false = msgspec.msgpack.Decoder(str | bool).decode


class _Change(NamedTuple):
    """An entry of the stream."""

    number: int
    id: str
    born: str
    user_id: str
    first: int | None
    last: int | None
    rewound_to: int | None
    is_header: bool
    is_gone: bool


class _Found(NamedTuple):
    """What there is now of the session of a change: whether it is the same one still, and the records it added."""

    is_same: bool
    records: Sequence[StoredRecord]


GONE: Final = _Found(is_same=False, records=())


async def present_cursor(caller: Caller, keys: Keys) -> str:
    """The cursor after which nothing happened yet."""
    number, (identity,) = await _all(caller, [("GET", keys.change), ("HMGET", keys.store, "identity")])
    return Moment((identity or b"").decode(), int(number or 0)).cursor


async def read_changes(
    caller: Caller, keys: Keys, after: str, session_id: str | None, user_id: str | None, limit: int
) -> ChangePage:
    """What happened after a cursor, in order."""
    moment = Moment.parse(after, last_seq=MAX_SEQ)
    number, (identity,), entries = await _all(
        caller,
        [
            ("GET", keys.change),  # first, so that what it tells is in the stream by then
            ("HMGET", keys.store, "identity"),
            ("XRANGE", keys.changes, f"{moment.change + 1}-0", "+", "COUNT", max(1, min(limit, MOST))),
        ],
    )
    changes = [_change_of(entry) for entry in entries]
    is_ours = moment.identity == (identity or b"").decode() and moment.change <= max(
        int(number or 0), changes[-1].number if changes else 0
    )
    next_kept = changes[0].number if changes else int(number or 0) + 1
    if not is_ours or next_kept != moment.change + 1:
        raise CursorExpired(
            f"the changes since {after[:60]!r} are no longer kept, or it is a cursor of another store: "
            "load what you need, and watch from change_cursor()"
        )
    wanted = [
        change
        for change in changes
        if (session_id is None or change.id == session_id) and (user_id is None or change.user_id == user_id)
    ]
    found = await _look(caller, keys, wanted)

    def added(row: ChangeRow, told: int) -> Iterator[StoredRecord]:
        return (record for record in found[row.change].records if record.seq > told)

    rows = (_row(change, found.get(change.number)) for change in changes)
    return tell(rows, moment, added, session_id=session_id, user_id=user_id, limit=limit)


async def _all(caller: Caller, commands: list[tuple[str | int, ...]]) -> list[Any]:
    replies = await caller.call_all(commands)
    for reply in replies:
        error = caller.explained(reply)
        if error is not None:
            raise error
    return replies


def _change_of(entry: tuple[bytes, list[bytes]]) -> _Change:
    place, (_, packed) = entry
    session_id, born, user_id, first, last, rewound_to, is_header, is_gone = _unpack(packed)
    first, last, rewound_to = (None if number is False else number for number in (first, last, rewound_to))
    return _Change(
        int(place.partition(b"-")[0]), session_id, born, user_id, first, last, rewound_to, is_header, is_gone
    )


async def _look(caller: Caller, keys: Keys, changes: list[_Change]) -> dict[int, _Found]:
    """What there is now of the sessions of some changes, and of the records that they added."""
    calls: list[tuple[tuple[str, ...], tuple[str | int, ...]]] = []
    for change in changes:
        base = keys.session(change.id)
        bounds = (0, 1) if change.first is None or change.last is None else (change.first - 1, change.last + 1)
        calls.append((keys.parts_of(base), (base, *bounds, -1, MAX_SEQ)))
    replies = await caller.run_all(READ, calls) if calls else []
    found: dict[int, _Found] = {}
    for change, reply in zip(changes, replies, strict=True):
        try:
            error = caller.explained(reply)
            if error is not None:
                raise error
            found[change.number] = _found_in(change, reply)
        except (CorruptData, ValueError):
            log.warning("a change of session %s is not told: what it left is damaged; check() tells more", change.id)
            found[change.number] = GONE
    return found


def _found_in(change: _Change, reply: Any) -> _Found:
    """What the script read of a session, going by the change that is to be told."""
    if reply is None:
        return GONE
    born = _text_or_false(_parts(reply[0])[11])
    return _Found(is_same=True, records=list(_records_in(change.id, reply[2]))) if born == change.born else GONE


def _records_in(session_id: str, joined: bytes) -> Iterator[StoredRecord]:
    for record in joined.split(SEPARATOR) if joined else ():
        try:
            yield _record_of(record)
        except ValueError:
            log.warning("session %s has a record that is not told: it begins with %r", session_id, record[:HEAD])


def _record_of(record: bytes) -> StoredRecord:
    column, body = record[:1], record[HEAD:]
    return StoredRecord(int(record[1:HEAD]), _kind_of(column, body), body)


def _kind_of(column: bytes, body: bytes) -> str:
    if column != b"e":
        return USER if column == b"u" else AGENT
    try:
        return kind_of(decode_body("event", body))
    except (msgspec.DecodeError, ValueError):  # not an event: check() tells
        return "event"


def _row(change: _Change, found: _Found | None) -> ChangeRow:
    """The change as `tell` has it. One that is not wanted is of nobody."""
    is_wanted, is_there = found is not None, found is not None and found.is_same
    return ChangeRow(
        change.number,
        0,
        change.first,
        change.last,
        change.rewound_to,
        int(change.is_header),
        change.id if change.is_gone and is_wanted else None,
        change.user_id if change.is_gone and is_wanted else None,
        change.id if is_there else None,
        change.user_id if is_there else None,
        None,
    )
