"""``serde_json::to_string_pretty``, and the Rust program's rules for a session, written down a second time.

Nothing here comes from the library: this is what its files are compared with.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

CHRONO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3}|\.\d{6}|\.\d{9})?Z")


def pretty(value: Any, indent: int = 0) -> str:
    """The text that serde_json gives a value."""
    inner = "\n" + "  " * (indent + 1)
    if isinstance(value, float):
        return ryu(value)
    if isinstance(value, dict) and value:
        members = (f"{json.dumps(key, ensure_ascii=False)}: {pretty(item, indent + 1)}" for key, item in value.items())
        return "{" + inner + f",{inner}".join(members) + "\n" + "  " * indent + "}"
    if isinstance(value, list) and value:
        return "[" + inner + f",{inner}".join(pretty(item, indent + 1) for item in value) + "\n" + "  " * indent + "]"
    return json.dumps(value, ensure_ascii=False)


def ryu(number: float) -> str:
    """A float in the shortest form that reads back, laid out as the ryu crate does."""
    sign = "-" if str(number).startswith("-") else ""
    if number == 0:
        return sign + "0.0"
    _, digit_tuple, exponent = Decimal(repr(abs(number))).normalize().as_tuple()
    assert isinstance(exponent, int)
    digits = "".join(map(str, digit_tuple))
    point = len(digits) + exponent
    if exponent >= 0 and point <= 16:
        return f"{sign}{digits}{'0' * exponent}.0"
    if 0 < point <= 16:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -5 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{point - 1}"


def strict(text: str) -> Any:
    """JSON as serde_json reads it into a struct: no key twice, no NaN."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len({key for key, _ in pairs}) == len(pairs), f"a key twice in {pairs}"
        return dict(pairs)

    def refuse(name: str) -> Any:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, object_pairs_hook=unique, parse_constant=refuse)


def check_session(text: str) -> dict[str, Any]:
    """Read a session by the seed's rules and no others; what it says."""
    session = strict(text)
    fields: dict[str, Callable[[Any], bool]] = {
        "id": _is_text,
        "user_id": _is_text,
        "user_messages": _all(check_message),
        "agent_responses": _all(check_response),
        "active_seed_id": _is_text,
        "active_persona_id": _is_text,
        "project_id": _is_text,
        "parent_session_id": _is_text,
        "created_at": _is_moment,
        "updated_at": _is_moment,
        "metadata": lambda value: isinstance(value, dict),
    }
    optional = {"active_seed_id", "active_persona_id", "project_id", "parent_session_id"}
    assert list(session) == [name for name in fields if name in session], "the seed's order, and nothing unknown"
    assert set(session) >= set(fields) - optional
    for name, value in session.items():
        assert fields[name](value), (name, value)
    assert text == pretty(session)
    return session


def check_message(record: Any) -> bool:
    assert list(record) == ["content", "timestamp"]
    return _is_text(record["content"]) and _is_moment(record["timestamp"])


def check_response(record: Any) -> bool:
    assert list(record) == ["content", "session_id", "seed_id", "phase_reached", "evaluation_passed", "timestamp"]
    assert all(record[name] is None or _is_text(record[name]) for name in ("session_id", "seed_id", "phase_reached"))
    assert record["evaluation_passed"] in (None, True, False)
    return _is_text(record["content"]) and _is_moment(record["timestamp"])


def _all(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_moment(value: Any) -> bool:
    return isinstance(value, str) and CHRONO.fullmatch(value) is not None
