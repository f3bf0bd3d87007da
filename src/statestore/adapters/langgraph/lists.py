"""Lists that grow: a version of a list is stored as what changed since an earlier one.

Here a list is a sequence of elements: the number of a record, where the element is a message of the conversation, or
the element's JSON. Which elements a list has is worked out here; what they mean is not.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, Final

import msgspec
from msgspec import Raw

from statestore.adapters.langgraph.notes import ListNote

LIST: Final = "$list"
MORE: Final = "$more"
"""``{"$more": [7, 9, 12]}``: the list that record 7 holds, and then the messages in records 9 and 12."""
Element = int | bytes

_SHORTEST_CHAIN: Final = 16
_PACKED_FROM: Final = 16


def list_note(value: Any) -> ListNote | None:
    """How a stored value says which elements it has, if it is a list that is stored so."""
    if value.__class__ is dict and len(value) == 1:
        if MORE in value:
            base, *more = value[MORE]
            return ListNote(base=base, more=more)
        if LIST in value:
            return msgspec.convert(value[LIST], ListNote)
    return None


def is_chain_long(depth: int, size: int) -> bool:
    """Whether a list that is told by so many changes had better be written whole.

    So reading it never costs much more than its length.
    """
    return depth > max(_SHORTEST_CHAIN, size // 8)


def changed_list(elements: Sequence[Element], base: Sequence[Element], at: int, same: int) -> Any:
    """A list that was another one before, in the record ``at``, and is known to begin like that, as it is stored."""
    same += _common(elements[same:], base[same:])
    rest, old = elements[same:], base[same:]
    if not old and rest and all(isinstance(element, int) for element in rest):
        return {MORE: [at, *rest]}
    tail = _common(rest[::-1], old[::-1])
    pieces: list[Any] = [[0, same]] if same else []
    pieces += _spelt(rest[: len(rest) - tail])
    if tail:
        pieces.append([len(base) - tail, len(base)])
    return {LIST: ListNote(len(elements), pieces, at)}


def whole_list(elements: Sequence[Element]) -> Any:
    """A list that stands for itself, as it is stored."""
    return {LIST: ListNote(len(elements), _spelt(elements))}


def elements_of(note: ListNote, base: Sequence[Element]) -> list[Element]:
    """The elements that a note describes."""
    found: list[Element] = [*base, *note.more] if note.more else []
    for piece in note.pieces:
        if isinstance(piece, list):
            found += base[piece[0] : piece[1]]  # pyright: ignore[reportUnknownArgumentType]
        elif "items" in piece:
            found += [msgspec.json.encode(item) for item in piece["items"]]
        elif "dense" in piece:
            found += [code // 2 if code % 2 == 0 else -(code // 2) for code in _unpacked(piece["dense"])]
        else:
            found += _unpacked(piece["packed"]) if "packed" in piece else piece["at"]
    return found


def _common(one: Sequence[Element], other: Sequence[Element]) -> int:
    """How many elements two lists have in common at their beginning."""
    shorter = min(len(one), len(other))
    if one[:shorter] == other[:shorter]:
        return shorter
    return next(i for i in range(shorter) if one[i] != other[i])


def _spelt(elements: Sequence[Element]) -> list[Any]:
    """Elements as pieces that need no base."""
    pieces: list[Any] = []
    start = 0
    for end in range(1, len(elements) + 1):
        if end == len(elements) or isinstance(elements[end], int) is not isinstance(elements[start], int):
            run = elements[start:end]
            pieces.append({"at": list(run)} if isinstance(run[0], int) else {"items": [Raw(item) for item in run]})  # type: ignore[arg-type]
            if isinstance(run[0], int) and len(run) >= _PACKED_FROM:
                pieces[-1] = {"dense": _packed([2 * abs(number) + (number < 0) for number in run])}  # type: ignore[arg-type]
            start = end
    return pieces


def _packed(numbers: Sequence[int]) -> str:
    """Many numbers in few characters: in a conversation, their distances repeat."""
    distances = [numbers[0], *(after - before for before, after in pairwise(numbers))]
    return b64encode(zlib.compress(" ".join(map(str, distances)).encode(), 6)).decode()


def _unpacked(text: str) -> list[int]:
    return list(accumulate(map(int, zlib.decompress(b64decode(text)).split())))
