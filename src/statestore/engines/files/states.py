"""What the change log keeps of one state of a session, so that the next state can be told from it.

Records are kept as checksums, four bytes each: enough to tell what was added, what was removed and what rewritten.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from statestore.engines.files.image import SessionImage
from statestore.engines.files.summaries import summary_of
from statestore.labels import labels_in
from statestore.seedform.text import SessionText
from statestore.stored import StoredRecord

_MARK: Final = "I"


class SessionState(Struct, frozen=True):
    """One state of a session that could be read."""

    version: str
    user_id: str
    created: str
    project: str | None
    title: str | None
    """As listings show it."""
    given_title: str | None
    """As the metadata have it; what a title is otherwise made of is searched anyway."""
    header: int
    """A checksum of the fields and the metadata."""
    seqs: Sequence[int]
    """The records' numbers, in order."""
    marks: bytes
    """The records' checksums, in the same order."""


class Difference(Struct, frozen=True):
    """What became of a session's records: back to a number, then on from one to another."""

    rewound_to: int | None
    first: int | None
    last: int | None


def state_of(image: SessionImage) -> SessionState:
    """What is to be kept of a session file."""
    summary = summary_of(image)
    seqs, marks = array("q"), array(_MARK)
    for record in image.text.ordered().one_by_one(0):
        seqs.append(record.seq)
        marks.append(mark_of(record))
    image.text.forget_records()
    return SessionState(
        version=summary.version,
        user_id=summary.user_id,
        created=summary.created_text,
        project=summary.project_id,
        title=summary.title,
        given_title=labels_in(msgspec.json.decode(image.text.metadata), ("title",))["title"],
        header=_header_mark(image.text),
        seqs=seqs,
        marks=marks.tobytes(),
    )


def mark_of(record: StoredRecord) -> int:
    """The checksum of a record: its number, its kind and its JSON."""
    return zlib.crc32(record.body, zlib.crc32(f"{record.seq}:{record.kind}:".encode()))


def marks_in(text: bytes) -> Sequence[int]:
    """The checksums that were kept."""
    found = array(_MARK)
    found.frombytes(text[: len(text) // found.itemsize * found.itemsize])
    return found


def difference(before: bytes, now: SessionState) -> Difference:
    """What became of records with these marks."""
    if now.marks.startswith(before):
        kept, is_rewound = len(marks_in(before)), False
    else:
        pairs = enumerate(zip(marks_in(before), marks_in(now.marks), strict=False))
        unlike = (place for place, (old, new) in pairs if old != new)
        kept, is_rewound = next(unlike, min(len(marks_in(before)), len(now.seqs))), True
    return Difference(
        rewound_to=(now.seqs[kept - 1] if kept else 0) if is_rewound else None,
        first=now.seqs[kept] if kept < len(now.seqs) else None,
        last=now.seqs[-1] if kept < len(now.seqs) else None,
    )


_decode = msgspec.json.Decoder(float_hook=str).decode  # no digit is lost


def _header_mark(text: SessionText) -> int:
    """A checksum that is the same whatever the order of the metadata's keys, and however often it was saved."""
    fields = msgspec.structs.replace(text.fields, updated="")
    return zlib.crc32(msgspec.json.encode((fields, _decode(text.metadata)), order="sorted"))
