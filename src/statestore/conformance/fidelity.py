"""What comes back is what went in: unknown fields, numbers, escapes, order; so that a copy ends in the same bytes."""

from __future__ import annotations

from typing import Any, Final

from statestore.conformance.bench import Bench
from statestore.conformance.changes import (
    appended,
    created,
    document_of,
    moment,
    put,
    said_in,
    session_of,
    user,
    verbatim,
)
from statestore.conformance.contract import Contract, case
from statestore.engine import DeleteSession
from statestore.jsontext import members
from statestore.seedform import session_json
from statestore.seedform.text import SessionText
from statestore.session import Session
from statestore.store.recreating import creation
from statestore.stored import StoredSession

NOW: Final = moment(1)

BODIES: Final = (
    ("user", b'{"content":"plain","timestamp":"%s"}'),
    ("user", b'{"timestamp":"%s","content":"the other way round"}'),
    ("user", b'{"content":"\\u00e9 \\/ \\ud83d\\ude00 \\u0000 \\b\\f\\n\\r\\t\\"\\\\","timestamp":"%s"}'),
    ("user", '{"content":"é 東京 \U0001f600 \u2028","timestamp":"%s"}'.encode()),
    ("user", b'{"content":"","timestamp":"%s"}'),
    (
        "user",
        b'{"content":"x","timestamp":"%s","odd":[1e16,-0.0,1E5,0.10,1e400,18446744073709551615,1e-7,100000000000000000000]}',
    ),
    ("user", b'{"content":"x","timestamp":"%s","attachments":[{"b":1,"a":{},"b":2},[],null,true]}'),
    (
        "agent",
        b'{"content":"x","session_id":null,"seed_id":null,"phase_reached":null,"evaluation_passed":null,"timestamp":"%s"}',
    ),
    (
        "agent",
        b'{"content":"x","session_id":"s","seed_id":"","phase_reached":"p","evaluation_passed":false,"timestamp":"%s"}',
    ),
    ("agent", b'{"content":"optional ones left out","timestamp":"%s"}'),
    ("agent", b'{"content":"x","timestamp":"%s","seed_id":null,"usage":{"tokens":1E2},"kind":"x"}'),
    ("tool", b'{"kind":"tool","data":{"args":[-0.0,1E5],"\\u00e9":"\\/"},"timestamp":"%s"}'),
    ("tool", b'{"kind":"tool","data":null,"timestamp":"%s"}'),
    ("tool", b'{"kind":"tool","timestamp":"%s","more":{"z":1,"a":2}}'),
    ("deep", b'{"kind":"deep","data":' + b"[" * 100 + b"]" * 100 + b',"timestamp":"%s"}'),
)
"""Records as newer programs, and odd ones, write them; each with a place for its timestamp."""

TIMESTAMPS: Final = (
    NOW,
    moment(1, ".5"),
    moment(1, ".123456789"),
    moment(59, ".9999999"),
    "2026-01-02T03:04:05.120+02:00",
    "2026-01-02T03:04:05+00:00",
    "1969-12-31T23:59:59.000000001Z",
)

SESSION: Final = """{
  "schema": 7,
  "id": "s",
  "user_id": "alice",
  "trajectory_steps": [
    {
      "n": 1e16,
      "n": -0.0
    },
    "\\u00e9\\/"
  ],
  "user_messages": [
    {
      "content": "Grüße\\n東京",
      "timestamp": "2026-01-02T00:00:01.123456789Z"
    },
    {
      "timestamp": "2026-01-02T00:00:00.5Z",
      "content": "earlier",
      "lang": "de"
    }
  ],
  "agent_responses": [
    {
      "content": "without the optional fields",
      "timestamp": "2026-01-02T00:00:01.123456789Z"
    }
  ],
  "active_persona_id": null,
  "parent_session_id": "p",
  "created_at": "2026-01-02T00:00:00.5Z",
  "updated_at": "2026-01-02T02:00:01.1234567+02:00",
  "metadata": {
    "zeta": 1.0,
    "alpha": {
      "b": [],
      "a": 1E5
    }
  },
  "reasoning_records": {}
}"""
"""A session of a newer program, in the seed's form."""


class FidelityCases(Contract):
    """Nothing is lost, added, rounded or reordered."""

    @case
    async def test_bodies_are_kept_verbatim(self, bench: Bench) -> None:
        """A record's JSON comes back byte for byte: numbers, escapes, unknown fields, missing ones, key order."""
        records = [verbatim(kind, body.replace(b"%s", NOW.encode()), NOW) for kind, body in BODIES]
        await bench.commit(created("s", *records))
        await bench.commit(created("t"))
        for record in records:
            await bench.commit(appended("t", record))
        await bench.reopen()
        for session_id in "st":
            stored = await session_of(bench.engine, session_id)
            found = [(record.kind, record.body) for record in stored.records.in_order()]
            assert found == [(record.kind, record.body) for record in records]

    @case
    async def test_timestamps_keep_every_digit(self, bench: Bench) -> None:
        """The text of a timestamp is kept, nanoseconds and offsets included."""
        records = [
            verbatim(kind, body.replace(b"%s", at.encode()), at)
            for at in TIMESTAMPS
            for kind, body in (BODIES[0], BODIES[7], BODIES[12])
        ]
        await bench.commit(created("s", *records, at=TIMESTAMPS[2]))
        await bench.reopen()
        stored = await session_of(bench.engine, "s")
        assert [record.body for record in stored.records.in_order()] == [record.body for record in records]
        assert (stored.fields.created, stored.fields.updated) == (TIMESTAMPS[2], TIMESTAMPS[2])

    @case
    async def test_unknown_fields_survive_a_load_and_a_save(self, bench: Bench) -> None:
        """Whoever loads, adds and saves erases nothing of what a newer program wrote."""
        await bench.commit(creation(parsed(SESSION)))
        session = await bench.store.load_session("s")
        assert session is not None
        session.add_agent_response("answer")
        session.set_metadata("new", 1)
        await bench.store.save_session(session)
        await bench.reopen()
        text = session_json(await session_of(bench.engine, "s")).decode()
        kept = SESSION[: SESSION.index('    }\n  ],\n  "active_persona_id"')]
        assert text.startswith(kept)
        assert '"zeta": 1.0,\n    "alpha": {\n      "b": [],\n      "a": 1E5\n    },\n    "new": 1' in text
        assert text.endswith('"reasoning_records": {}\n}')

    @case
    async def test_a_layout_is_kept_verbatim(self, bench: Bench) -> None:
        """The order of a session's keys and the text of those nobody knows come back, and none where there is none."""
        given = parsed(SESSION)
        assert given.layout is not None
        await bench.commit(creation(given))
        await bench.commit(created("t", user("one")))
        await bench.reopen()
        assert (await session_of(bench.engine, "s")).layout == given.layout
        assert (await session_of(bench.engine, "t")).layout is None

    @case
    async def test_a_session_that_is_there_keeps_its_layout(self, bench: Bench) -> None:
        """With create, a layout is for a session that is new, and the rest of the batch is stored as it was given."""
        await bench.commit(creation(parsed(SESSION)))
        await bench.commit(created("t", user("one")))
        for name in ("s", "t"):
            change = created(name, user("two"), layout=b'{"other":1}', metadata={"zeta": b"2.0"})
            await bench.commit(change, put(name, b"text", kind="md"))
            stored = await session_of(bench.engine, name)
            unknown = members(stored.layout or b"{}")
            assert (unknown.get("schema"), unknown.get("other")) == (b"7" if name == "s" else None, None)
            assert members(stored.metadata)["zeta"] == b"2.0"
            assert (await said_in(bench.engine, name))[-1] == "two"
            assert (await document_of(bench.engine, name, "md")).body == b"text"
        assert await bench.engine.check() == []

    @case
    async def test_a_copy_ends_in_the_same_bytes(self, bench: Bench) -> None:
        """A session that is read and created anew has the same JSON, again and again."""
        await bench.commit(creation(parsed(SESSION)))
        for _ in range(3):
            stored = await session_of(bench.engine, "s")
            assert session_json(stored).decode() == SESSION
            await bench.commit(DeleteSession("s"))
            await bench.reopen()
            await bench.commit(creation(stored))

    @case
    async def test_a_copy_keeps_numbers_keys_and_events(self, bench: Bench) -> None:
        """What our own sessions hold beyond the seed's form survives a copy, too."""
        session = Session.with_id("alice", "s")
        session.add_event("tool", {"n": 1}, key="k1")
        session.add_user_message("one", key="k2")
        session.add_agent_response("two")
        session.add_event("thought", None)
        session.add_user_message("three")
        session.set_metadata("title", "Title")
        session.project_id = "p"
        await bench.store.save_session(session)
        await bench.store.rewind_session("s", to=4)
        first = await session_of(bench.engine, "s")
        await bench.commit(DeleteSession("s"))
        await bench.commit(creation(first))
        second = await session_of(bench.engine, "s")
        assert session_json(second) == session_json(first)
        assert second.records.in_order() == first.records.in_order()
        assert second.next_seq == first.next_seq == 6
        assert await bench.store.append("s", *session.user_messages[:1], keys=["k2"]) == [2]

    @case
    async def test_what_lies_at_the_edge_of_json_is_kept(self, bench: Bench) -> None:
        """Through the store, too: 64 bits, deep nesting, small fractions, control characters, empty things."""
        value: dict[str, Any] = {
            "u64": 2**64 - 1,
            "i64": -(2**63),
            "fractions": [0.1, 1e-300, 1.7976931348623157e308, -0.0, 5e-324, 1.0],
            "text": "".join(map(chr, range(0x80))) + "\u2028\ufeff\uffff\U0010ffff",
            "empty": ["", {}, [], None, False],
            "": {" ": 0},
        }
        nested: Any = value
        for _ in range(90):
            nested = [nested]
        session = Session.with_id("alice", "s")
        session.add_event("tool", nested)
        session.set_metadata("value", nested)
        session.add_user_message(value["text"])
        await bench.store.save_session(session)
        await bench.store.save_json("notes", "n", nested)
        await bench.reopen()
        loaded = await bench.store.load_session("s")
        assert loaded is not None
        assert repr(loaded.events[0].data) == repr(nested)
        assert repr(loaded.metadata["value"]) == repr(nested)
        assert loaded.user_messages[0].content == value["text"]
        assert repr(await bench.store.load_json("notes", "n")) == repr(nested)


def parsed(text: str) -> StoredSession:
    """A session in the seed's form, as an engine would hand it up."""
    session = SessionText(text.encode())
    return StoredSession(
        id=session.id,
        fields=session.fields,
        records=session.records,
        version="",
        next_seq=session.next_seq(),
        message_count=len(session.records.decoded().users),
        metadata=session.metadata,
        layout=session.layout,
    )
