"""Changes as the arrays that the functions in the database take: a list for each property, an element a change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise, starmap
from operator import ge
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec

from statestore.engine import (
    Batch,
    Change,
    ChangeSession,
    DeleteCategory,
    DeleteDocument,
    DeleteSession,
    NewRecord,
    PutDocument,
)
from statestore.engines.columns import age_of
from statestore.engines.postgres.places import check_seq, fitted, is_storable
from statestore.errors import InvalidValue
from statestore.records import column_of
from statestore.timestamps import nanoseconds

NAMES: Final = 1024
"""How many locks there are for what may not be there yet: a big batch must not use up the server's."""

MOST_BYTES: Final = 1_070_000_000
"""How many bytes a batch carries at most: a message to the server has less than 2**30."""

ONE_AFTER_THE_OTHER: Final = 0
AS_GIVEN: Final = 1
ONE_BY_ONE: Final = 2

_encode = msgspec.json.Encoder().encode


class Counted(NamedTuple):
    """What a session's row needs to know of records that are appended to it."""

    users: int
    agents: int
    events: int
    size: int
    opening: bytes | None


def counted(records: Sequence[NewRecord]) -> Counted:
    """Count records by kind."""
    counts = [0, 0, 0]
    size, opening = 0, None
    for record in records:
        counts[column_of(record.kind)] += 1
        size += len(record.body)
        if opening is None:
            opening = _encoded(record.opening)
    return Counted(counts[0], counts[1], counts[2], size, opening)


def check_numbers(batch: Batch) -> None:
    """Refuse sequence numbers that do not fit, or that do not rise where that can be told without looking."""
    for change in batch:
        if isinstance(change, ChangeSession):
            if change.create is not None:
                check_seq(change.create.next_seq)
            seqs = [check_seq(record.seq) for record in change.append if record.seq is not None]
            if numbering_of(change.append) == AS_GIVEN and any(starmap(ge, pairwise(seqs))):
                raise InvalidValue(f"session {change.id}: the numbers that records ask for do not rise: {seqs[:20]}")


def size_of(batch: Batch) -> int:
    """About how many bytes a batch carries; refuse more than PostgreSQL takes at once."""
    size = 0
    for change in batch:
        if isinstance(change, ChangeSession):
            size += 300 + sum(len(record.body) + 50 for record in change.append)
            size += sum(map(len, change.set_metadata.values()))
        else:
            size += 200 + (len(change.body) if isinstance(change, PutDocument) else 0)
    if size > MOST_BYTES:
        raise InvalidValue(f"PostgreSQL takes at most {MOST_BYTES:,} bytes at once, and a batch has {size:,}")
    return size


def places_of(batch: Batch) -> set[tuple[str, str]]:
    """The sessions that a batch names, and the categories of its documents."""
    return {
        ("session", change.id) if isinstance(change, (ChangeSession, DeleteSession)) else ("category", change.category)
        for change in batch
    }


# -- Appends to sessions that exist, one to each


def are_plain(batches: Sequence[Batch]) -> bool:
    """Whether these batches are one append each, to different sessions, with nothing besides."""
    ids: set[str] = set()
    for batch in batches:
        if len(batch) != 1:
            return False
        change = batch[0]
        if not isinstance(change, ChangeSession) or change.id in ids or not _is_plain(change):
            return False
        ids.add(change.id)
    return True


def _is_plain(change: ChangeSession) -> bool:
    return (
        change.create is None
        and change.truncate_after is None
        and not change.requires.absent
        and not change.set_fields
        and not change.set_metadata
        and not change.unset_metadata
        and all(record.key is None and record.seq is None for record in change.append)
    )


def plain_arguments(changes: Sequence[ChangeSession], versions: Sequence[str]) -> list[Sequence[Any]]:
    """What ``append_to_sessions`` takes after the token."""
    tallies = [counted(change.append) for change in changes]
    ages = [age_of(nanoseconds(change.updated)) for change in changes]
    placed = [
        (session, place, column_of(record.kind), record.body)
        for session, change in enumerate(changes, 1)
        for place, record in enumerate(change.append)
    ]
    return [
        [change.id for change in changes],
        versions,
        [change.updated for change in changes],
        *_columns(ages, 2),
        [change.requires.owner for change in changes],
        [change.requires.created for change in changes],
        [_text(change.requires.version) for change in changes],
        *_columns(tallies, 5),
        *_columns(placed, 4),
    ]


def _columns(rows: Sequence[tuple[Any, ...]], count: int) -> list[Sequence[Any]]:
    return list(zip(*rows, strict=True)) if rows else [()] * count


_NEVER_GIVEN: Final = ""


def _text(version: object) -> str | None:
    if version is None:
        return None
    text = str(version)
    return text if is_storable(text) else _NEVER_GIVEN


# -- Anything else


def arguments(batches: Sequence[Batch], versions: Iterable[str]) -> list[Sequence[Any]]:
    """What ``make_batches`` takes after the token."""
    changes: list[tuple[Any, ...]] = []
    locks: set[int] = set()
    sent = _Sent()
    for number, batch in enumerate(batches):
        for change, version in zip(batch, versions):  # noqa: B905 - one iterator through all batches
            locks.update(_locks_of(change, is_alone=len(batch) == 1))
            changes.append((number, len(batch), *_row(change, version, sent)))
    return [sorted(locks), *_columns(changes, 33), *sent.columns()]


def _locks_of(change: Change, *, is_alone: bool) -> Iterable[int]:
    """By what to lock something that may not be there, and must not come meanwhile from somebody else."""
    if isinstance(change, DeleteCategory):
        return range(NAMES)  # nobody knows what may come
    is_creating = isinstance(change, PutDocument) or (isinstance(change, ChangeSession) and change.create is not None)
    is_there = change.requires.present or change.requires.version is not None
    if not is_creating and (is_alone or is_there or isinstance(change, ChangeSession)):
        return ()
    if isinstance(change, (ChangeSession, DeleteSession)):
        name = f"session {change.id}"
    else:
        name = f"document {change.category} {change.name}"
    return (crc32(name.encode()) % NAMES,)


_Range = tuple[int, int]


class _Sent:
    """Records, fields and metadata of all changes."""

    def __init__(self) -> None:
        self.records: list[tuple[Any, ...]] = []
        self.fields: list[tuple[Any, ...]] = []
        self.metadata: list[tuple[Any, ...]] = []

    def add(self, change: ChangeSession) -> tuple[_Range, _Range, _Range]:
        """Take a change's; the first and the last of each, counted from 1."""
        before = self._counts()
        self.records += [
            (column_of(record.kind), record.body, record.key, record.seq, _encoded(record.opening))
            for record in change.append
        ]
        self.fields += [(name, _encoded(value)) for name, value in change.set_fields.items()]
        self.metadata += [(key, _encode(key) + b":" + value) for key, value in change.set_metadata.items()]
        self.metadata += [(key, None) for key in change.unset_metadata]
        records, fields, members = zip(before, self._counts(), strict=True)
        return (records[0] + 1, records[1]), (fields[0] + 1, fields[1]), (members[0] + 1, members[1])

    def _counts(self) -> tuple[int, int, int]:
        return len(self.records), len(self.fields), len(self.metadata)

    def columns(self) -> list[Sequence[Any]]:
        return [*_columns(self.records, 5), *_columns(self.fields, 2), *_columns(self.metadata, 2)]


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


_NO_RECORDS: Final = (0, 1, 0, 0, 0, 0, 0, None)
_NO_HEADER: Final = (False, 1, 0, 1, 0)


def _row(change: Change, version: str, sent: _Sent) -> tuple[Any, ...]:
    """The properties of a change, from ``what`` on."""
    if isinstance(change, DeleteCategory):
        return (4, change.category, None, None, None, version, *_nothing_required(), *_no_session())
    requires = change.requires
    required = (requires.absent, requires.present, _text(requires.version), requires.owner, requires.created)
    match change:
        case DeleteSession(session_id):
            return (1, session_id, None, None, None, version, *required, *_no_session())
        case PutDocument(category, name, kind, body):
            return (2, category, name, kind, body, version, *required, *_no_session())
        case DeleteDocument(category, name, kind):
            return (3, category, name, kind, None, version, *required, *_no_session())
        case ChangeSession():
            return (*_session_row(change, version, required), *_content_row(change, sent))


def _nothing_required() -> tuple[Any, ...]:
    return (False, False, None, None, None)


def _no_session() -> tuple[Any, ...]:
    return (*(None,) * 7, *_NO_RECORDS, *_NO_HEADER)


def _session_row(change: ChangeSession, version: str, required: tuple[Any, ...]) -> tuple[Any, ...]:
    new = change.create
    born = (None, None, None) if new is None else (new.user_id, new.created, new.next_seq)
    kept = None if change.truncate_after is None else fitted(change.truncate_after)
    layout = None if new is None else new.layout
    age = age_of(nanoseconds(change.updated))
    return (0, change.id, None, None, layout, version, *required, change.updated, *age, *born, kept)


def _content_row(change: ChangeSession, sent: _Sent) -> tuple[Any, ...]:
    records, fields, members = sent.add(change)
    tally = counted(change.append)
    return (numbering_of(change.append), *records, *tally, _is_header(change), *fields, *members)


def _is_header(change: ChangeSession) -> bool:
    return bool(change.set_fields or change.set_metadata or change.unset_metadata)


def numbering_of(records: Sequence[NewRecord]) -> int:
    """How records come by their numbers."""
    given = sum(record.seq is not None for record in records)
    if any(record.key is not None for record in records) or 0 < given < len(records):
        return ONE_BY_ONE
    return AS_GIVEN if given else ONE_AFTER_THE_OTHER
