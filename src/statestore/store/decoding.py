"""Stored records as a type of the reader's own: each is decoded once, into what is wanted of it and no more."""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import Any, TypeVar

import msgspec

from statestore.stored import Records

T = TypeVar("T")


def decoded_as(records: Records, type: type[T]) -> list[tuple[int, T]]:
    """Every record with its number, in order; raises ``msgspec.DecodeError`` where one is not of that type."""
    decode = _decoder(type).decode
    found: list[tuple[int, T]] = []
    for column, arrays in zip(records.numbering.columns, records.as_they_lie(), strict=True):
        found += zip(column, chain.from_iterable(map(decode, arrays)), strict=True)
    found.sort(key=itemgetter(0))
    return found


def decoded_body_as(body: bytes, type: type[T]) -> T:
    """One record; raises ``msgspec.DecodeError`` if it is not of that type."""
    (record,) = _decoder(type).decode(b"[" + body + b"]")
    return record


@lru_cache(maxsize=64)
def _decoder(type: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(list[type])
