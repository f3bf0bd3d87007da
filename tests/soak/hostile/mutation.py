"""Making bad input of good: bytes that are flipped, cut, spliced and filled with what parsers stumble over."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any, Final

import msgspec

TOKENS: Final = (
    *(b"null", b"true", b"NaN", b"-Infinity", b"[]", b"{}", b'""', b"[[[[", b'{"a":', b",", b":", b'"', b"\\"),
    *(
        b"-0",
        b"1e999",
        b"-1e400",
        b"1e-999",
        b"1E+3",
        b"0.10",
        b"1" * 40,
        b"18446744073709551616",
        b"4611686018427387904",
    ),
    *(
        b"-9223372036854775809",
        b"\xff",
        b"\xed\xa0\x80",
        b"\xc0\x80",
        b"\xef\xbb\xbf",
        b"\r\n",
        b"\n",
        b"\0",
        b"\x1b[2J",
    ),
    *(
        b'"\\ud800"',
        b'"\\u0000"',
        b'"\\ud83d\\ude00"',
        b"\xf0\x9f\x98\x80",
        b"\xe2\x80\xae",
        b"\xc2\x85",
        b"\xe2\x80\xa8",
    ),
    *(
        b'\n  ],\n  "',
        b'\n  "agent_responses": [',
        b'\n  "user_messages": []',
        b'"statestore": {"next": 5}',
        b'"id": "x",',
    ),
    *(
        b'"9999-12-31T23:59:60.999999999Z"',
        b'"0000-01-01T00:00:00Z"',
        b'"2026-01-01T00:00:00+23:59"',
        b'"soon"',
        b":",
        b";",
    ),
    *(b"../", b"/etc/passwd", b"..", b"%00", b"'; DROP TABLE sessions; --", b"[" * 200, b'{"a":' * 200, b"x" * 5000),
)
"""What is put into a text: JSON out of place, numbers out of range, bytes that are no text, our own marks."""

TEXTS: Final = (
    *(
        "",
        " ",
        ".",
        "..",
        "a/b",
        "\\",
        "\0",
        "a\0b",
        "\x1b[31m",
        "\x7f",
        "\x85",
        "\u2028",
        "\ufeff",
        "\ud800",
        "\udfff\ud800",
    ),
    *(
        "\u202eexe.txt",
        "\u2066x\u2069",
        "\u200b",
        "a\u200db",
        "e\u0301",
        "\u00e9",
        "\uff0e\uff0e",
        "\u0430dmin",
        "CON",
        "nul.txt",
    ),
    *("a.", "a ", " a", "a.json", ".statestore", ".STATESTORE", ".\u017ftatestore", "sessions", "x" * 200, "x" * 201),
    *(
        "\U0001f600" * 50,
        "\U0001f600" * 51,
        "y" * 501,
        "z" * 100_000,
        "-",
        "--",
        "*",
        '"',
        "'",
        "%s",
        "{0}",
        "<b>&amp;</b>",
    ),
    *(
        "2026-01-01T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "9999-12-31T23:59:60Z",
        "statestore",
        "user",
        "agent",
        "1e5",
        "٣",
    ),
)
"""Texts that some layer may take for something else."""


def mutated(chance: Random, text: bytes, others: Sequence[bytes] = ()) -> bytes:
    """A text after one or more accidents; pieces of other texts may come into it."""
    body = bytearray(text)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        size = len(body)
        start = chance.randrange(size + 1)
        end = min(size, start + chance.choice((1, 1, 2, 4, 16, 100)))
        match chance.randrange(9):
            case 0 if size:
                body[start - 1] ^= 1 << chance.randrange(8)
            case 1:
                del body[start:end]
            case 2:
                body[start:start] = chance.choice(TOKENS)
            case 3:
                body[start:end] = chance.choice(TOKENS)
            case 4 if others:
                other = chance.choice(others)
                place = chance.randrange(len(other) + 1)
                body[start:start] = other[place : place + chance.choice((5, 50, 500))]
            case 5:
                body[start:start] = body[start:end] * chance.choice((1, 2, 10))
            case 6:
                del body[start:]
            case 7:
                _replace_value(chance, body, start)
            case _:
                body[start:end] = chance.randbytes(end - start)
    return bytes(body)


def _replace_value(chance: Random, body: bytearray, start: int) -> None:
    """Put something else in the place of a member's value, if that stands on one line."""
    place = body.find(b":", start) + 1
    ends = [end for mark in b",\n}" if (end := body.find(mark, place)) >= 0]
    if place and ends:
        body[place : min(ends)] = chance.choice(TOKENS)


def mutated_text(chance: Random, text: str) -> str:
    """A text after one accident, as text."""
    start = chance.randrange(len(text) + 1)
    end = min(len(text), start + chance.choice((0, 1, 2, 8)))
    match chance.randrange(5):
        case 0:
            return text[:start] + chance.choice(TEXTS) + text[end:]
        case 1:
            return text[:start] + text[end:]
        case 2:
            return text[:start] + chr(chance.randrange(0x110000)) + text[end:]
        case 3:
            return chance.choice(TEXTS)
        case _:
            return text[:start] + text[start:end] * 3 + text[end:]


def odd_value(chance: Random, depth: int = 2) -> Any:
    """A JSON value that does not belong where it is put; texts may hold lone surrogates."""
    match chance.randrange(10 if depth else 7):
        case 0:
            return chance.choice((None, True, False))
        case 1:
            return chance.choice((0, -1, 1, 2**31, 2**53, 2**62, 2**63, 2**64, -(2**63) - 1, 10**40))
        case 2:
            return chance.choice((0.5, -0.0, 1e308, 5e-324, 1e16, float("inf"), float("nan")))
        case 3 | 4 | 5 | 6:
            return chance.choice(TEXTS)
        case 7:
            return [odd_value(chance, depth - 1) for _ in range(chance.randrange(4))]
        case 8:
            return {chance.choice(TEXTS): odd_value(chance, depth - 1) for _ in range(chance.randrange(4))}
        case _:
            return _nested(chance.choice((5, 20, 99, 101)))


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def restructured(chance: Random, text: bytes) -> bytes:
    """The text of a JSON value with some of its parts replaced, removed, doubled, renamed; still JSON, mostly."""
    try:
        value = json.loads(text)
    except ValueError:
        return mutated(chance, text)
    for _ in range(chance.choice((1, 1, 2, 4))):
        value = _changed_at(chance, value)
    written = json.dumps(value, ensure_ascii=chance.random() < 0.3).encode("utf-8", "surrogatepass")
    try:
        return msgspec.json.format(written, indent=chance.choice((-1, 0, 1, 2, 2, 2)))
    except msgspec.DecodeError:  # not JSON any more, with an infinity in it for instance
        return written


def _changed_at(chance: Random, value: Any) -> Any:
    """A value with one part of it changed, wherever that is."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        members: list[tuple[str, Any]] = list(value.items())
        place = chance.randrange(len(members))
        key, part = members[place]
        match chance.randrange(8):
            case 0:
                del members[place]
            case 1:
                members[place] = (chance.choice(TEXTS), part)
            case 2:
                members.insert(place, (chance.choice((key, *TEXTS)), odd_value(chance)))
            case 3:
                chance.shuffle(members)
            case _:
                members[place] = (key, _changed_at(chance, part))
        return dict(members)
    if isinstance(value, list) and value and chance.random() < 0.8:
        parts: list[Any] = list(value)
        place = chance.randrange(len(parts))
        match chance.randrange(4):
            case 0:
                parts[place:place] = parts[: chance.randrange(4)]
            case 1:
                del parts[place]
            case _:
                parts[place] = _changed_at(chance, parts[place])
        return parts
    return odd_value(chance)
