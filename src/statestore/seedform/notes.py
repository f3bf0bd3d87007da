"""What we keep in a session file that the seed has no field for: events, sequence numbers, idempotency keys.

The seed drops top-level fields it does not know, but keeps metadata; so these notes are the member
``metadata.statestore``, left out when there is nothing to note. The seed's program may append to its two lists
at any time without knowing of them. Hence the rule: notes *cover* the first so many records of each list, with
their numbers written down; what lies beyond is merged by the timestamps of the lists' heads, never re-sorted
within a list, and numbered on from ``next``. A file without notes is the case where nothing is covered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, islice
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from msgspec.structs import replace

from statestore.records import AgentResponse, Event, UserMessage
from statestore.stored import Numbering
from statestore.timestamps import sortable

LETTERS: Final = "uae"
NOTED: Final = ("events", "next", "seqs", "keys")
Columns = tuple[Sequence[UserMessage], Sequence[AgentResponse], Sequence[Event]]


class Notes(Struct, omit_defaults=True, frozen=True):
    """The member ``metadata.statestore``."""

    events: Raw | UnsetType = UNSET
    next: Annotated[int, Meta(ge=1, lt=2**62)] = 1
    """The number of the first record that is not covered."""
    seqs: tuple[list[int], list[int], list[int]] = ([], [], [])
    """The numbers of the covered records: the user's, the agent's, the events."""
    keys: dict[str, tuple[str, int, str]] = {}
    """Each idempotency key with its record: which list, which place in it, and the timestamp that it must have."""

    def events_array(self) -> bytes:
        """The events as a JSON array."""
        return b"[]" if self.events is UNSET else bytes(self.events)

    def to_json(self) -> bytes:
        """The member's text; empty if there is nothing to note."""
        text = _encode(self)
        return b"" if text == b"{}" else text


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Notes).decode


def parse_notes(text: bytes) -> Notes:
    """The notes in this JSON; raises ``msgspec.DecodeError`` if it holds none.

    Numbers that cannot be (edited by hand, merged by a tool) are void, so that the rest of the rule numbers all.
    """
    notes = _decode(text)
    numbers = [seq for seqs in notes.seqs for seq in seqs]
    is_sound = (
        all(seqs == sorted(seqs) for seqs in notes.seqs)
        and len(set(numbers)) == len(numbers)
        and all(0 < seq < notes.next for seq in numbers)
    )
    return notes if is_sound else replace(notes, seqs=([], [], []))


def are_cut(notes: Notes, counts: Sequence[int]) -> bool:
    """Whether lists are shorter than the notes say, because somebody cut them by hand."""
    return any(len(seqs) > count for seqs, count in zip(notes.seqs, counts, strict=True))


def fitting_seqs(notes: Notes, counts: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """The covered records' numbers; none, if the lists were cut."""
    return ([], [], []) if are_cut(notes, counts) else notes.seqs


def numbering_of(notes: Notes, columns: Columns) -> Numbering:
    """The number of every record."""
    covered = fitting_seqs(notes, tuple(map(len, columns)))
    numbers = tuple(list(seqs) for seqs in covered)
    beyond = [column[len(seqs) :] for column, seqs in zip(columns, covered, strict=True)]
    moments = iter(sortable([record.timestamp_text for column in beyond for record in column]))
    # Who always takes the earliest head goes by the latest moment that each list has come to, and then by the list.
    reached = [moment for column in beyond for moment in accumulate(islice(moments, len(column)), max)]
    lists = [seqs for column, seqs in zip(beyond, numbers, strict=True) for _ in column]
    for seq, place in enumerate(sorted(range(len(reached)), key=reached.__getitem__), notes.next):
        lists[place].append(seq)
    return Numbering(*numbers, keys=_keys_by_seq(notes, columns, numbers))


def next_seq_of(notes: Notes, counts: Sequence[int]) -> int:
    """The number that the next record gets."""
    return notes.next + sum(counts) - sum(map(len, fitting_seqs(notes, counts)))


def known_keys(notes: Notes, columns: Columns) -> dict[str, tuple[int, int]]:
    """The keys whose record is still there: the column and the place it has.

    That is the place that was noted; or, where somebody cut a list by hand, that of the only record of its moment.
    """
    found: dict[str, tuple[int, int]] = {}
    moved: dict[int, dict[str, int]] = {}
    for key, (letter, place, timestamp) in notes.keys.items():
        column = LETTERS.find(letter)
        if column < 0:
            continue
        records = columns[column]
        if 0 <= place < len(records) and records[place].timestamp_text == timestamp:
            found[key] = (column, place)
            continue
        if column not in moved:
            moved[column] = _places_by_moment(records)
        if timestamp in moved[column]:
            found[key] = (column, moved[column][timestamp])
    return found


def _places_by_moment(records: Sequence[UserMessage | AgentResponse | Event]) -> dict[str, int]:
    """The places of those records that no other one shares its moment with."""
    counts = Counter(record.timestamp_text for record in records)
    return {record.timestamp_text: n for n, record in enumerate(records) if counts[record.timestamp_text] == 1}


def _keys_by_seq(notes: Notes, columns: Columns, numbers: Sequence[Sequence[int]]) -> dict[int, str]:
    return {numbers[column][place]: key for key, (column, place) in known_keys(notes, columns).items()}
