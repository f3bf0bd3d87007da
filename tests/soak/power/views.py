"""All that a store holds and shows, verbatim, in a form that can be compared."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import msgspec

from statestore import StateStore
from statestore.engine import DocumentQuery, Engine, SessionQuery


def stepped(call: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine of an engine gives back that never suspends."""
    try:
        call.send(None)
    except StopIteration as ended:
        return ended.value
    raise AssertionError("the engine suspends")


def view(engine: Engine, store: StateStore, *, with_versions: bool) -> dict[str, object]:
    """Every session with every byte of it, what listings tell, every document, and the trash."""
    found: dict[str, object] = {}
    summaries = stepped(engine.list_sessions(SessionQuery(order="id")))
    for summary in summaries:
        stored = stepped(engine.read_session(summary.id))
        assert stored is not None, f"{summary.id} is listed, and not there"
        found[f"session {summary.id}"] = (
            *(stored.fields, stored.metadata, stored.layout, stored.next_seq, stored.message_count),
            [(record.seq, record.kind, record.key, record.body) for record in stored.records.in_order()],
            stored.version if with_versions else None,
        )
        assert not with_versions or summary.version == stored.version
        found[f"summary {summary.id}"] = msgspec.structs.replace(summary, version=None)
    for category in stepped(engine.list_categories("")):
        for info in stepped(engine.list_documents(DocumentQuery(category))):
            document = stepped(engine.get_document(category, info.name, info.kind))
            assert document is not None, f"{category}/{info.name} is listed, and not there"
            found[f"document {category}/{info.name}.{info.kind}"] = document.body
    found["trash"] = [(one.session.id, one.until_ns) for one in store.list_trash()]
    return found
