"""Changes to try an engine with, and what comes back in a form that is easy to compare."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from statestore.engine import (
    NOTHING,
    Change,
    ChangeSession,
    DocumentQuery,
    Engine,
    NewRecord,
    NewSession,
    PreconditionFailed,
    PutDocument,
    Requires,
    SessionQuery,
)
from statestore.stored import Document, DocumentKind, StoredSession
from statestore.timestamps import nanoseconds

ALICE = "alice"
BOB = "bob"


def moment(second: int, fraction: str = "") -> str:
    """A moment of one day, by its second; ``fraction`` is the text between the seconds and the Z."""
    minute, second = divmod(second, 60)
    hour, minute = divmod(minute, 60)
    return f"2026-01-02T{hour:02}:{minute:02}:{second:02}{fraction}Z"


def compact_json(value: Any) -> bytes:
    """A value as JSON without white space."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def user(content: str, at: int | str = 0, *, key: str | None = None, seq: int | None = None) -> NewRecord:
    """Something the user said."""
    when = at if isinstance(at, str) else moment(at)
    body = compact_json({"content": content, "timestamp": when})
    return NewRecord("user", body, nanoseconds(when), key, seq, opening=content)


def agent(content: str, at: int | str = 0, *, key: str | None = None, seq: int | None = None) -> NewRecord:
    """Something the agent answered."""
    when = at if isinstance(at, str) else moment(at)
    body: dict[str, Any] = {"content": content, "session_id": None, "seed_id": None, "phase_reached": None}
    body |= {"evaluation_passed": None, "timestamp": when}
    return verbatim("agent", compact_json(body), when, key=key, seq=seq)


def event(
    kind: str, data: Any = None, at: int | str = 0, *, key: str | None = None, seq: int | None = None
) -> NewRecord:
    """Something that happened."""
    when = at if isinstance(at, str) else moment(at)
    return verbatim(kind, compact_json({"kind": kind, "data": data, "timestamp": when}), when, key=key, seq=seq)


def verbatim(kind: str, body: bytes, at: str, *, key: str | None = None, seq: int | None = None) -> NewRecord:
    """A record with this very text; ``at`` is the timestamp in it."""
    return NewRecord(kind, body, nanoseconds(at), key, seq)


def created(
    session_id: str,
    *records: NewRecord,
    user_id: str = ALICE,
    at: int | str = 0,
    layout: bytes | None = None,
    next_seq: int = 1,
    requires: Requires = NOTHING,
    fields: dict[str, str | None] | None = None,
    metadata: dict[str, bytes] | None = None,
) -> ChangeSession:
    """The change that creates a session."""
    when = at if isinstance(at, str) else moment(at)
    return ChangeSession(
        session_id,
        when,
        requires=requires,
        create=NewSession(user_id, when, layout, next_seq),
        append=records,
        set_fields=fields or {},
        set_metadata=metadata or {},
    )


def appended(session_id: str, *records: NewRecord, at: int | str = 1, requires: Requires = NOTHING) -> ChangeSession:
    """The change that adds records to a session."""
    when = at if isinstance(at, str) else moment(at)
    return ChangeSession(session_id, when, requires=requires, append=records)


def truncated(session_id: str, after: int, *records: NewRecord, at: int = 1) -> ChangeSession:
    """The change that drops the records numbered above ``after``, and then adds some."""
    return ChangeSession(session_id, moment(at), truncate_after=after, append=records)


def put(name: str, body: bytes = b"1", requires: Requires = NOTHING, kind: DocumentKind = "json") -> PutDocument:
    """The change that writes a document of the category ``notes``."""
    return PutDocument("notes", name, kind, body, requires)


class Line(NamedTuple):
    """A record as it was read."""

    seq: int
    kind: str
    said: Any
    key: str | None = None


def lines(stored: StoredSession) -> list[Line]:
    """The records in their order, each with what was said."""
    found: list[Line] = []
    for record in stored.records.in_order():
        body = json.loads(record.body)
        found.append(Line(record.seq, record.kind, body.get("content", body.get("data")), record.key))
    return found


async def session_of(engine: Engine, session_id: str, **window: int | None) -> StoredSession:
    """A session that must be there."""
    stored = await engine.read_session(session_id, **window)
    assert stored is not None, f"session {session_id} is not there"
    return stored


async def lines_of(engine: Engine, session_id: str, **window: int | None) -> list[Line]:
    """The records of a session that must be there."""
    return lines(await session_of(engine, session_id, **window))


async def said_in(engine: Engine, session_id: str, **window: int | None) -> list[Any]:
    """What was said in a session that must be there."""
    return [line.said for line in await lines_of(engine, session_id, **window)]


async def document_of(engine: Engine, name: str, kind: DocumentKind = "json", category: str = "notes") -> Document:
    """A document that must be there."""
    document = await engine.get_document(category, name, kind)
    assert document is not None, f"{category}/{name}.{kind} is not there"
    return document


async def happens(engine: Engine, *batch: Change) -> bool:
    """Whether a batch of things that must be new was first; if not, that is what it is told."""
    try:
        await engine.commit(batch)
    except PreconditionFailed as failed:
        reasons = {failure.reason for failure in failed.failures}
    else:
        return True
    assert reasons == {"exists"}
    return False


async def everything_in(engine: Engine) -> dict[str, Any]:
    """All that an engine holds, versions included: two of these are equal if nothing happened in between."""
    held: dict[str, Any] = {}
    for summary in await engine.list_sessions(SessionQuery(order="id")):
        stored = await session_of(engine, summary.id)
        held[f"session {summary.id}"] = (
            summary,
            stored.fields,
            stored.metadata,
            stored.layout,
            str(stored.version),
            stored.next_seq,
            stored.message_count,
            stored.records.in_order(),
        )
    for category in await engine.list_categories():
        held |= await _documents_in(engine, category)
    return held


async def _documents_in(engine: Engine, category: str) -> dict[str, Any]:
    infos = await engine.list_documents(DocumentQuery(category))
    return {
        f"document {category}/{info.name}.{info.kind}": (
            info,
            await document_of(engine, info.name, info.kind, category),
        )
        for info in infos
    }
