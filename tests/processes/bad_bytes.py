"""Session files that are none, and documents that are none: each under a name that says what is wrong."""

from __future__ import annotations

import json
from typing import Any

MOMENT = "2026-01-01T00:00:00Z"


def session_text(session_id: str = "bad", *, indent: int | None = 2, **changes: Any) -> bytes:
    """A session file of some 600 bytes, with some members changed."""
    session: dict[str, Any] = {
        "id": session_id,
        "user_id": "alice",
        "user_messages": [{"content": "Grüße", "timestamp": "2026-01-01T00:00:00.123456789Z"}],
        "agent_responses": [
            {
                "content": "hello",
                "session_id": None,
                "seed_id": None,
                "phase_reached": "done",
                "evaluation_passed": True,
                "timestamp": "2026-01-01T00:00:01Z",
            }
        ],
        "created_at": MOMENT,
        "updated_at": "2026-01-01T00:00:01.5Z",
        "metadata": {"title": "A title", "nested": {"a": [1, 2.5, None]}},
    }
    session |= changes
    return json.dumps({k: v for k, v in session.items() if v is not ...}, indent=indent, ensure_ascii=False).encode()


def _deep(depth: int) -> bytes:
    return session_text(metadata={"deep": "HERE"}).replace(b'"HERE"', b"[" * depth + b"]" * depth)


def _with(old: bytes, new: bytes) -> bytes:
    text = session_text()
    assert old in text
    return text.replace(old, new)


_MESSAGE = {"content": "x", "timestamp": MOMENT}

BAD_SESSIONS: dict[str, bytes] = {
    "no bytes": b"",
    "white space": b" \n\t\n",
    "zeros": b"\0" * 600,
    "an array": b"[]",
    "a null": b"null",
    "a text": b'"bad"',
    "a number": b"17",
    "an empty object": b"{}",
    "no JSON": b"# notes\n\nhello\n",
    "not UTF-8": session_text().decode().encode("latin-1"),
    "not UTF-8 in metadata": _with(b"A title", b"\xff\xfe"),
    "UTF-16": session_text().decode().encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf" + session_text(),
    "something after the end": session_text() + b"\n{}",
    "two sessions": session_text() + session_text(),
    "nested 100,000 deep": _deep(100_000),
    "nested 100,000 deep and never closed": session_text()[:-4] + b'"x": ' + b"[" * 100_000,
    "another session's id": session_text("another"),
    "no id": session_text(id=...),
    "a number as id": session_text(id=7),
    "no user": session_text(user_id=...),
    "null as user": session_text(user_id=None),
    "no created_at": session_text(created_at=...),
    "no updated_at": session_text(updated_at=...),
    "a date as created_at": session_text(created_at="2026-01-01"),
    "a naive updated_at": session_text(updated_at="2026-01-01T00:00:00"),
    "the 30th of February": session_text(updated_at="2026-02-30T00:00:00Z"),
    "a number as updated_at": session_text(updated_at=1767225600),
    "messages that are an object": session_text(user_messages={}),
    "messages that are null": session_text(user_messages=None),
    "a message that is a text": session_text(user_messages=["x"]),
    "a message without content": session_text(user_messages=[{"timestamp": MOMENT}]),
    "a message without a timestamp": session_text(user_messages=[{"content": "x"}]),
    "a message with a bad timestamp": session_text(user_messages=[{"content": "x", "timestamp": "soon"}]),
    "a message with a number as content": session_text(user_messages=[_MESSAGE | {"content": 1}]),
    "a response with a text as evaluation_passed": session_text(
        agent_responses=[_MESSAGE | {"evaluation_passed": "yes"}]
    ),
    "metadata that is an array": session_text(metadata=[]),
    "metadata that is null": session_text(metadata=None),
    "metadata with NaN": session_text(metadata={"x": float("nan")}),
    "metadata with a number beyond all": _with(b"2.5", b"1e999"),
    "metadata with a lone surrogate": _with(b"A title", b"\\ud800"),
    "metadata with a bad escape": _with(b"A title", b"\\q"),
    "a seed that is a number": session_text(active_seed_id=3),
    "a field twice": _with(b'  "user_id"', b'  "user_id": "bob",\n  "user_id"'),
    "a list twice": _with(b'  "user_messages"', b'  "user_messages": [],\n  "user_messages"'),
    "notes that are a number": session_text(metadata={"statestore": 3}),
    "notes with events that are no list": session_text(metadata={"statestore": {"events": {}}}),
    "notes with an event of no kind": session_text(metadata={"statestore": {"events": [_MESSAGE]}}),
}

GOOD_SESSIONS: dict[str, bytes] = {
    "compact": session_text(indent=None),
    "compact without messages": session_text(indent=None, user_messages=[], agent_responses=[], metadata={}),
    "indented by one": session_text(indent=1),
    "indented by four": session_text(indent=4),
    "with a newline at its end": session_text() + b"\n",
    "with Windows line ends": session_text().replace(b"\n", b"\r\n"),
    "with only what is required": json.dumps(
        {"id": "bad", "user_id": "alice", "created_at": MOMENT, "updated_at": MOMENT}
    ).encode(),
    "with its keys backwards": json.dumps(dict(reversed(json.loads(session_text()).items())), indent=2).encode(),
    "with a decoy in its metadata": session_text(
        indent=1, metadata={"user_messages": [], "agent_responses": [], "zz": 1}
    ),
    "with unknown fields": session_text(newer={"a": [1, {"b": 2}]}),
    "with moments at the end of time": session_text(
        user_messages=[{"content": "x", "timestamp": "9999-12-31T23:59:59.9999999-23:59"}]
    ),
    "with moments at the beginning of time": session_text(created_at="0001-01-01T00:00:00+23:59"),
}
"""Unusual, and yet sessions: all that the seed's own reader takes must be taken."""

BAD_JSON: dict[str, bytes] = {
    "no bytes": b"",
    "cut": b'{"a": [1, 2',
    "not UTF-8": b'{"a": "\xff"}',
    "no JSON": b"hello",
    "nested 100,000 deep": b"[" * 100_000 + b"]" * 100_000,
    "nested 100,000 deep and never closed": b"[" * 100_000,
    "something after the end": b"{} {}",
    "a lone surrogate": b'"\\ud800"',
}
