"""Which items a search wants, and in which order: filters, words, vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import hypot
from operator import mul
from typing import Any, Final, cast

import msgspec
from langgraph.store.base import MatchCondition

from statestore.adapters.langgraph.memories import Memory, Namespace
from statestore.errors import InvalidValue
from statestore.searching.texts import text_in
from statestore.searching.tokens import tokens_of

_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "$eq": lambda value, wanted: value == wanted,
    "$ne": lambda value, wanted: value != wanted,
    "$gt": lambda value, wanted: float(value) > float(wanted),
    "$gte": lambda value, wanted: float(value) >= float(wanted),
    "$lt": lambda value, wanted: float(value) < float(wanted),
    "$lte": lambda value, wanted: float(value) <= float(wanted),
}


def matches(value: Any, wanted: Any) -> bool:
    """Whether a value is what a filter wants: equal, in parts, or by an operator (``{"$gte": 3}``)."""
    if isinstance(wanted, dict):
        wanted = cast("dict[str, Any]", wanted)
        if any(key.startswith("$") for key in wanted):
            return all(_operator(key)(value, operand) for key, operand in wanted.items())
        if not isinstance(value, dict):
            return False
        held = cast("dict[str, Any]", value)
        return all(matches(held.get(key), part) for key, part in wanted.items())
    if isinstance(wanted, (list, tuple)):
        if not isinstance(value, (list, tuple)):
            return False
        some, others = cast("list[Any]", value), cast("list[Any]", wanted)
        return len(some) == len(others) and all(map(matches, some, others))
    return value == wanted


def _operator(name: str) -> Callable[[Any, Any], bool]:
    if name not in _OPERATORS:
        raise InvalidValue(f"a filter knows {', '.join(_OPERATORS)}, not {name!r}")

    def compare(value: Any, wanted: Any) -> bool:
        try:
            return _OPERATORS[name](value, wanted)
        except (TypeError, ValueError):  # not a number: neither more nor less
            return False

    return compare


def is_in(namespace: Namespace, condition: MatchCondition) -> bool:
    """Whether a namespace begins or ends as a condition wants; ``*`` stands for any label."""
    path = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for label, wanted in zip(part, path, strict=True))


def closeness(vector: Sequence[float], memory: Memory) -> float | None:
    """How close an item comes to what is asked for, at the best of its texts; ``None`` if it has no vectors."""
    return max((_cosine(vector, other) for other in memory.vectors.values()), default=None)


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    size = hypot(*one) * hypot(*other)
    return sum(map(mul, one, other)) / size if size else 0.0


def share_of_words(query: str, memory: Memory) -> float | None:
    """How many of the words that are asked for an item holds, from 0 to 1; ``None`` if it holds none."""
    wanted = set(tokens_of(query))
    held = wanted.intersection(tokens_of(text_in("item", msgspec.json.encode({"data": memory.value}))))
    return len(held) / len(wanted) if held else None
