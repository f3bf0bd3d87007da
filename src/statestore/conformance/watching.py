"""Watching: every record is told once and in order, whoever wrote it, from any cursor on."""

from __future__ import annotations

from functools import partial
from typing import Any, Final, cast

import pytest

from statestore.conformance.bench import Bench, Opened
from statestore.conformance.changes import (
    ALICE,
    BOB,
    agent,
    appended,
    created,
    event,
    moment,
    put,
    session_of,
    truncated,
    user,
)
from statestore.conformance.contract import Contract, offered
from statestore.conformance.searching import NO_CURSORS
from statestore.engine import Change, ChangeSession, DeleteSession, Requires, Watches
from statestore.errors import InvalidCursor
from statestore.notices import Notice
from statestore.records import AgentResponse, Event, UserMessage
from statestore.session import Session
from statestore.stored import StoredNotice

Told = tuple[str, int]
"""A session's id and a record's number."""

HISTORY: Final[list[Change]] = [
    created("s", user("one"), agent("two"), event("tool", {"n": 3})),
    created("t", user_id=BOB),
    appended("s", user("four"), user("five"), user("six")),
    ChangeSession("t", moment(2), append=(user("one"),), set_metadata={"title": b'"T"'}),
    truncated("s", 4),
    appended("s", user("seven")),
    ChangeSession("s", moment(3), set_fields={"project_id": "p"}),
    truncated("t", 0, agent("two"), agent("three")),
    created("u", *(user(f"u{n}") for n in range(7))),
    DeleteSession("s"),
    created("s", user("anew")),
    DeleteSession("u"),
    appended("t", user("last")),
]


class WatchCases(Contract):
    """What happens is told."""

    @offered("watch")
    async def test_every_record_is_told_once_and_in_order(self, bench: Bench) -> None:
        """A watcher is told each record with its number, its kind and the record itself, and of new sessions."""
        start = await bench.store.change_cursor()
        session = Session.with_id(ALICE, "s")
        session.add_user_message("one")
        session.add_agent_response(AgentResponse("two", seed_id="x"))
        session.add_event("tool", {"a": [1, "é 東京", None]})
        await bench.store.save_session(session)
        said = [UserMessage("four"), Event("tool", [4]), AgentResponse("six")]
        await bench.store.append("s", *said)
        await bench.store.save_json("notes", "n", 1)
        session.add_user_message("seven")
        await bench.store.save_session(session)
        told = await bench.notices(start)
        assert {notice.what for notice in told} == {"record", "session"}
        assert {notice.session_id for notice in told} == {"s"}
        records = [notice for notice in told if notice.what == "record"]
        expected = [entry.record for entry in (await bench.store.timeline("s"))]
        assert [(notice.seq, notice.kind) for notice in records] == list(
            enumerate(["user", "agent", "tool", "user", "tool", "agent", "user"], 1)
        )
        assert [notice.record for notice in records] == expected
        assert all(notice.record is None for notice in told if notice.what != "record")
        stored = (await session_of(bench.engine, "s")).records.in_order()
        found = [notice.record for notice in await _told(bench.watching, start) if notice.what == "record"]
        assert [(r.seq, r.kind, r.body) for r in found if r] == [(r.seq, r.kind, r.body) for r in stored]

    @offered("watch")
    async def test_another_engines_writes_are_told(self, bench: Bench) -> None:
        """What is written through another engine on the same storage is told, and so is what was before a reopening."""
        other = await bench.another()
        start = await bench.store.change_cursor()
        await other.engine.commit([created("s", user("one"))])
        await bench.commit(appended("s", user("two")))
        await other.store.append("s", UserMessage("three"), UserMessage("four"))
        for opened in (None, other):
            assert _records(await bench.notices(start, opened=opened)) == [("s", seq) for seq in range(1, 5)]
        middle = await other.store.change_cursor()
        await bench.reopen()
        assert _records(await bench.notices(start)) == [("s", seq) for seq in range(1, 5)]
        assert await bench.notices(middle) == []
        await bench.store.append("s", UserMessage("five"))
        await bench.crash()
        assert _records(await bench.notices(middle)) == [("s", 5)]

    @offered("watch")
    async def test_every_watcher_sees_everything(self, bench: Bench) -> None:
        """Watchers do not take anything from each other, however far each one is."""
        start = await bench.store.change_cursor()
        cursors = [start] * 3
        seen: list[list[Told]] = [[], [], []]
        await bench.commit(created("s"), created("t"))
        for number in range(12):
            await bench.commit(appended("st"[number % 2], user(f"m{number}")))
            for watcher in range(3):
                if number % (watcher + 1) == 0:
                    page = await bench.watching.read_changes(cursors[watcher])
                    seen[watcher] += _records(page.notices)
                    cursors[watcher] = page.cursor
        for watcher in range(3):
            seen[watcher] += _records(await _told(bench.watching, cursors[watcher]))
            assert seen[watcher] == [("st"[number % 2], number // 2 + 1) for number in range(12)]

    @offered("watch")
    async def test_a_watch_of_one_session_tells_of_that_one(self, bench: Bench) -> None:
        """With a session's id, a watch tells all of that session and nothing of others, also of one yet to come."""
        start = await bench.store.change_cursor()
        for change in HISTORY:
            await bench.commit(change)
        whole = await bench.notices(start)
        for session_id in ("s", "t", "u", "S", "absent"):
            of_one = [notice for notice in whole if notice.session_id == session_id]
            assert await bench.notices(start, session_id) == of_one, session_id
        assert _records(await bench.notices(start, "t")) == [("t", 2), ("t", 3), ("t", 4)]

    @offered("watch")
    async def test_a_users_watch_tells_of_that_user_alone(self, bench: Bench) -> None:
        """A user's store is told nothing of others' sessions, neither what is said nor that they are deleted."""
        start = await bench.store.for_user(BOB).change_cursor()
        await bench.commit(created("a", user("hers")), created("b", user("his"), user_id=BOB))
        await bench.commit(created("s", user("hers"), agent("hers")))
        await bench.commit(appended("b", agent("his")))
        await bench.commit(ChangeSession("a", moment(1), set_metadata={"n": b"1"}))
        await bench.commit(truncated("a", 0))
        await bench.commit(DeleteSession("a"))
        his = await bench.notices(start, user_id=BOB)
        assert {notice.session_id for notice in his} == {"b"}
        assert {notice.what for notice in his} == {"record", "session"}
        assert _records(his) == [("b", 1), ("b", 2)]
        assert await bench.notices(start, "a", user_id=BOB) == await bench.notices(start, "s", user_id=BOB) == []
        hers = await bench.notices(start, user_id=ALICE)
        assert {notice.session_id for notice in hers} == {"a", "s"}
        assert [notice.session_id for notice in hers if notice.what == "deleted"] == ["a"]

        middle = await bench.store.change_cursor()
        await bench.commit(DeleteSession("s"))
        await bench.commit(created("s", user("now his"), user_id=BOB))
        his = await bench.notices(middle, user_id=BOB)
        assert [notice.what for notice in his if notice.what != "session"] == ["record"]
        assert _records(his) == [("s", 1)]
        assert [notice.what for notice in await bench.notices(middle, user_id=ALICE)] == ["deleted"]
        await bench.commit(DeleteSession("s"))
        assert [notice.what for notice in await bench.notices(middle, user_id=ALICE)] == ["deleted"]
        assert (await bench.notices(middle, user_id=BOB))[-1].what == "deleted"
        assert await bench.notices(start, user_id="nobody") == []

    @offered("watch")
    async def test_a_watch_goes_on_after_any_notice(self, bench: Bench) -> None:
        """From the cursor of each notice on, exactly what comes after it is told, in a batch of records too."""
        start = await bench.store.change_cursor()
        for change in HISTORY:
            await bench.commit(change)
        other = await bench.another()
        for session_id in (None, "s", "t", "u"):
            whole = await bench.notices(start, session_id)
            for place, notice in enumerate(whole, 1):
                rest = await bench.notices(notice.cursor, session_id, opened=other if place % 2 else None)
                assert rest == whole[place:], (session_id, place)
            assert whole

    @offered("watch")
    async def test_pages_of_any_size_tell_the_same(self, bench: Bench) -> None:
        """However few notices are asked for at a time, all of them come, each once."""
        start = await bench.store.change_cursor()
        for change in HISTORY:
            await bench.commit(change)
        for number in range(20):
            await bench.commit(appended("t", user(f"m{number}")))
        whole = await _told(bench.watching, start)
        for limit in (1, 2, 3, 7, 1000):
            assert await _told(bench.watching, start, limit=limit) == whole, limit
            for session_id, user_id in (("s", None), ("t", None), (None, ALICE), (None, BOB), ("u", ALICE)):
                told = await _told(bench.watching, start, limit=limit, session_id=session_id, user_id=user_id)
                ids = {session_id} if session_id is not None else {"s", "u"} if user_id == ALICE else {"t"}
                assert told == [notice for notice in whole if notice.session_id in ids], (limit, session_id, user_id)
        last = await bench.watching.change_cursor()
        page = await bench.watching.read_changes(last, limit=1)
        assert (page.notices, page.cursor) == ([], last)
        tail = [notice.cursor for notice in whole if notice.session_id == "t"][-21]
        assert len((await bench.watching.read_changes(tail, limit=5)).notices) <= 10

    @offered("watch")
    async def test_a_cursor_is_a_moment(self, bench: Bench) -> None:
        """What was before change_cursor is not told after it, and everything since is, however late one asks."""
        cursors = [await bench.store.change_cursor()]
        await bench.commit(created("s"))
        for number in range(6):
            cursors.append(await bench.store.change_cursor())
            await bench.commit(appended("s", user(f"m{number}")))
        for number, cursor in enumerate(cursors):
            assert isinstance(cursor, str)  # pyright: ignore[reportUnnecessaryIsInstance]
            expected = [("s", seq) for seq in range(max(number, 1), 7)]
            assert _records(await bench.notices(cursor)) == expected

    @offered("watch")
    async def test_a_rewind_is_told(self, bench: Bench) -> None:
        """A rewind is told with the number of the last record left, before what is said after it."""
        await bench.commit(created("s", *(user(f"m{n}") for n in range(5))))
        start = await bench.store.change_cursor()
        await bench.store.rewind_session("s", to=3)
        (notice,) = _notable(await bench.notices(start))
        assert (notice.session_id, notice.what, notice.seq, notice.record) == ("s", "rewound", 3, None)
        await bench.store.append("s", UserMessage("after"))
        session = await bench.store.load_session("s")
        assert session is not None
        session.user_messages[2] = UserMessage("edited")
        await bench.store.save_session(session)
        stored = (await session_of(bench.engine, "s")).records.in_order()
        told = _notable(await bench.notices(start))
        assert [(n.what, n.seq) for n in told if n.what == "rewound"] == [("rewound", 3), ("rewound", 2)]
        replica = [1, 2, 3, 4, 5]
        for notice in told:
            assert notice.seq is not None
            replica = [seq for seq in replica if seq <= notice.seq] + [notice.seq] * (notice.what == "record")
        assert replica == [record.seq for record in stored]

    @offered("watch")
    async def test_a_change_of_fields_is_told(self, bench: Bench) -> None:
        """A session that is created, or whose fields or metadata change, is told as such, without a record."""
        steps: list[Change] = [
            created("s"),
            ChangeSession("s", moment(1), set_fields={"active_seed_id": "x"}),
            ChangeSession("s", moment(2), set_metadata={"title": b'"T"'}),
            ChangeSession("s", moment(3), unset_metadata=("title",)),
        ]
        for change in steps:
            cursor = await bench.store.change_cursor()
            await bench.commit(change)
            told = await bench.notices(cursor)
            assert told, change
            assert {(n.session_id, n.what, n.seq, n.kind, n.record) for n in told} == {
                ("s", "session", None, None, None)
            }

    @offered("watch")
    async def test_a_deletion_is_told(self, bench: Bench) -> None:
        """A deleted session is told, whoever deletes it and how; one that was not there is not."""
        await bench.commit(*(created(name, user("x"), user_id=BOB if name == "d" else ALICE) for name in "abcd"))
        start = await bench.store.change_cursor()
        assert await bench.store.delete_session("a")
        assert not await bench.store.delete_session("a")
        await bench.commit(DeleteSession("never there"))
        await (await bench.another()).engine.commit([DeleteSession("b")])
        await bench.store.erase_user(BOB)
        told = await bench.notices(start)
        assert [(notice.session_id, notice.what) for notice in told] == [
            ("a", "deleted"),
            ("b", "deleted"),
            ("d", "deleted"),
        ]
        assert await bench.notices(start, "b") == [told[1]]

    @offered("watch")
    async def test_a_session_created_anew_is_told_as_new(self, bench: Bench) -> None:
        """After a deletion, a session with the same id is told from its first record on, and never mixed up."""
        start = await bench.store.change_cursor()
        await bench.commit(created("s", user("old one"), user("old two"), user("old three")))
        middle = await bench.store.change_cursor()
        await bench.commit(DeleteSession("s"))
        await bench.commit(created("s", agent("new one")))
        await bench.commit(appended("s", agent("new two")))
        for cursor in (start, middle):
            told = _notable(await bench.notices(cursor))
            assert [notice.what for notice in told].count("deleted") == 1
            place = [notice.what for notice in told].index("deleted")
            assert [(n.seq, n.kind) for n in told[place + 1 :]] == [(1, "agent"), (2, "agent")]
            assert all(notice.kind == "user" for notice in told[:place])
            assert cursor == start or place == 0

    @offered("watch")
    async def test_what_is_acknowledged_twice_is_told_once(self, bench: Bench) -> None:
        """A record whose key was there already is not told again; those around it are."""
        start = await bench.store.change_cursor()
        await bench.commit(created("s", user("one", key="k1"), user("one", key="k1")))
        await bench.store.append("s", UserMessage("x"), UserMessage("two"), UserMessage("y"), keys=["k1", "k2", "k2"])
        await bench.store.append("s", UserMessage("x"), keys=["k1"])
        await bench.store.append(
            "s", UserMessage("three"), UserMessage("x"), UserMessage("four"), keys=[None, "k1", None]
        )
        assert _records(await bench.notices(start)) == [("s", seq) for seq in range(1, 5)]

    @offered("watch")
    async def test_what_did_not_happen_is_not_told(self, bench: Bench) -> None:
        """Batches that fail, reads, searches and documents tell nothing."""
        await bench.commit(created("s", user("one")))
        start = await bench.store.change_cursor()
        failing: list[Change] = [created("s", user("no"), requires=Requires(absent=True))]
        await bench.failures_of(*failing)
        await bench.commit(put("n"))
        await bench.store.load_session("s")
        await bench.store.list_sessions()
        if bench.offers("search"):
            await bench.store.search_sessions("one")
        assert await bench.notices(start) == []
        await bench.store.append("s", UserMessage("two"))
        assert _records(await bench.notices(start)) == [("s", 2)]

    @offered("watch")
    async def test_what_is_no_cursor_of_a_watch_is_refused(self, bench: Bench) -> None:
        """A cursor that is none raises InvalidCursor, from the store and from the engine."""
        await bench.commit(created("s", user("hello")))
        (summary,) = await bench.store.list_sessions()
        good = await bench.store.change_cursor()
        wrong = [cursor for cursor in NO_CURSORS if cursor != b"0:0".hex()]
        for cursor in (*wrong, summary.cursor, f"{good} ", good[:-1]):
            with pytest.raises(InvalidCursor):
                await bench.watching.read_changes(cursor)
            with pytest.raises(InvalidCursor):
                await bench.notices(cursor)
        nonsense: list[Any] = [5, b"x", object()]
        for cursor in nonsense:
            with pytest.raises(InvalidCursor):
                bench.store.watch(after=cursor)
        assert await bench.notices(good) == []

    @offered("watch")
    async def test_watchers_miss_nothing_while_others_write(self, bench: Bench) -> None:
        """While several write at once, each watcher is told every record once, in the order of its session."""
        await bench.commit(created("s"), created("t"))
        other = await bench.another()
        start = await bench.store.change_cursor()
        writers, rounds = 3, 8
        done: list[int] = []

        async def write(writer: int) -> list[Told]:
            store = (bench.store, other.store)[writer % 2]
            try:
                for number in range(rounds):
                    await store.append("st"[(number + writer) % 2], UserMessage(f"{writer} {number}"), Event("tool"))
            finally:
                done.append(writer)
            return []

        async def watch(opened: Opened, session_id: str | None) -> list[Told]:
            told: list[Told] = []
            after, engine = start, cast("Watches", opened.engine)
            while True:
                is_over = len(done) == writers
                page = await engine.read_changes(after, session_id=session_id)
                if is_over and page.cursor == after:
                    return told
                told += _records(page.notices)
                after = page.cursor
                await bench.breathe()

        ours = Opened(bench.engine, bench.store)
        watchers = [partial(watch, ours, None), partial(watch, other, None), partial(watch, other, "s")]
        results = await bench.together(*(partial(write, writer) for writer in range(writers)), *watchers)
        for told in results[writers:]:
            for session_id in {session_id for session_id, _ in told}:
                seqs = [seq for name, seq in told if name == session_id]
                assert seqs == list(range(1, writers * rounds + 1))
        assert [len(told) for told in results[writers:]] == [2 * writers * rounds] * 2 + [writers * rounds]


def _records(notices: list[Notice] | list[StoredNotice]) -> list[Told]:
    return [(notice.session_id, notice.seq or 0) for notice in notices if notice.what == "record"]


def _notable(notices: list[Notice]) -> list[Notice]:
    """Without those that may be told any number of times."""
    return [notice for notice in notices if notice.what != "session"]


async def _told(engine: Watches, after: str, **options: Any) -> list[StoredNotice]:
    """Everything that an engine tells, page by page."""
    told: list[StoredNotice] = []
    for _ in range(10_000):
        page = await engine.read_changes(after, **options)
        if page.cursor == after:
            assert not page.notices, "a page that tells something ends elsewhere"
            return told
        told += page.notices
        after = page.cursor
    raise AssertionError("the pages never end")
