"""Cutting long work on many items into pieces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar


class Sized(Protocol):
    """An item of which a listing tells how large it is."""

    @property
    def size(self) -> int: ...


T = TypeVar("T", bound=Sized)


def chunks(items: Iterable[T], most: int, most_bytes: int) -> Iterator[list[T]]:
    """The items in order, so many at a time, and so many bytes of them, at most; a large one is by itself."""
    chunk: list[T] = []
    room = most_bytes
    for item in items:
        if chunk and (len(chunk) >= most or item.size > room):
            yield chunk
            chunk, room = [], most_bytes
        chunk.append(item)
        room -= item.size
    if chunk:
        yield chunk
