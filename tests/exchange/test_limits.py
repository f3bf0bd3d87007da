"""Imports take what a store takes: a session beyond the limits is refused, told how, and keeps no other one out."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from exchanging import exported, imported, sessions_of, store_with

from statestore import Event, InvalidValue, StateStore, UserMessage
from statestore.conformance.changes import created, event, user
from statestore.engine import NewRecord
from statestore.exchange import Format, NotAnExport, import_path
from statestore.jsontext import MAX_DEPTH, MAX_LABEL_BYTES

MOMENT = "2026-01-01T00:00:00Z"
LONG = "l" * (MAX_LABEL_BYTES + 1)
TOO_LARGE = 2**64
TOO_SMALL = -(2**63) - 1


def nested(depth: int) -> Any:
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


def text_of(*sessions: tuple[dict[str, Any], list[dict[str, Any]]], format: Format = "jsonl") -> bytes:
    """An export of sessions with these fields and these records."""
    parts: list[dict[str, Any]] = []
    for fields, bodies in sessions:
        head = {"id": "odd", "user_id": "u", "created_at": MOMENT, "updated_at": MOMENT, "next_seq": 9} | fields
        records = [
            {"seq": seq, "kind": body.get("kind", "user"), "body": {"timestamp": MOMENT} | body}
            for seq, body in enumerate(bodies, 1)
        ]
        parts.append({"session": head, "records": records})
    if format == "json":
        return json.dumps({"statestore": 1, "sessions": parts}).encode()
    lines: list[dict[str, Any]] = []
    for part in parts:
        end = {"end": part["session"]["id"], "records": len(part["records"])}
        lines += [{"statestore": 1, "session": part["session"]}, *part["records"], end]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


BEYOND = [
    ({"user_id": "a\0b"}, [], "the user id holds a NUL character"),
    ({"project_id": "a\0b"}, [], "project_id holds a NUL character"),
    ({"project_id": LONG}, [], "project_id is longer than 500 bytes"),
    ({"metadata": {"a\0b": 1}}, [], "the metadata key 'a\\x00b' holds a NUL character"),
    ({"metadata": {"good": 1, LONG: 1}}, [], "llll' is longer than 500 bytes"),
    ({"metadata": {"x": nested(MAX_DEPTH + 1)}}, [], "nested deeper than 100 levels"),
    ({"metadata": {"x": [TOO_LARGE]}}, [], "metadata['x'][0]: a number does not fit in 64 bits"),
    ({"metadata": {"x": TOO_SMALL}}, [], "does not fit in 64 bits"),
    ({"layout": {"id": None, "new": {"n": TOO_LARGE}}}, [], "the field 'new'.n: a number does not fit in 64 bits"),
    ({"layout": {"id": None, "new": nested(150)}}, [], "nested deeper than 100 levels"),
    ({}, [{"kind": "k", "data": nested(MAX_DEPTH + 1)}], "record 1: an event's data"),
    ({}, [{"kind": "k", "data": 1}, {"kind": "k", "data": 10**60}], "record 2: an event's data: a number does not fit"),
    ({}, [{"kind": "k", "data": 1, "new": TOO_SMALL}], "record 1: extra.new: a number does not fit"),
    ({}, [{"content": "a", "new": nested(MAX_DEPTH)}], "record 1: extra"),
    ({}, [{"kind": "agent", "content": "a", "new": [TOO_LARGE]}], "record 1: extra.new[0]: a number does not fit"),
]


@pytest.mark.parametrize("format", ["jsonl", "json"])
@pytest.mark.parametrize(("fields", "bodies", "reason"), BEYOND, ids=lambda value: str(value)[:40])
def test_a_session_beyond_the_limits_is_refused_and_the_others_are_imported(
    fields: dict[str, Any], bodies: list[dict[str, Any]], reason: str, format: Format
) -> None:
    said = {"content": "hello"}
    text = text_of(({"id": "a"}, [said]), (fields, bodies), ({"id": "z"}, [said]), format=format)
    with store_with() as store:
        first, refused, last = imported(store, text)
        assert (first.fate, refused.fate, last.fate) == ("imported", "refused", "imported")
        assert refused.where == "session odd"
        assert reason in refused.reason
        assert "statestore copy" in refused.reason
        assert list(sessions_of(store)) == ["a", "z"]


@pytest.mark.parametrize("value", ["1e400", r'"\ud800"', "[" * 3000 + "]" * 3000], ids=lambda value: value[:9])
@pytest.mark.parametrize("place", ["metadata", "data", "extra"])
def test_what_python_cannot_hold_is_never_imported(value: str, place: str) -> None:
    fields = {"metadata": {"x": "HERE"}} if place == "metadata" else {}
    body = {"content": "a", "new": "HERE"} if place == "extra" else {"kind": "k", "data": "HERE"}
    for format in ("jsonl", "json"):
        text = text_of((fields, [body]), format=format).replace(b'"HERE"', value.encode(), 1)
        with store_with() as store:
            with suppress(NotAnExport):
                assert [item.fate for item in imported(store, text)] == ["refused"]
            assert sessions_of(store) == {}


def test_what_just_keeps_the_limits_is_imported_and_can_be_saved() -> None:
    numbers = [2**64 - 1, -(2**63), 1e300, 12345678901234567890]
    label = "ö" * (MAX_LABEL_BYTES // 2)
    fields = {
        "user_id": label,
        "project_id": label,
        "active_seed_id": LONG,
        "metadata": {label: nested(MAX_DEPTH), "": numbers, "flat": [[]] * 200},
    }
    bodies = [
        {"kind": "k", "data": nested(MAX_DEPTH)},
        {"kind": "k", "data": numbers, "new": nested(MAX_DEPTH - 1)},
        {"content": "[" * 200 + "9" * 40, "new": numbers},
    ]
    with store_with() as store:
        assert [item.fate for item in imported(store, text_of((fields, bodies)))] == ["imported"]
        session = store.load_session("odd")
        assert session is not None
        session.add_user_message("more")
        session.events.append(Event("k", session.events[0].data))
        session.user_messages.append(UserMessage("copy", extra=session.user_messages[0].extra))
        for key, value in session.metadata.items():
            session.set_metadata(key, value)
        store.save_session(session)


def test_what_another_program_wrote_beyond_the_limits_is_exported_and_skipped_where_it_is() -> None:
    deep = json.dumps(nested(120), separators=(",", ":")).encode()
    source = store_with(
        created("a", user("hello")),
        created("deep", event("k", nested(120)), metadata={"x": deep}),
        created("extra", NewRecord("user", b'{"content":"a","timestamp":"2026-01-01T00:00:00Z","new":%d}' % 10**60, 0)),
        created("project", user("hello"), fields={"project_id": LONG}),
    )
    text = exported(source)
    assert {item.fate for item in imported(source, text)} == {"skipped"}
    with store_with() as target:
        fates = {item.where: item.fate for item in imported(target, text)}
        assert fates == {
            "session a": "imported",
            "session deep": "refused",
            "session extra": "refused",
            "session project": "refused",
        }


def test_a_directory_of_another_program_is_imported_as_it_is(tmp_path: Path) -> None:
    with StateStore.open(f"file:{tmp_path / 'rust'}", durability="relaxed") as source:
        source.get_or_create_session("alice", "s")
    path = tmp_path / "rust" / "sessions" / "s.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"project_id": LONG}))
    with store_with() as target:
        assert [item.fate for item in import_path(target, tmp_path / "rust")] == ["imported"]
        text = exported(target)
    with store_with() as another:
        (item,) = imported(another, text)
        assert item.fate == "refused"
        with pytest.raises(InvalidValue, match="project_id is longer"):  # as of everybody who saves it
            session = another.get_or_create_session("alice", "s")
            session.project_id = LONG
            another.save_session(session)
