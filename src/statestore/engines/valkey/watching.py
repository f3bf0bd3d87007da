"""Telling what happened to sessions, from the stream of changes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from statestore.engine import ChangePage
from statestore.engines.telling import ChangeRow, Moment, tell
from statestore.engines.valkey.calling import Caller
from statestore.engines.valkey.keys import Keys
from statestore.engines.valkey.planning import MAX_SEQ
from statestore.engines.valkey.reading import HEAD, SEPARATOR
from statestore.engines.valkey.scripts import ADDED
from statestore.errors import CorruptData, CursorExpired
from statestore.records import AGENT, USER, decode_body, kind_of
from statestore.stored import StoredRecord

MOST: Final = 1_000
"""How many changes are looked at for one page at most, and how many records of one of them."""

log = logging.getLogger("statestore")
_unpack = msgspec.msgpack.Decoder(list[Any]).decode


class _Change(NamedTuple):
    """An entry of the stream."""

    number: int
    id: str
    born: str | None
    user_id: str
    first: int | None
    last: int | None
    rewound_to: int | None
    is_header: bool
    is_gone: bool

    @property
    def length(self) -> int:
        """How many records it added at most."""
        return 0 if self.first is None or self.last is None else max(0, self.last - self.first + 1)


class _Found(NamedTuple):
    """What there is now of the session of a change: whether it is the same one still, and the records it added."""

    is_same: bool
    records: Sequence[StoredRecord]


_GONE: Final = _Found(is_same=False, records=())


async def present_cursor(caller: Caller, keys: Keys) -> str:
    """The cursor after which nothing happened yet."""
    number, (identity,) = await caller.call_all([("GET", keys.change), ("HMGET", keys.store, "identity")])
    return Moment((identity or b"").decode(), int(number or 0)).cursor


async def read_changes(
    caller: Caller, keys: Keys, after: str, session_id: str | None, user_id: str | None, limit: int
) -> ChangePage:
    """What happened after a cursor, in order."""
    moment = Moment.parse(after, last_seq=MAX_SEQ)
    limit = max(1, min(limit, MOST))
    number, (identity,), entries = await caller.call_all(
        [
            ("GET", keys.change),  # first, so that what it tells is in the stream by then
            ("HMGET", keys.store, "identity"),
            ("XRANGE", keys.changes, f"{moment.change + 1}-0", "+", "COUNT", limit),
        ],
    )
    changes = [_change_of(entry, moment) for entry in entries]
    is_ours = moment.identity == (identity or b"").decode() and moment.change <= max(
        int(number or 0), changes[-1].number if changes else 0
    )
    next_kept = changes[0].number if changes else int(number or 0) + 1
    if not is_ours or next_kept != moment.change + 1:
        raise CursorExpired(
            f"the changes since {after[:60]!r} are no longer kept, or it is a cursor of another store: "
            "load what you need, and watch from change_cursor()"
        )

    def is_wanted(change: _Change) -> bool:
        return session_id in (None, change.id) and user_id in (None, change.user_id)

    page = _page(changes, is_wanted, limit)
    wanted = list(filter(is_wanted, page))
    found = await _look(caller, keys, wanted, limit)
    if wanted and wanted[-1].length > limit > len(found[wanted[-1].number].records):
        found |= await _look(caller, keys, wanted[-1:], MAX_SEQ)  # some were removed, or are damaged: there may be more
    rows = (_row(change, is_there=found[change.number].is_same) for change in wanted)

    def added(row: ChangeRow, _: int) -> Sequence[StoredRecord]:
        return found[row.change].records

    return tell(rows, moment, added, until=page[-1].number if page else moment.change, limit=limit)


def _change_of(entry: tuple[bytes, list[bytes]], after: Moment) -> _Change:
    """The change in an entry; of one that was told in part, what is left."""
    place, (_, packed) = entry
    number = int(place.partition(b"-")[0])
    session_id, born, user_id, first, last, rewound_to, is_header, is_gone = _unpack(packed)
    born, first, last, rewound_to = (None if value is False else value for value in (born, first, last, rewound_to))
    if first is not None and number == after.change + 1:
        first = max(first, after.seq + 1)
    return _Change(number, session_id, born, user_id, first, last, rewound_to, is_header, is_gone)


def _page(changes: Sequence[_Change], is_wanted: Callable[[_Change], bool], limit: int) -> Sequence[_Change]:
    """The first of some changes, up to the one whose records fill a page."""
    length = 0
    for count, change in enumerate(changes, start=1):
        length += change.length if is_wanted(change) else 0
        if length >= limit:
            return changes[:count]
    return changes


async def _look(caller: Caller, keys: Keys, changes: Sequence[_Change], most: int) -> dict[int, _Found]:
    """What there is now of the sessions of some changes, and of the first records that each of them added."""
    calls: list[tuple[tuple[str, ...], tuple[str | int, ...]]] = []
    for change in changes:
        base = keys.session(change.id)
        calls.append((keys.parts_of(base), (base, change.first or 0, change.last or 0, min(change.length, most))))
    replies = await caller.run_with_refusals(ADDED, calls)
    found: dict[int, _Found] = {}
    for change, reply in zip(changes, replies, strict=True):
        try:
            found[change.number] = _found_in(change, caller.granted(reply))
        except (CorruptData, ValueError):
            log.warning("a change of session %s is not told: what it left is damaged; check() tells more", change.id)
            found[change.number] = _GONE
    return found


def _found_in(change: _Change, reply: Any) -> _Found:
    """What the script read of a session, going by the change that is to be told."""
    if reply is None:
        return _GONE
    born, joined = reply
    is_same = (born if born is None else born.decode()) == change.born
    return _Found(is_same=True, records=list(_records_in(change.id, joined))) if is_same else _GONE


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


def _row(change: _Change, *, is_there: bool) -> ChangeRow:
    """The change as `tell` has it."""
    return ChangeRow(
        change.number,
        0,
        change.first,
        change.last,
        change.rewound_to,
        int(change.is_header),
        change.id if change.is_gone else None,
        change.user_id if change.is_gone else None,
        change.id if is_there else None,
        change.user_id if is_there else None,
        None,
    )
