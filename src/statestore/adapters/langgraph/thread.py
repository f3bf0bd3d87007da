"""One thread: its session, what is known of it, and how more of it is read. Everything here happens in turns."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import msgspec
from langchain_core.messages import BaseMessage
from msgspec import UNSET

from statestore.adapters.engines import engine_of
from statestore.adapters.langgraph.ahead import Ahead
from statestore.adapters.langgraph.conversation import message_in
from statestore.adapters.langgraph.lists import Element, elements_of, list_note
from statestore.adapters.langgraph.notes import CheckpointNote, Line
from statestore.adapters.langgraph.sessions import ThreadSession
from statestore.adapters.langgraph.values import ValueCodec
from statestore.adapters.langgraph.view import Elements, Kept, View
from statestore.engine import NewRecord
from statestore.errors import CorruptSession, SessionConflict
from statestore.store.async_store import AsyncStateStore
from statestore.store.decoding import decoded_as
from statestore.store.logs import log
from statestore.stored import StoredSession
from statestore.timestamps import now_text

_ATTEMPTS: Final = 1000
_FIRST_READ: Final = 48
"""How many records are read of a thread that nothing is known of; more if they do not tell enough."""


Build = Callable[[AsyncStateStore, Ahead], Coroutine[Any, Any, list[NewRecord]]]


class _Job:
    """Something to be stored, and what became of it."""

    def __init__(self, build: Build) -> None:
        self.build = build
        self.error: Exception | None = None
        self.is_over = False


class Thread:
    """A thread, as one saver sees it."""

    def __init__(self, session: ThreadSession) -> None:
        self.session = session
        self.view = View()
        self._far: dict[int, CheckpointNote] = {}
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

    async def refresh(self, store: AsyncStateStore) -> bool:
        """Bring the view up to date; whether there is such a thread."""
        view = self.view
        if view.created is not None:
            stored = await self.session.read(store, after=view.last_seq - 1)
            if stored is not None and stored.fields.created == view.created:
                found = lines_of(stored)
                if view.last_seq == 0 or (found and found[0][0] == view.last_seq):
                    view.absorb(found[1:] if view.last_seq else found)
                    self._note_state(stored, found)
                    return True
            self.forget()
        stored = await self.session.read(store, last=_FIRST_READ)
        if stored is None:
            return False
        found = lines_of(stored)
        view.created = stored.fields.created
        view.floor = found[0][0] if len(found) >= _FIRST_READ else 1
        view.absorb(found)
        self._note_state(stored, found)
        return True

    def forget(self) -> None:
        """Know nothing: what was known is not so any more."""
        self.view.forget()
        self._far = {}

    async def do(self, store: AsyncStateStore, build: Build) -> None:
        """Store something. What waits for its turn meanwhile is stored with it, in one commit, in the order it came.

        ``build`` gives the records to store, for the thread as it is known, and takes note of them ahead. It is called
        again if somebody else wrote to the thread in between.
        """
        job = _Job(build)
        self._waiting.append(job)
        try:
            async with self.turn(store):
                if not job.is_over:
                    await self._commit(store)
        finally:
            if job in self._waiting:
                self._waiting.remove(job)
        if job.error is not None:
            raise job.error

    async def _commit(self, store: AsyncStateStore) -> None:
        """Store what waits."""
        jobs: list[_Job] = []
        while self._waiting:
            jobs.append(self._waiting.popleft())
        try:
            for _ in range(_ATTEMPTS):
                if await self._is_stored(store, jobs):
                    break
                await self.refresh(store)
            else:
                raise SessionConflict(
                    f"thread {self.session.thread_id} changed {_ATTEMPTS} times while it was written to"
                )
        except BaseException:
            self.forget()  # what became of it is not known
            self._waiting.extendleft(reversed(jobs[1:]))  # the others try for themselves
            raise
        for job in jobs:
            job.is_over = True

    async def _is_stored(self, store: AsyncStateStore, jobs: Sequence[_Job]) -> bool:
        """Store what some jobs build; whether the thread was still as it was known."""
        view = self.view
        if view.created is None:
            await self.refresh(store)
        ahead = Ahead(view)
        is_new, created = view.created is None, view.created or now_text()
        records: list[NewRecord] = []
        for job in jobs:
            try:
                new = await job.build(store, ahead)
            except Exception as error:  # noqa: BLE001 - raised where the job came from
                job.error = error
                continue
            job.error = None
            records += new
            ahead.number(len(new))
        if not records:
            return True
        outcome = await self.session.append(store, records, version=view.version, created=created, is_new=is_new)
        if outcome is None:
            ahead.take_back()
            return False
        view.created, view.version = created, outcome.version
        return True

    def _note_state(self, stored: StoredSession, found: Sequence[tuple[int, Line]]) -> None:
        view = self.view
        view.version, view.next_seq = stored.version, stored.next_seq
        if found:
            view.last_seq = found[-1][0]

    async def extend(self, store: AsyncStateStore, to: int = 1) -> None:
        """Know everything from this number on."""
        view = self.view
        while view.floor > max(to, 1):
            count = max(256, view.next_seq - view.floor)
            stored = await self.session.read(store, before=view.floor, last=max(count, view.floor - to))
            found = [] if stored is None else lines_of(stored)
            view.absorb(found)
            view.floor = found[0][0] if found else 1

    async def find(self, store: AsyncStateStore, ns: str, checkpoint_id: str | None) -> Kept | None:
        """A checkpoint, or the newest one of a namespace, with everything that was written to it."""
        view = self.view
        while True:
            kept = view.newest.get(ns) if checkpoint_id is None else view.checkpoints.get((ns, checkpoint_id))
            is_sure = kept is not None and not (checkpoint_id is None and ns in view.disordered)
            if is_sure or view.floor <= 1:
                break
            await self.extend(store, max(1, view.floor - max(256, view.next_seq - view.floor)))
        if kept is not None and kept.head.since is not None:
            await self.extend(store, kept.head.since)
        return kept

    async def note_at(self, store: AsyncStateStore, seq: int) -> CheckpointNote:
        """The note of the checkpoint in a record."""
        kept = self.view.by_seq.get(seq)
        if kept is not None:
            return kept.opened()
        if seq not in self._far:
            stored = await self.session.read(store, after=seq - 1, before=seq + 1)
            found = View()
            found.absorb([] if stored is None else lines_of(stored))
            if seq not in found.by_seq:
                raise CorruptSession(
                    f"thread {self.session.thread_id}: record {seq} should be a checkpoint, and is none"
                )
            self._far[seq] = found.by_seq[seq].opened()
        return self._far[seq]

    async def elements(self, store: AsyncStateStore, seq: int, channel: str) -> Elements:
        """The elements of the list that a record holds for a channel."""
        view = self.view
        chain: list[tuple[int, Any]] = []
        at: int | None = seq
        elements: Sequence[Element] = ()
        while at is not None:
            if (at, channel) in view.lists:
                if not chain:
                    return view.lists[at, channel]
                elements = view.lists[at, channel].all
                break
            note = list_note((await self.note_at(store, at)).values.get(channel))
            if note is None:
                raise CorruptSession(f"thread {self.session.thread_id}: record {at} should hold {channel!r} as a list")
            if note.root is not None and not chain:
                await self.extend(store, note.root)
            chain.append((at, note))
            at = note.base
        for _, note in reversed(chain):
            elements = elements_of(note, elements)
        found = Elements(elements)
        view.remember_list(seq, channel, found)
        return found

    async def load_messages(self, store: AsyncStateStore, elements: Elements, codec: ValueCodec) -> None:
        """Have the messages of a list in the view."""
        view = self.view
        if elements.roll is not None:
            return
        view.opened = partial(self._message, codec=codec)
        far = [seq for seq in elements.all if isinstance(seq, int) and not view.has_message(seq)]
        if far:
            stored = await self.session.read(store, after=min(far) - 1, before=max(far) + 1)
            wanted = set(far)
            for seq, line in [] if stored is None else lines_of(stored):
                if seq in wanted:
                    view.lines[seq] = line

    def _message(self, seq: int, codec: ValueCodec) -> BaseMessage:
        line = self.view.lines.get(seq)
        if line is None or line.mark is UNSET:
            raise CorruptSession(f"thread {self.session.thread_id}: record {seq} should be a message, and is none")
        try:
            return message_in(line, codec)
        except (msgspec.MsgspecError, ValueError, TypeError, KeyError) as error:
            raise CorruptSession(
                f"thread {self.session.thread_id}: the message in record {seq} cannot be read: {error}"
            ) from error


def lines_of(stored: StoredSession) -> list[tuple[int, Line]]:
    """The records as the saver reads them; one that cannot be read is left out, and hides no other."""
    try:
        return decoded_as(stored.records, Line)
    except (msgspec.DecodeError, ValueError, RecursionError):
        found: list[tuple[int, Line]] = []
        for record in stored.records.in_order():
            try:
                found.append((record.seq, msgspec.json.decode(record.body, type=Line)))
            except (msgspec.DecodeError, ValueError, RecursionError) as error:
                log().warning("session %s: record %d cannot be read, and is left out: %s", stored.id, record.seq, error)
        return found
