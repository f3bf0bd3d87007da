"""A long text as a few pieces, so that putting a little into it does not copy the whole.

Copying half a megabyte takes as long as a quarter of writing it to disk, most of it for fresh memory.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final, NamedTuple

MAX_PARTS: Final = 24
SHORT: Final = 16384


class Edit(NamedTuple):
    """Bytes to put in the place of others."""

    start: int
    end: int
    new: bytes


def in_text_order(edits: Sequence[Edit]) -> list[Edit]:
    """Edits from front to back; those at one place stay in the order they were given in."""
    return sorted(edits, key=lambda edit: (edit.start, edit.end))


class Pieces:
    """Bytes that are kept in parts; never changed, only joined into fewer parts."""

    __slots__ = ("parts", "size")

    def __init__(self, parts: Sequence[memoryview]) -> None:
        self.parts = parts
        self.size = sum(map(len, parts))

    @classmethod
    def of(cls, text: bytes) -> Pieces:
        """One piece."""
        return cls((memoryview(text),))

    def joined(self) -> bytes:
        """The bytes as one; from then on, that one is what is kept."""
        if len(self.parts) == 1 and isinstance(self.parts[0].obj, bytes) and len(self.parts[0].obj) == self.size:
            return self.parts[0].obj
        whole = b"".join(self.parts)
        self.parts = (memoryview(whole),)
        return whole

    def edited(self, ordered: Sequence[Edit]) -> Pieces:
        """These bytes with edits made that do not overlap, given from front to back."""
        parts: list[memoryview] = []
        left = list(reversed(self.parts))
        place = 0
        for edit in ordered:
            assert place <= edit.start <= edit.end, f"edits overlap: {ordered}"
            parts += _taken_off(left, edit.start - place)
            parts.append(memoryview(edit.new))
            _taken_off(left, edit.end - edit.start)
            place = edit.end
        parts += reversed(left)
        pieces = Pieces(_with_short_ones_joined(parts))
        if len(pieces.parts) > MAX_PARTS:
            pieces.joined()
        return pieces

    def after(self, start: int) -> list[memoryview]:
        """The parts from a place to the end."""
        left = list(reversed(self.parts))
        _taken_off(left, start)
        return left[::-1]

    def crc32(self) -> int:
        """The checksum of the bytes."""
        checksum = 0
        for part in self.parts:
            checksum = zlib.crc32(part, checksum)
        return checksum


def _taken_off(left: list[memoryview], size: int) -> list[memoryview]:
    """The next so many bytes of parts that lie in reverse, removed from them."""
    taken: list[memoryview] = []
    while size > 0:
        part = left.pop()
        if len(part) > size:
            left.append(part[size:])
            part = part[:size]
        taken.append(part)
        size -= len(part)
    return taken


def _with_short_ones_joined(parts: Sequence[memoryview]) -> list[memoryview]:
    """The same bytes in fewer parts: short neighbours become one, which costs next to nothing."""
    found: list[memoryview] = []
    run: list[memoryview] = []
    for part in (*parts, None):
        if part is not None and len(part) < SHORT:
            run.append(part)
            continue
        if run:
            found.append(run[0] if len(run) == 1 else memoryview(b"".join(run)))
            run = []
        if part is not None:
            found.append(part)
    return found
