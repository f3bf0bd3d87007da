"""After a save that nobody knows the outcome of: whether what is stored now shows that it happened."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from itertools import chain
from typing import Any, cast

from msgspec.structs import replace

from statestore.engine import ChangeSession, NewRecord, Outcome
from statestore.jsontext import changed_members, members
from statestore.ledger import Origin, Shelf
from statestore.records import body_of, said_in
from statestore.store.saving import Draft
from statestore.stored import OPTIONAL_FIELDS, SessionFields, StoredRecord, StoredSession

_UNKNOWN = object()
"""A version that equals none."""


def note_if_stored(draft: Draft, stored: StoredSession, place: str) -> None:
    """Let the object know that its save happened, if what is stored at this place shows it.

    It did if any record is there that nobody else can have stored; somebody else may have removed others since.
    That all are there may be somebody else's doing: with the same idempotency key, by the same rewind, or out of
    the trash. Then what else was to be saved is sent again.
    """
    change, known = draft.change, draft.known
    if change is None or stored.fields.user_id != draft.fields.user_id:
        return
    if change.create is not None and stored.fields.created != change.create.created:
        return
    found = stored.records.in_order()
    had = list(_had(draft)) if change.create is None else []
    numbers = _numbers_of(change.append, found, set(had))
    is_ours = _can_only_be_ours(draft, change, numbers)
    is_there = (stored.fields, stored.metadata) == (draft.fields, draft.metadata)
    if not is_ours and not _is_as_sent(draft, change, numbers, [record.seq for record in found], is_there=is_there):
        if known is not None:
            present = _as_stored(known, change, stored)
            draft.ledger.origin = known.after(known.version, *present, is_stale=known.is_stale)
        return
    before = None if change.create is not None else _UNKNOWN
    given = _as_given(numbers, known.last_seq if known is not None and change.create is None else 0)
    origin = draft.origin_after(Outcome(before, stored.version, given), place)
    if known is not None and not is_ours and not is_there:
        origin.fields, origin.metadata = _as_stored(known, change, stored)
    held = [(seq, body) for seq, body in had if draft.cut is None or seq < draft.cut]
    held += zip(given, (sent.body for sent in change.append), strict=True)
    is_all = list(given) == sorted(given) and _is_all_of(stored, origin, sorted(held))
    origin.is_stale = not is_all
    origin.version = stored.version if is_all else origin.version
    draft.note(origin)


def _had(draft: Draft) -> Iterator[tuple[int, bytes]]:
    """The numbers and bodies of the records that the store had before a save, as far as the object knows."""
    for column in draft.ledger.columns():
        for seq, record in zip(column.seqs, column.stored, strict=True):
            yield seq, body_of(record)


def _can_only_be_ours(draft: Draft, change: ChangeSession, numbers: list[int | None]) -> bool:
    """Whether a record was found that was new with this save, and has no key that somebody else may have used."""
    if change.create is not None and None in numbers:
        return False  # an earlier save may have stored those that are there, and the trash given them back
    had = {id(record) for shelf in draft.ledger.shelves for record in cast("Shelf[Any]", shelf).stored()}
    return any(
        number is not None and sent.key is None and id(record) not in had
        for number, sent, record in zip(numbers, change.append, draft.records, strict=True)
    )


def _is_as_sent(
    draft: Draft, change: ChangeSession, numbers: list[int | None], there: list[int], *, is_there: bool
) -> bool:
    """Whether the records are there as this save would have left them, whoever stored them."""
    if None in numbers:
        return False
    known, cut = draft.known, draft.cut
    if known is None or cut is None:
        return bool(numbers) or change.create is not None or is_there
    loaded = sorted(chain(*known.seqs()))
    left = sorted({seq for seq in loaded if seq < cut}.union(number for number in numbers if number is not None))
    there = [seq for seq in there if seq >= loaded[0]]
    return there[: len(left)] == left and not any(cut <= seq <= known.last_seq for seq in there)


def _as_stored(known: Origin, change: ChangeSession, stored: StoredSession) -> tuple[SessionFields, bytes]:
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


def _is_all_of(stored: StoredSession, origin: Origin, held: list[tuple[int, bytes]]) -> bool:
    """Whether an object that holds these records, by number and body, holds exactly what is stored."""
    return (
        not origin.is_part
        and held == [(record.seq, record.body) for record in stored.records.in_order()]
        and (origin.fields, origin.metadata) == (stored.fields, stored.metadata)
    )


def _numbers_of(
    sent: Sequence[NewRecord], found: Sequence[StoredRecord], had: Container[tuple[int, bytes]]
) -> list[int | None]:
    """The number of each record that was sent, ``None`` if it is not there.

    It is found by its key or, in order, by what it says, among the records that were not there before: these are
    known by number and body, because numbers begin again where a session is stored anew.
    """
    by_key = {record.key: record.seq for record in found if record.key is not None}
    new = [record for record in found if (record.seq, record.body) not in had]
    places: dict[object, list[int]] = defaultdict(list)
    for place, record in enumerate(new):
        places[said_in(record.kind, record.body)].append(place)
    first = 0
    numbers: list[int | None] = []
    for record in sent:
        number = by_key.get(record.key) if record.key is not None else None
        if number is None:
            alike = places.get(said_in(record.kind, record.body), [])
            later = bisect_left(alike, first)
            if later < len(alike):
                number, first = new[alike[later]].seq, alike[later] + 1
        numbers.append(number)
    return numbers


def _as_given(numbers: Sequence[int | None], known: int) -> tuple[int, ...]:
    """The numbers that a save gave out, also to what somebody else removed since: each follows the one before it."""
    given: list[int] = []
    last = known
    for number in numbers:
        last = last + 1 if number is None else max(last, number)
        given.append(last if number is None else number)
    return tuple(given)
