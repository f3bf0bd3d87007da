"""Listings: which sessions, in which order, and what they are called."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from statestore.conformance.bench import Bench
from statestore.conformance.changes import ALICE, BOB, created, moment, user
from statestore.conformance.contract import Contract, case
from statestore.engine import DeleteSession, Engine, SessionQuery
from statestore.records import Event, UserMessage
from statestore.session import Session
from statestore.timestamps import nanoseconds

MOMENTS: Final = (
    "0001-01-01T00:00:00Z",
    "1677-09-21T00:12:43Z",
    "1969-12-31T23:59:59.999999999Z",
    "1970-01-01T00:00:00Z",
    "1970-01-01T00:00:00.000000001Z",
    moment(5),
    moment(5, ".000000001"),
    moment(5, ".1"),
    moment(5, ".100000001"),
    moment(59, ".999999999"),
    "2026-01-02T01:00:59.9999999995+01:00",
    moment(60),
    "2026-01-02T02:01:01+02:00",
    "2262-04-11T23:47:16.854775807Z",
    "2262-04-11T23:47:17Z",
    "9999-12-31T23:59:59.999999999Z",
)
"""Rising, but for one pair that is equal to the nanosecond."""

PROJECTS: Final[dict[str, tuple[str | None, dict[str, Any], str | None]]] = {
    "none": (None, {}, None),
    "field": ("p", {"project_id": "q", "project_ids": "r"}, "p"),
    "single": (None, {"project_id": "p", "project_ids": "q"}, "p"),
    "text": (None, {"project_ids": "p, q"}, "p"),
    "list": (None, {"project_ids": ["p", "q"]}, "p"),
    "other": (None, {"project_ids": ["q", "p"]}, "q"),
    "empty": (None, {"project_ids": []}, None),
    "number": (None, {"project_id": 5}, None),
}
"""The field, the metadata, and the project that a session with these belongs to."""


class ListingCases(Contract):
    """What listings show, and in which order."""

    @case
    async def test_newest_first_to_the_nanosecond(self, bench: Bench) -> None:
        """Listings go by the moment of the last change, newest first, whatever its year, offset or digits."""
        order = [5, 3, 12, 0, 9, 15, 1, 7, 13, 4, 10, 2, 14, 6, 11, 8]
        await bench.commit(*(created(f"s{index:02}", at=MOMENTS[index]) for index in order))
        expected = [f"s{index:02}" for index in sorted(order, key=lambda i: (-nanoseconds(MOMENTS[i]), i))]
        assert expected.index("s09") + 1 == expected.index("s10"), "equal to the nanosecond"
        assert await _ids(bench.engine) == expected
        await bench.reopen()
        assert await _ids(bench.engine) == expected

    @case
    async def test_ties_go_by_id(self, bench: Bench) -> None:
        """Sessions changed at the same moment are listed by id, in code point order."""
        ids = ["b", "a", "B", "ä", "z", "10", "9", " ", "a b", "\uff5e", "\U0001f600", "e\u0301", "é"]
        await bench.commit(*(created(name, at=1) for name in ids))
        assert await _ids(bench.engine) == sorted(ids)
        assert await _ids(bench.engine, order="id") == sorted(ids)

    @case
    async def test_order_by_id_knows_no_time(self, bench: Bench) -> None:
        """order="id" lists by id, whenever sessions were changed."""
        ids = [f"s{index * 7 % 20:02}" for index in range(20)]
        await bench.commit(*(created(name, at=index) for index, name in enumerate(ids)))
        assert await _ids(bench.engine, order="id") == sorted(ids)
        assert await _ids(bench.engine) == ids[::-1]

    @case
    async def test_a_change_moves_a_session_to_the_front(self, bench: Bench) -> None:
        """A session that is changed later is listed before others; one changed with an older moment stays."""
        await bench.commit(*(created(f"s{index}", at=index) for index in range(4)))
        await bench.commit(created("s1", user("x"), at=10))
        assert await _ids(bench.engine) == ["s1", "s3", "s2", "s0"]
        await bench.commit(created("s3", user("x"), at=1))
        assert await _ids(bench.engine) == ["s1", "s3", "s2", "s0"]

    @case
    async def test_filters_select_exactly(self, bench: Bench) -> None:
        """User, parent, top level and moment select, alone and together; a count agrees."""
        for index in range(12):
            fields: dict[str, str | None] = {"parent_session_id": "s00"} if index % 4 == 1 else {}
            if index % 3 == 0:
                fields["project_id"] = "p"
            user_id = (ALICE, BOB)[index % 2]
            await bench.commit(created(f"s{index:02}", user_id=user_id, at=moment(index, ".000000001"), fields=fields))
        since = nanoseconds(moment(6, ".000000001"))
        for user_id in (None, ALICE, BOB, "nobody", ""):
            for parent in (None, "s00", "s01"):
                for project in (None, "p", "q"):
                    for top_level in (False, True):
                        for since_ns in (None, since, since + 1, 0, -(2**80), 2**80):
                            query = SessionQuery(
                                user_id=user_id,
                                parent_session_id=parent,
                                project_id=project,
                                top_level=top_level,
                                updated_since_ns=since_ns,
                            )
                            expected = [
                                f"s{index:02}"
                                for index in reversed(range(12))
                                if user_id in (None, (ALICE, BOB)[index % 2])
                                and (parent is None or (parent == "s00" and index % 4 == 1))
                                and (project is None or (project == "p" and index % 3 == 0))
                                and not (top_level and index % 4 == 1)
                                and (since_ns is None or nanoseconds(moment(index, ".000000001")) >= since_ns)
                            ]
                            found = await bench.engine.list_sessions(query)
                            assert [summary.id for summary in found] == expected, str(query)
                            assert await bench.engine.count_sessions(query) == len(expected), str(query)

    @case
    async def test_a_limit_limits(self, bench: Bench) -> None:
        """A limit of 0 gives nothing, any larger one at most so many; a count ignores it."""
        await bench.commit(*(created(f"s{index}", at=index) for index in range(5)))
        for limit in (0, 1, 4, 5, 6, 10_000, 2**31, 2**62):
            for order in ("updated", "id"):
                query = SessionQuery(limit=limit, order=order)
                assert len(await bench.engine.list_sessions(query)) == min(limit, 5)
                assert await bench.engine.count_sessions(query) == 5

    @case
    async def test_updated_since_takes_a_moment(self, bench: Bench) -> None:
        """updated_since includes the moment itself."""
        for index in range(3):
            session = Session.with_id(ALICE, f"s{index}")
            session.updated_at = datetime(2026, 1, 2, 0, 0, index, 1, tzinfo=UTC)
            await bench.store.save_session(session)
        since = datetime(2026, 1, 2, 0, 0, 1, 1, tzinfo=UTC)
        assert [summary.id for summary in await bench.store.list_sessions(updated_since=since)] == ["s2", "s1"]
        assert await bench.store.count_sessions(updated_since=since) == 2

    @case
    async def test_a_project_is_a_field_or_in_the_metadata(self, bench: Bench) -> None:
        """A session's project: its field, else metadata project_id, else the first of project_ids."""
        for name, (field, metadata, _) in PROJECTS.items():
            session = Session.with_id(ALICE, name)
            session.project_id = field
            for key, value in metadata.items():
                session.set_metadata(key, value)
            await bench.store.save_session(session)
        await bench.reopen()
        shown = {summary.id: summary.project_id for summary in await bench.store.list_sessions()}
        assert shown == {name: project for name, (_, _, project) in PROJECTS.items()}
        for project in ("p", "q", "r"):
            found = await bench.store.list_sessions(project_id=project, order="id")
            assert [summary.id for summary in found] == sorted(n for n, (_, _, p) in PROJECTS.items() if p == project)
            assert await bench.store.count_sessions(project_id=project) == len(found)

    @case
    async def test_a_project_follows_its_metadata(self, bench: Bench) -> None:
        """When the metadata change, listings follow."""
        session = Session.with_id(ALICE, "s")
        await bench.store.save_session(session)
        changes: list[tuple[dict[str, Any], str | None]] = [
            ({"project_ids": "p,q"}, "p"),
            ({"project_ids": "p,q", "project_id": "r"}, "r"),
            ({"project_id": "r"}, "r"),
            ({"project_ids": ["x"]}, "x"),
            ({}, None),
        ]
        for metadata, project in changes:
            session.metadata = metadata
            await bench.store.save_session(session)
            (summary,) = await bench.store.list_sessions()
            assert summary.project_id == project

    @case
    async def test_children_are_found_by_the_id_of_their_parent(self, bench: Bench) -> None:
        """The id of a session object is a text of a class of its own; it finds what the plain text finds."""
        parent = Session.with_id(ALICE, "parent")
        await bench.store.save_session(parent)
        await bench.store.fork_session("parent", new_id="child")
        found = await bench.store.list_sessions(parent_session_id=parent.id)
        assert [summary.id for summary in found] == ["child"]
        assert await bench.store.count_sessions(parent_session_id=parent.id) == 1

    @case
    async def test_a_title_is_given_or_the_first_line(self, bench: Bench) -> None:
        """A session's title: metadata title, else the first line of its first message, cut to 60 characters."""
        first = "  \n  The first line, which goes on and on and on, é 東京, until then\nsecond"
        cases: dict[str, tuple[list[str], dict[str, Any], str | None]] = {
            "none": ([], {}, None),
            "first": ([first, "other"], {}, "The first line, which goes on and on and on, é 東京, until the"),
            "given": (["hello"], {"title": "Given"}, "Given"),
            "odd": (["hello"], {"title": 5}, "hello"),
            "blank": (["hello"], {"title": ""}, "hello"),
        }
        for name, (messages, metadata, _) in cases.items():
            session = Session.with_id(ALICE, name)
            session.add_event("tool", "not a message")
            for message in messages:
                session.add_user_message(message)
            for key, value in metadata.items():
                session.set_metadata(key, value)
            await bench.store.save_session(session)
        await bench.reopen()
        shown = {summary.id: summary.title for summary in await bench.store.list_sessions()}
        assert shown == {name: title for name, (_, _, title) in cases.items()}

    @case
    async def test_a_title_follows_what_is_said(self, bench: Bench) -> None:
        """The title is that of the first message there is, through appends, rewinds, edits and a given title"""
        store = bench.store
        await store.save_session(Session.with_id(ALICE, "s"))
        assert await _title(bench) is None
        await store.append("s", Event("tool", 1), UserMessage("first"), UserMessage("second"))
        assert await _title(bench) == "first"
        await store.rewind_session("s", to=2)
        assert await _title(bench) == "first"
        await store.rewind_session("s", to=1)
        assert await _title(bench) is None
        await store.append("s", UserMessage("third"))
        session = await store.load_session("s")
        assert session is not None
        session.set_metadata("title", "Title")
        await store.save_session(session)
        assert await _title(bench) == "Title"
        del session.metadata["title"]
        session.user_messages[0] = UserMessage("edited")
        await store.save_session(session)
        assert await _title(bench) == "edited"
        session.user_messages.clear()
        await store.save_session(session)
        assert await _title(bench) is None

    @case
    async def test_a_title_follows_an_edit_of_the_newest_part(self, bench: Bench) -> None:
        """A first message that was loaded with last=N and edited or removed gives its title up."""
        session = Session.with_id(ALICE, "s")
        session.add_event("tool", 1)
        session.add_user_message("first")
        session.add_agent_response("answer")
        await bench.store.save_session(session)
        for edited, title in ((UserMessage("edited"), "edited"), (None, None)):
            part = await bench.store.load_session("s", last=2)
            assert part is not None
            part.user_messages[:] = [] if edited is None else [edited]
            await bench.store.save_session(part)
            assert await _title(bench) == title

    @case
    async def test_a_message_that_was_not_stored_gives_no_title(self, bench: Bench) -> None:
        """A message whose idempotency key was there already leaves the title as it is."""
        await bench.store.save_session(Session.with_id(ALICE, "s"))
        await bench.store.append("s", Event("tool", 1), keys=["k"])
        await bench.store.append("s", UserMessage("never stored"), keys=["k"])
        assert await _title(bench) is None
        await bench.store.append("s", UserMessage("again"), UserMessage("first"), keys=["k", None])
        assert await _title(bench) == "first"

    @case
    async def test_a_deleted_session_is_not_listed(self, bench: Bench) -> None:
        """Deleted sessions are neither listed nor counted."""
        await bench.commit(created("s"), created("t"))
        await bench.commit(DeleteSession("s"))
        assert await _ids(bench.engine) == ["t"]
        assert await bench.engine.count_sessions(SessionQuery()) == 1
        assert not await bench.store.session_exists("s")
        assert await bench.store.session_exists("t")


async def _ids(engine: Engine, order: Any = "updated") -> list[str]:
    return [summary.id for summary in await engine.list_sessions(SessionQuery(order=order))]


async def _title(bench: Bench) -> str | None:
    (summary,) = await bench.store.list_sessions()
    return summary.title
