"""How a session in the target stands to the one in the source: the same, behind it, or another."""

from __future__ import annotations

from typing import Final, NamedTuple

from statestore.copying.layouts import are_alike
from statestore.copying.windows import Pace, ReadsSessions, has_records, last_record, windows
from statestore.stored import StoredRecord, StoredSession
from statestore.timestamps import nanoseconds

PROP: Final = "statestore.copying"
"""The kind of an event that stands in the target for a moment, so that numbers below it count as taken."""


class Standing(NamedTuple):
    """How the target's session stands to the source's."""

    difference: str | None = None
    """Why the one cannot become the other; ``None`` if it can, or is."""
    is_same: bool = False
    last_seq: int = 0
    """The number of the last record that both have."""
    is_propped: bool = False
    """Whether a copy was interrupted right after it put up a prop."""


async def standing_of(
    source: ReadsSessions,
    target: ReadsSessions,
    ours: StoredSession,
    theirs: StoredSession,
    pace: Pace,
    *,
    is_trusted: bool = False,
) -> Standing:
    """Compare a session of the source with the target's of the same id.

    A target's session is *behind* if it is an earlier state of the source's: the same birth, its records the first of
    the source's, and everything else equal or from an earlier moment. ``is_trusted`` says that the records that both
    have were compared before.
    """
    difference = _header_difference(ours, theirs)
    if difference is not None:
        return Standing(difference)
    last = await last_record(target, theirs.id)
    is_propped = last is not None and last.kind == PROP and not await _has_record(source, ours.id, last)
    if last is not None and is_propped:
        last = await last_record(target, theirs.id, before=last.seq)
    last_seq = last.seq if last is not None else 0
    if not is_trusted:
        difference = await _record_difference(source, target, ours.id, pace, last_seq)
        if difference is not None:
            return Standing(difference)
    lost = await source.read_session(ours.id, after=last_seq, before=theirs.next_seq, last=1)
    if theirs.next_seq > ours.next_seq or (lost is not None and has_records(lost)):
        return Standing(
            f"{theirs.next_seq} is its next number in the target, which the source has given out or not yet"
        )
    ours_last = await last_record(source, ours.id)
    is_same = (
        not is_propped
        and headers_are_equal(ours, theirs)
        and ours.next_seq == theirs.next_seq
        and (ours_last.seq if ours_last is not None else 0) == last_seq
    )
    return Standing(is_same=is_same, last_seq=last_seq, is_propped=is_propped)


async def _has_record(engine: ReadsSessions, session_id: str, record: StoredRecord) -> bool:
    stored = await engine.read_session(session_id, after=record.seq - 1, before=record.seq + 1)
    return stored is not None and stored.records.in_order() == [record]


def headers_are_equal(ours: StoredSession, theirs: StoredSession) -> bool:
    """Whether all but the records is the same."""
    is_same = (ours.fields, ours.metadata) == (theirs.fields, theirs.metadata)
    return is_same and are_alike(ours.layout, theirs.layout)


def _header_difference(ours: StoredSession, theirs: StoredSession) -> str | None:
    for name in ("user_id", "created"):
        if getattr(ours.fields, name) != getattr(theirs.fields, name):
            return f"its {name} is not the same"
    if not are_alike(ours.layout, theirs.layout):
        return "its layout is not the same"
    if nanoseconds(theirs.fields.updated) < nanoseconds(ours.fields.updated):
        return None  # an earlier state: what differs was changed in the source since
    for name in ours.fields.__struct_fields__:
        if getattr(ours.fields, name) != getattr(theirs.fields, name):
            return f"its {name} is not the same"
    return None if ours.metadata == theirs.metadata else "its metadata are not the same"


async def _record_difference(
    source: ReadsSessions, target: ReadsSessions, session_id: str, pace: Pace, last_seq: int
) -> str | None:
    """Compare the records up to a number, which is that of the target's last."""
    compared = 0
    async for window in windows(target, session_id, pace):
        theirs = [record for record in window.stored.records.in_order() if record.seq <= last_seq]
        before = last_seq + 1 if window.before is None else min(window.before, last_seq + 1)
        ours = await source.read_session(session_id, after=compared, before=before)
        if ours is None:
            return "it is gone from the source"
        if ours.records.in_order() != theirs:
            return f"its records {_first_difference(ours.records.in_order(), theirs)} are not the same"
        compared = max(compared, before - 1)
    return None


def _first_difference(ours: list[StoredRecord], theirs: list[StoredRecord]) -> str:
    for one, other in zip(ours, theirs, strict=False):
        if one != other:
            return f"from number {min(one.seq, other.seq)} on"
    longer = max(ours, theirs, key=len)
    return f"from number {longer[min(len(ours), len(theirs))].seq} on"
