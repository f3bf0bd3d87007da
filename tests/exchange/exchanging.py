"""What the tests of exports and imports share: stores to export, and what a store holds in a form to compare."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from statestore import StateStore
from statestore.conformance.changes import agent, created, event, user
from statestore.engine import ChangeSession, DeleteSession, Engine, SessionQuery
from statestore.engines.memory import MemoryEngine
from statestore.exchange import Format, Imported, export_sessions, import_sessions
from statestore.host import step

GOLDEN = Path(__file__).parent.parent / "data" / "golden"
LAYOUT = (
    b'{"id":null,"new":[1.0],"user_id":null,"agent_responses":null,"user_messages":null,'
    b'"created_at":null,"updated_at":null,"metadata":null}'
)
VARIETY: tuple[ChangeSession, ...] = (
    created(
        "a", user("first", 1, key="k1"), agent("b", 2), metadata={"title": b'"T"', "z": b"1e16"}, fields={"title": "T"}
    ),
    created("gap", user("a", 1), agent("c", 3, seq=6), event("t", {"d": [1.0]}, 4, seq=1_000_000), user("f", 6)),
    created("kept", user("a", seq=3), next_seq=40, fields={"project_id": "p", "parent_session_id": "a"}),
    created("none", at=5),
    created("odd", *(agent(f"a{n}", 20 - n) for n in range(1, 10)), layout=LAYOUT),
)
"""Keys, gaps, numbers that are taken, nothing at all, unknown fields, times that go back."""


def engine_of(store: StateStore) -> Engine:
    return store._store._engine


def store_with(*changes: ChangeSession | DeleteSession) -> StateStore:
    store = StateStore.open(MemoryEngine())
    for change in changes:
        step(engine_of(store).commit([change]))
    return store


def exported(store: StateStore, *ids: str, format: Format = "jsonl") -> bytes:
    return b"".join(export_sessions(store, list(ids) or None, format=format))


def imported(store: StateStore, text: bytes) -> list[Imported]:
    return list(import_sessions(store, io.BytesIO(text), name="file"))


def sessions_of(store: StateStore) -> dict[str, Any]:
    """All that is stored of all sessions, but for what is each engine's own."""
    engine, held = engine_of(store), {}
    for summary in step(engine.list_sessions(SessionQuery(order="id"))):
        stored = step(engine.read_session(summary.id))
        assert stored is not None
        shown = (summary.title, summary.project_id, summary.message_count, summary.response_count, summary.event_count)
        held[summary.id] = (stored.fields, stored.metadata, stored.next_seq, stored.records.in_order(), shown)
    return held
