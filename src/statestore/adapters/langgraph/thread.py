"""One thread: whose turn it is to do something with it, and how something is stored in it."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

from statestore.adapters.langgraph.ahead import Ahead
from statestore.adapters.langgraph.noted import Key
from statestore.adapters.langgraph.reading import ReadThread
from statestore.adapters.langgraph.sessions import ThreadSession
from statestore.engine import NewRecord
from statestore.errors import CorruptSession, SessionConflict
from statestore.store.async_store import AsyncStateStore
from statestore.store.beneath import engine_of
from statestore.store.writing import MAX_ATTEMPTS
from statestore.timestamps import now_text

Build = Callable[[AsyncStateStore, Ahead], Coroutine[Any, Any, list[NewRecord]]]


class _Job:
    """Something to be stored, a checkpoint if it has a key, and what became of it."""

    def __init__(self, build: Build, checkpoint: Key | None) -> None:
        self.build = build
        self.checkpoint = checkpoint
        self.error: Exception | None = None
        self.is_over = False
        self.tried_from: int | None = None
        """The first number of a commit of which nobody heard what became."""


class Thread(ReadThread):
    """A thread, as one saver sees it. Everything that is done with it happens in turns."""

    def __init__(self, session: ThreadSession) -> None:
        super().__init__(session)
        self._plain_turn = threading.Lock()
        self._loop_turn: asyncio.Lock | None = None
        self._waiting: deque[_Job] = deque()

    @asynccontextmanager
    async def turn(self, store: AsyncStateStore) -> AsyncGenerator[None]:
        """Held while something is done with the thread: its writes are stored in the order in which they came."""
        if engine_of(store).runs_in == "loop":
            self._loop_turn = self._loop_turn or asyncio.Lock()
            async with self._loop_turn:
                yield
        else:
            with self._plain_turn:  # nothing suspends while it is held
                yield

    async def do(self, store: AsyncStateStore, build: Build, *, checkpoint: Key | None = None) -> None:
        """Store something. What waits for its turn meanwhile is stored with it, in one commit, in the order it came.

        ``build`` gives the records to store, for the thread as it is known, and takes note of them ahead. It is called
        again if somebody else wrote to the thread in between. ``checkpoint`` names what they are, if they are one.
        """
        job = _Job(build, checkpoint)
        self._waiting.append(job)
        try:
            async with self.turn(store):
                if not job.is_over:
                    await self._commit(store, job)
        finally:
            if job in self._waiting:
                self._waiting.remove(job)
        if job.error is not None:
            raise job.error

    async def _commit(self, store: AsyncStateStore, own: _Job) -> None:
        """Store what waits, for the one whose turn it is."""
        jobs: list[_Job] = []
        while self._waiting:
            jobs.append(self._waiting.popleft())
        first: int | None = None
        try:
            if self.view.created is None:
                await self.refresh(store)
            first = self.view.next_seq
            for _ in range(MAX_ATTEMPTS):
                if await self._is_stored(store, jobs):
                    break
                await self.refresh(store)
            else:
                raise SessionConflict(
                    f"thread {self.session.thread_id} changed {MAX_ATTEMPTS} times while it was written to"
                )
        except BaseException:
            self.forget()  # what became of it is not known
            for job in jobs:
                job.tried_from = job.tried_from or first
            self._waiting.extendleft(job for job in reversed(jobs) if job is not own)  # they try for themselves
            raise
        for job in jobs:
            job.is_over = True

    async def _is_stored(self, store: AsyncStateStore, jobs: Sequence[_Job]) -> bool:
        """Store what some jobs build; whether the thread was still as it was known."""
        view = self.view
        ahead = Ahead(view)
        is_new, created = view.created is None, view.created or now_text()
        records: list[NewRecord] = []
        for job in jobs:
            try:
                new = [] if await self._was_stored(store, job) else await job.build(store, ahead)
            except Exception as error:  # noqa: BLE001 - raised where the job came from
                job.error = error
                continue
            job.error = None
            records += new
            ahead.number(len(new))
        if any(isinstance(job.error, CorruptSession) for job in jobs) and not await self.is_as_known(store):
            ahead.take_back()
            return False
        if not records:
            return True
        outcome = await self.session.append(store, records, version=view.version, created=created, is_new=is_new)
        if outcome is None:
            ahead.take_back()
            return False
        view.created, view.version = created, outcome.version
        return True

    async def _was_stored(self, store: AsyncStateStore, job: _Job) -> bool:
        """Whether a checkpoint is there, by a commit of which nobody heard. (Of writes, building them tells.)"""
        if job.checkpoint is None or job.tried_from is None:
            return False
        await self.extend(store, job.tried_from)
        kept = self.view.checkpoints.get(job.checkpoint)
        return kept is not None and kept.seq >= job.tried_from
