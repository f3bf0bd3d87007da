"""Reading several items in one call: each as it is when it is read alone."""

from __future__ import annotations

from statestore.conformance.bench import Bench
from statestore.conformance.changes import agent, appended, created, event, lines, put, session_of, truncated, user
from statestore.conformance.contract import Contract, offered
from statestore.engine import DeleteSession
from statestore.stored import DocumentKind


class SeveralCases(Contract):
    """What an engine hands out together it would hand out one by one."""

    @offered("several")
    async def test_sessions_that_are_read_together_are_as_they_are_alone(self, bench: Bench) -> None:
        """Small sessions come whole, what is not there is left out, and nothing else comes along."""
        await bench.commit(created("empty"))
        await bench.commit(created("long", *(user(f"m{number}") for number in range(50))))
        await bench.commit(created("mixed", user("a", key="k"), agent("b"), event("tool", {"x": 1}), user("c")))
        await bench.commit(created("rewound", user("a"), user("b")), created("gone", user("a")), created("other"))
        await bench.commit(truncated("rewound", 1, agent("B")))
        await bench.commit(DeleteSession("gone"))
        assert await bench.several.read_sessions([]) == []
        wanted = ["rewound", "absent", "mixed", "gone", "long", "empty"]
        found = {stored.id: stored for stored in await bench.several.read_sessions(wanted)}
        assert set(found) == {"rewound", "mixed", "long", "empty"}
        for session_id, stored in found.items():
            alone = await session_of(bench.engine, session_id)
            assert lines(stored) == lines(alone)
            assert (stored.fields, stored.version, stored.next_seq) == (alone.fields, alone.version, alone.next_seq)
            assert (stored.metadata, stored.message_count) == (alone.metadata, alone.message_count)
        await bench.commit(appended("empty", user("now")))
        (stored,) = await bench.several.read_sessions(["empty"])
        assert lines(stored) == lines(await session_of(bench.engine, "empty"))

    @offered("several")
    async def test_documents_that_are_read_together_are_as_they_are_alone(self, bench: Bench) -> None:
        """Small documents come with their versions, what is not there is left out, and nothing else comes along."""
        places: list[tuple[str, DocumentKind]] = [("a", "json"), ("a", "md"), ("b", "bin"), ("c", "json")]
        for name, kind in places:
            await bench.commit(put(name, f"{name} {kind}".encode(), kind=kind))
        assert await bench.several.get_documents("notes", []) == []
        found = await bench.several.get_documents("notes", [("b", "bin"), ("a", "md"), ("b", "md"), ("absent", "json")])
        alone = [await bench.engine.get_document("notes", *place) for place in places[1:3]]
        assert sorted(found, key=lambda document: document.name) == alone
        assert await bench.several.get_documents("elsewhere", [("a", "json")]) == []
