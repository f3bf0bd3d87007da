"""Pointing out whom a change concerns: whoever is not pointed out has nothing to be told."""

from __future__ import annotations

from functools import partial
from typing import Final, NamedTuple, cast

import pytest

from statestore.conformance.bench import Bench
from statestore.conformance.changes import ALICE, BOB, created, truncated, user
from statestore.conformance.contract import Contract, offered
from statestore.conformance.searching import NO_CURSORS
from statestore.conformance.watching import HISTORY
from statestore.engine import Change, Changed, DeleteSession, PointsOut, Watches
from statestore.errors import CursorExpired, InvalidCursor
from statestore.notices import Notice
from statestore.records import UserMessage

CHANGES: Final[list[Change]] = [
    *HISTORY,
    DeleteSession("t"),
    created("t", user("now hers")),
    truncated("t", 0),
    DeleteSession("t"),
    DeleteSession("s"),
]
"""A history in which sessions are deleted, and one is of another user afterwards."""


class Watcher(NamedTuple):
    """Somebody who watches one session, or one user's, or one of one user."""

    session_id: str | None = None
    user_id: str | None = None

    def is_concerned_by(self, changed: Changed) -> bool:
        """Whether there may be something to be told."""
        is_mine = self.session_id is None or self.session_id in changed.sessions
        return is_mine and (self.user_id is None or self.user_id in changed.users)

    async def told(self, bench: Bench, after: str) -> list[Notice]:
        """Everything that there is to be told after a cursor."""
        return await bench.notices(after, self.session_id, user_id=self.user_id)


WATCHERS: Final = [Watcher(name, user) for name in (None, "s", "t", "u", "absent") for user in (None, ALICE, BOB, "c")]


class PointCases(Contract):
    """Which sessions changed, and whose they are."""

    @offered("point")
    async def test_who_is_not_pointed_out_has_nothing_to_be_told(self, bench: Bench) -> None:
        """From any cursor up to the one where a look ends, be it records, fields, rewinds or deletions."""
        start = before = await bench.watching.change_cursor()
        other = await bench.another()
        for number, change in enumerate(CHANGES):
            await (bench, other)[number % 2].engine.commit([change])
            for cursor in (before, start):
                looks = await _looks(bench, cursor)
                assert looks, f"nobody is concerned by {change}"
                for began, changed in looks:
                    for watcher in WATCHERS:
                        if not watcher.is_concerned_by(changed):
                            missed = await watcher.told(bench, began)
                            assert missed == await watcher.told(bench, changed.cursor), (watcher, change)
            before = await bench.watching.change_cursor()

    @offered("point")
    async def test_looks_end_where_there_is_nothing_left_to_be_told(self, bench: Bench) -> None:
        """Where nothing happened, a look points nobody out and ends where it began; after a reopening, too."""
        start = await bench.watching.change_cursor()
        assert await _look(bench, start) == Changed(frozenset(), frozenset(), start)
        for change in CHANGES:
            await bench.commit(change)
        _, last = (await _looks(bench, start))[-1]
        assert await bench.notices(last.cursor) == []
        await bench.reopen()
        assert await _look(bench, last.cursor) == Changed(frozenset(), frozenset(), last.cursor)
        await bench.commit(created("s", user("one")))
        await bench.crash()
        ((_, changed),) = await _looks(bench, last.cursor)
        assert Watcher("s", ALICE).is_concerned_by(changed)

    @offered("point")
    async def test_nobody_is_pointed_out_after_what_is_no_cursor(self, bench: Bench) -> None:
        """A cursor that is none raises InvalidCursor, and one of another store what read_changes raises for it."""
        await bench.commit(created("s", user("hello")))
        good = await bench.watching.change_cursor()
        wrong = [cursor for cursor in NO_CURSORS if cursor != b"0:0".hex()]
        for cursor in (*wrong, f"{good} ", good[:-1]):
            with pytest.raises(InvalidCursor):
                await _look(bench, cursor)
        foreign = await self._cursor_of_another_store(bench)
        try:
            await bench.watching.read_changes(foreign)
        except (InvalidCursor, CursorExpired) as error:
            with pytest.raises(type(error)):
                await _look(bench, foreign)
        assert (await _look(bench, good)).cursor == good

    async def _cursor_of_another_store(self, bench: Bench) -> str:
        """A cursor of the store in another place, which is the same one if there is one for all places."""
        engine = bench.face.fit(self.make_engine(bench.place.with_name("another")))
        await engine.open()
        try:
            return await cast("Watches", engine).change_cursor()
        finally:
            await engine.close()

    @offered("point")
    async def test_who_reads_only_when_it_is_pointed_out_misses_nothing(self, bench: Bench) -> None:
        """While several write at once, whoever reads only what concerns it is told every record of it once."""
        await bench.commit(created("s"), created("t", user_id=BOB), created("of others", user_id="c"))
        other = await bench.another()
        start = await bench.watching.change_cursor()
        writers, rounds = 3, 20
        done: list[int] = []

        async def write(writer: int) -> list[int]:
            store = (bench.store, other.store)[writer % 2]
            try:
                for number in range(rounds):
                    for session_id in ("s", "of others", "t", "of others"):
                        await store.append(session_id, UserMessage(f"{writer} {number}"))
            finally:
                done.append(writer)
            return []

        async def watch(watcher: Watcher) -> list[int]:
            told: list[int] = []
            cursor = start
            while True:
                is_over = len(done) == writers
                changed = await _look(bench, cursor)
                if watcher.is_concerned_by(changed):
                    page = await bench.watching.read_changes(cursor, **watcher._asdict())
                    told += [notice.seq for notice in page.notices if notice.seq is not None]
                    cursor = page.cursor
                elif changed.cursor != cursor:
                    cursor = changed.cursor
                elif is_over:
                    return told
                await bench.breathe()

        watchers = [Watcher("s"), Watcher(user_id=BOB), Watcher("t", BOB)]
        works = [*(partial(write, writer) for writer in range(writers)), *(partial(watch, each) for each in watchers)]
        results = await bench.together(*works)
        assert results[writers:] == [list(range(1, writers * rounds + 1))] * len(watchers)


async def _look(bench: Bench, after: str) -> Changed:
    return await cast("PointsOut", bench.engine).changed_since(after)


async def _looks(bench: Bench, after: str) -> list[tuple[str, Changed]]:
    """One look after the other from a cursor on, each with where it began, until nothing happened."""
    looks: list[tuple[str, Changed]] = []
    for _ in range(10_000):
        changed = await _look(bench, after)
        if changed.cursor == after:
            return looks
        looks.append((after, changed))
        after = changed.cursor
    raise AssertionError("the looks never end")
