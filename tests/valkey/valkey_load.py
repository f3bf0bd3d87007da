"""Many tasks that append, each to sessions of its own or all to one, and what must be there afterwards."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from statestore import AsyncStateStore, Session, UserMessage
from statestore.errors import StoreUnavailable

TASKS = 8


class Load:
    """Appends until it is told to stop, and remembers what was acknowledged."""

    def __init__(self, store: AsyncStateStore, session_ids: list[str]) -> None:
        self._store = store
        self._ids = session_ids
        self._is_on = True
        self._count = 0
        self._more = asyncio.Condition()
        self.acknowledged: Counter[str] = Counter()
        self.unknown: set[str] = set()

    async def run(self, meanwhile: Callable[[], Awaitable[object]]) -> None:
        """Append while something happens."""
        writers = [asyncio.create_task(self._write(number)) for number in range(TASKS)]
        try:
            await self.progress()
            await meanwhile()
            await self.progress()
        finally:
            self._is_on = False
            await asyncio.gather(*writers)

    async def progress(self, count: int = 40) -> None:
        """Wait until so many more were acknowledged."""
        goal = self._count + count
        async with self._more:
            await self._more.wait_for(lambda: self._count >= goal)

    async def _write(self, writer: int) -> None:
        number = 0
        while self._is_on:
            text = f"{writer} {number}"
            try:
                await self._store.append(self._ids[writer % len(self._ids)], UserMessage(text))
            except StoreUnavailable:
                self.unknown.add(text)
            else:
                self.acknowledged[text] += 1
                self._count += 1
                async with self._more:
                    self._more.notify_all()
            number += 1

    async def assert_exactly_once(self, store: AsyncStateStore) -> None:
        """Everything that was acknowledged is there, once; what was not may be there, once."""
        found: Counter[str] = Counter()
        for session_id in self._ids:
            session = await store.load_session(session_id)
            assert session is not None
            found.update(message.content for message in session.user_messages)
            seqs = [entry.seq for entry in await store.timeline(session_id)]
            assert seqs == list(range(1, len(seqs) + 1))
        assert max(found.values()) == 1
        missing = set(self.acknowledged) - set(found)
        assert not missing, f"{len(missing)} acknowledged messages are lost"
        assert set(found) - set(self.acknowledged) <= self.unknown


@asynccontextmanager
async def loaded(url: str, *, sessions: int = 2) -> AsyncIterator[tuple[Load, AsyncStateStore]]:
    """A store with some sessions, and a load for them."""
    async with AsyncStateStore.open(url) as store:
        ids = [f"s{number}" for number in range(sessions)]
        for session_id in ids:
            await store.save_session(Session.with_id("alice", session_id))
        yield Load(store, ids), store
