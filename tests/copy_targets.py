"""What tests of copies look at, and targets that they copy to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from statestore.engine import Batch, DocumentQuery, Engine, Result, SessionQuery
from statestore.engines.memory import MemoryEngine
from statestore.host import step


def contents_of(engine: Engine) -> dict[str, Any]:
    """All that an engine holds, but for what is each engine's own: versions and sizes."""
    held: dict[str, Any] = {}
    for summary in step(engine.list_sessions(SessionQuery(order="id"))):
        stored = step(engine.read_session(summary.id))
        assert stored is not None
        records = stored.records.in_order()
        shown = (summary.title, summary.project_id, summary.message_count, summary.response_count, summary.event_count)
        held[f"session {summary.id}"] = (stored.fields, stored.metadata, stored.next_seq, records, shown)
    for category in step(engine.list_categories()):
        for info in step(engine.list_documents(DocumentQuery(category))):
            document = step(engine.get_document(category, info.name, info.kind))
            assert document is not None
            held[f"document {category}/{info.name}.{info.kind}"] = document.body
    return held


class OneByOne(MemoryEngine):
    """Makes one item at a time, many in one call, as a cluster does."""

    atomic_scope = "item"

    async def commit_group(self, batches: Sequence[Batch]) -> list[Result]:
        results: list[Result] = []
        for batch in batches:
            try:
                results.append(await self.commit(batch))
            except Exception as error:  # noqa: BLE001
                results.append(error)
        return results
