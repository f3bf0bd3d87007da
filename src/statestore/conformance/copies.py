"""What is handed out is the caller's own: changing it changes nothing that is stored, and the other way round."""

from __future__ import annotations

from typing import Any

from statestore.conformance.bench import Bench
from statestore.conformance.changes import (
    agent,
    appended,
    created,
    document_of,
    event,
    everything_in,
    moment,
    put,
    session_of,
    user,
)
from statestore.conformance.contract import Contract, case
from statestore.engine import Change, ChangeSession, DocumentQuery, SessionQuery


class CopyCases(Contract):
    """No live internals."""

    @case
    async def test_changing_what_was_read_changes_nothing_stored(self, bench: Bench) -> None:
        """Lists and dicts that a read returned can be emptied without harm to the store."""
        await bench.commit(created("s", user("one", key="k"), agent("two"), event("t", {"a": 1})), put("n"))
        before = await everything_in(bench.engine)
        stored = await session_of(bench.engine, "s")
        numbers = stored.records.numbering
        for handed_out in (*stored.records.decoded()[:3], numbers.users, numbers.agents, numbers.events, numbers.keys):
            _empty(handed_out)
        _empty(await bench.engine.list_sessions(SessionQuery()))
        _empty(await bench.engine.list_documents(DocumentQuery("notes")))
        _empty(await bench.engine.list_categories())
        _empty(await bench.engine.check())
        assert await everything_in(bench.engine) == before

    @case
    async def test_changing_a_loaded_session_changes_nothing_stored(self, bench: Bench) -> None:
        """A session object is its holder's until it is saved: another load gives another object."""
        await bench.commit(created("s", user("one"), agent("two"), event("t", {"a": 1}), metadata={"list": b"[1]"}))
        first = await bench.store.load_session("s")
        assert first is not None
        first.user_messages.clear()
        first.events.pop()
        first.metadata["list"].append(2)
        first.events.clear()
        first.project_id = "p"
        second = await bench.store.load_session("s")
        assert second is not None
        assert [message.content for message in second.user_messages] == ["one"]
        assert [event.data for event in second.events] == [{"a": 1}]
        assert (second.metadata, second.project_id) == ({"list": [1]}, None)

    @case
    async def test_changing_what_was_written_changes_nothing_stored(self, bench: Bench) -> None:
        """A change can be thrown away or altered by its maker once it was committed."""
        metadata = {"a": b"1"}
        fields: dict[str, str | None] = {"project_id": "p"}
        batch: list[Change] = [
            created("s", user("one"), fields=fields, metadata=metadata),
            ChangeSession("s", moment(1), set_metadata=metadata, set_fields=fields),
        ]
        for change in batch:
            single = [change]
            outcomes = await bench.engine.commit(single)
            single.clear()
            outcomes.clear()
        before = await everything_in(bench.engine)
        assert len(before) == 1
        for given in (metadata, fields):
            given.clear()
        metadata["b"] = b"2"
        fields["project_id"] = "q"
        assert await everything_in(bench.engine) == before

    @case
    async def test_what_was_read_stays_as_it_was_read(self, bench: Bench) -> None:
        """A session that was read before a change does not change with it, though it is looked at only later."""
        await bench.commit(created("s", user("one")), put("n"))
        stored, document = await session_of(bench.engine, "s"), await document_of(bench.engine, "n")
        summaries = await bench.engine.list_sessions(SessionQuery())
        await bench.commit(appended("s", user("two")))
        await bench.commit(put("n", b"2"))
        assert [record.seq for record in stored.records.in_order()] == [1]
        assert (stored.next_seq, stored.message_count, document.body) == (2, 1, b"1")
        assert (len(summaries), summaries[0].message_count) == (1, 1)


def _empty(handed_out: Any) -> None:
    """Empty what can be emptied."""
    if hasattr(handed_out, "clear"):
        handed_out.clear()
