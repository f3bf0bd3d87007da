"""Versions: opaque, new at every change, and never used twice."""

from __future__ import annotations

from statestore.conformance.bench import Bench
from statestore.conformance.changes import (
    appended,
    created,
    document_of,
    everything_in,
    moment,
    put,
    session_of,
    truncated,
    user,
)
from statestore.conformance.contract import Contract, case
from statestore.engine import (
    Change,
    ChangeSession,
    DeleteCategory,
    DeleteDocument,
    DeleteSession,
    DocumentQuery,
    Failure,
    Requires,
    SessionQuery,
)


class VersionCases(Contract):
    """A version never comes back."""

    @case
    async def test_every_change_makes_a_new_version(self, bench: Bench) -> None:
        """Each change is applied to the version before it, and every kind of change makes a new one."""
        changes: list[Change] = [
            created("s"),
            appended("s", user("one")),
            appended("s", user("one")),
            ChangeSession("s", moment(1), set_fields={"project_id": "p"}),
            ChangeSession("s", moment(1), set_metadata={"a": b"1"}),
            ChangeSession("s", moment(1), set_metadata={"a": b"1.0"}),
            ChangeSession("s", moment(1), unset_metadata=("a",)),
            truncated("s", 0),
            ChangeSession("s", moment(9)),
        ]
        seen = ["None"]
        for change in changes:
            (outcome,) = await bench.commit(change)
            assert str(outcome.before) == seen[-1]
            assert str(outcome.version) not in seen
            seen.append(str(outcome.version))
            assert str((await session_of(bench.engine, "s")).version) == seen[-1]
            (summary,) = await bench.engine.list_sessions(SessionQuery())
            assert summary.version == seen[-1]

    @case
    async def test_a_documents_version_never_comes_back(self, bench: Bench) -> None:
        """A to B and back to A, the same bytes again, deleted and put anew: always a version never seen before."""
        seen: set[str] = set()
        for body in [b"A", b"A", b"B", b"A"] * 12:
            (outcome,) = await bench.commit(put("n", body))
            assert str(outcome.version) not in seen
            seen.add(str(outcome.version))
        for delete in (DeleteDocument("notes", "n", "json"), DeleteCategory("notes")) * 6:
            await bench.commit(delete)
            (outcome,) = await bench.commit(put("n", b"A"))
            assert outcome.before is None
            assert str(outcome.version) not in seen
            seen.add(str(outcome.version))
        assert (await document_of(bench.engine, "n")).version in seen

    @case
    async def test_a_sessions_version_never_comes_back(self, bench: Bench) -> None:
        """A field set to and fro, a message appended and truncated, deleted and created anew with the same content."""
        seen: set[str] = set()
        for _ in range(6):
            changes = [
                created("s", user("one"), at=9),
                ChangeSession("s", moment(1), set_fields={"project_id": "A"}),
                ChangeSession("s", moment(1), set_fields={"project_id": "B"}),
                ChangeSession("s", moment(1), set_fields={"project_id": "A"}),
                appended("s", user("two")),
                truncated("s", 1),
            ]
            for change in changes:
                (outcome,) = await bench.commit(change)
                assert str(outcome.version) not in seen
                seen.add(str(outcome.version))
            await bench.commit(DeleteSession("s"))

    @case
    async def test_a_version_from_before_is_refused_for_ever(self, bench: Bench) -> None:
        """What was judged at an old version cannot be overwritten, though the content is the same again."""
        (outcome,) = await bench.commit(put("n", b"A"))
        await bench.commit(put("n", b"B"))
        await bench.commit(put("n", b"A"))
        assert await bench.failures_of(put("n", b"C", Requires(version=outcome.version))) == [Failure(0, "version")]
        (outcome,) = await bench.commit(created("s", user("one")))
        await bench.commit(DeleteSession("s"))
        await bench.commit(created("s", user("one")))
        assert await bench.failures_of(DeleteSession("s", Requires(version=outcome.version))) == [Failure(0, "version")]
        assert (await document_of(bench.engine, "n")).body == b"A"
        assert await bench.engine.read_session("s") is not None

    @case
    async def test_reading_changes_no_version(self, bench: Bench) -> None:
        """However often something is read, listed or checked, its version stays."""
        await bench.commit(created("s", user("one")), put("n"))
        before = await everything_in(bench.engine)
        assert len(before) == 2
        for _ in range(3):
            await bench.engine.read_session("s", last=0)
            await bench.engine.list_sessions(SessionQuery(user_id="alice"))
            await bench.engine.list_documents(DocumentQuery("notes"))
            await bench.engine.check()
            await bench.store.load_session("s")
            assert await everything_in(bench.engine) == before
        await bench.reopen()
        assert await everything_in(bench.engine) == before

    @case
    async def test_a_change_touches_only_its_own_version(self, bench: Bench) -> None:
        """Changing one item leaves every other item's version as it was."""
        await bench.commit(put("a"), put("b"), put("a", kind="md"), created("s"), created("t"))
        before = await everything_in(bench.engine)
        await bench.commit(put("a", b"2"))
        await bench.commit(appended("s", user("x")))
        after = await everything_in(bench.engine)
        assert {item for item in before if after[item] != before[item]} == {"document notes/a.json", "session s"}

    @case
    async def test_every_way_of_reading_tells_the_same_version(self, bench: Bench) -> None:
        """A part of a session, the whole, its summary, its document and its object all tell one version."""
        (outcome,) = await bench.commit(created("s", user("one"), user("two")))
        version = str(outcome.version)
        assert str((await session_of(bench.engine, "s", last=1)).version) == version
        assert str((await session_of(bench.engine, "s", last=0)).version) == version
        document = await bench.store.get_document("sessions", "s")
        session = await bench.store.load_session("s")
        assert document is not None
        assert session is not None
        assert document.version == session.version == version
        assert str((await bench.commit(appended("s", user("three"))))[0].before) == version
