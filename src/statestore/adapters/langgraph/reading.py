"""Reading a thread: what is known of it is brought up to date, and more of it is read when that is needed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Final, TypeVar

import msgspec
from langchain_core.messages import BaseMessage
from msgspec import UNSET

from statestore.adapters.langgraph.conversation import message_in
from statestore.adapters.langgraph.lists import Element, elements_of, list_note
from statestore.adapters.langgraph.noted import Kept, Key, Noted
from statestore.adapters.langgraph.notes import CheckpointNote, Line, ListNote, WritesNote
from statestore.adapters.langgraph.sessions import ThreadSession
from statestore.adapters.langgraph.values import ValueCodec
from statestore.adapters.langgraph.view import Elements, View
from statestore.errors import CorruptSession
from statestore.store.async_store import AsyncStateStore
from statestore.store.decoding import decoded_as
from statestore.store.logs import log
from statestore.store.reading import understanding
from statestore.stored import StoredSession

T = TypeVar("T")
_FIRST_READ: Final = 48
"""How many records are read of a thread that nothing is known of; more if they do not tell enough."""
_NEXT_READ: Final = 256
"""How many more are read then, or as many as are known if that is more."""
_APART: Final = 256
"""Messages with more records than this between them are read apart."""
_NAMED_WITHIN: Final = 32
"""A message that is given its id later mostly is within so many records."""


class ReadThread:
    """A thread's session, and what is known of it. Whoever reads has the thread's turn."""

    def __init__(self, session: ThreadSession) -> None:
        self.session = session
        self.view = View()

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
            view.forget()
        stored = await self.session.read(store, last=_FIRST_READ)
        if stored is None:
            return False
        found = lines_of(stored)
        numbers = numbers_of(stored)
        view.created = stored.fields.created
        view.floor = numbers[0] if len(numbers) >= _FIRST_READ else 1
        view.absorb(found)
        self._note_state(stored, found)
        return True

    async def look(self, store: AsyncStateStore, at: Callable[[], Awaitable[T]]) -> T | None:
        """Look at the thread as it is now; anew if it was rewritten meanwhile. ``None`` if there is no such thread."""
        is_there = await self.refresh(store)
        while is_there:
            version = self.view.version
            try:
                return await at()
            except CorruptSession:
                self.forget()
                is_there = await self.refresh(store)
                if self.view.version == version:  # it is really so
                    raise
        return None

    def forget(self) -> None:
        """Know nothing: what was known is not so any more."""
        self.view.forget()

    def _note_state(self, stored: StoredSession, found: Sequence[tuple[int, Line]]) -> None:
        view = self.view
        view.version, view.next_seq = stored.version, stored.next_seq
        if found:
            view.last_seq = found[-1][0]

    async def extend(self, store: AsyncStateStore, to: int = 1) -> None:
        """Know everything from this number on; `CorruptSession` if the thread was rewritten meanwhile."""
        view = self.view
        while view.floor > max(to, 1):
            count = max(_NEXT_READ, view.next_seq - view.floor)
            stored = await self.session.read(store, before=view.floor, last=max(count, view.floor - to))
            if (stored is None or stored.version != view.version) and not await self.is_as_known(store):
                raise CorruptSession(f"thread {self.session.thread_id} was rewritten while it was read")
            view.absorb([] if stored is None else lines_of(stored))
            view.floor = 1 if stored is None else next(iter(numbers_of(stored)), 1)

    async def deepen(self, store: AsyncStateStore) -> None:
        """Know twice as much of the thread."""
        await self.extend(store, self.view.floor - max(_NEXT_READ, self.view.next_seq - self.view.floor))

    async def is_as_known(self, store: AsyncStateStore) -> bool:
        """Whether what is known of the thread is still so: if its last record is gone, somebody rewrote it."""
        view = self.view
        stored = await self.session.read(store, after=view.last_seq - 1, before=view.last_seq + 1)
        return stored is not None and stored.fields.created == view.created and bool(numbers_of(stored))

    async def find(self, store: AsyncStateStore, ns: str, checkpoint_id: str | None) -> Kept | None:
        """A checkpoint, or the newest one of a namespace."""
        view = self.view
        if checkpoint_id is None:
            while view.may_lie_deeper(view.newest[ns].id if ns in view.newest else ""):
                await self.deepen(store)
            kept = view.newest.get(ns)
        else:
            while (kept := view.checkpoints.get((ns, checkpoint_id))) is None and view.may_lie_deeper(checkpoint_id):
                await self.deepen(store)
        if kept is not None:
            await self.know_what_it_needs(store, kept)
        return kept

    async def note_at(self, store: AsyncStateStore, seq: int) -> CheckpointNote:
        """The note of the checkpoint in a record."""
        kept = await self._known(store, seq)
        await self.know_what_it_needs(store, kept)
        return self.view.note_of(kept)

    async def know_what_it_needs(self, store: AsyncStateStore, kept: Kept) -> None:
        """Have in the view what is needed to open a checkpoint's note."""
        for seq in kept.needs:
            await self._known(store, seq)

    async def writes_of(self, store: AsyncStateStore, key: Key, since: int | None = None) -> list[WritesNote]:
        """The notes of a checkpoint's writes, as they came; ``since`` is where they begin if that is before it."""
        view = self.view
        if since is not None:
            await self.extend(store, since)
        for kept in view.writes.get(key, ()):
            for seq in kept.needs:
                if seq not in view.writes_by_seq:
                    view.writes_by_seq |= (await self._noted_at(store, seq)).writes_by_seq
        return view.writes_of(key)

    async def _known(self, store: AsyncStateStore, seq: int) -> Kept:
        """The checkpoint in a record, wherever that is."""
        if self.view.known(seq) is None:
            self.view.far |= (await self._noted_at(store, seq)).by_seq
        kept = self.view.known(seq)
        if kept is None:
            raise CorruptSession(f"thread {self.session.thread_id}: record {seq} should be a checkpoint, and is none")
        return kept

    async def _noted_at(self, store: AsyncStateStore, seq: int) -> Noted:
        stored = await self.session.read(store, after=seq - 1, before=seq + 1)
        found = Noted()
        found.absorb([] if stored is None else lines_of(stored))
        return found

    async def elements(self, store: AsyncStateStore, seq: int, channel: str) -> Elements:
        """The elements of the list that a record holds for a channel."""
        view = self.view
        chain: list[ListNote] = []
        at: int | None = seq
        elements: Sequence[Element] = ()
        depth = -1
        while at is not None:
            if (at, channel) in view.lists:
                if not chain:
                    return view.lists[at, channel]
                elements, depth = view.lists[at, channel].all, view.lists[at, channel].depth
                break
            if chain and at < view.floor:
                await self.deepen(store)
            note = list_note((await self.note_at(store, at)).values.get(channel))
            if note is None:
                raise CorruptSession(f"thread {self.session.thread_id}: record {at} should hold {channel!r} as a list")
            chain.append(note)
            at = note.base
        for note in reversed(chain):
            elements = elements_of(note, elements)
        found = Elements(elements, depth=depth + len(chain))
        view.remember_list(seq, channel, found)
        return found

    async def load_messages(self, store: AsyncStateStore, elements: Elements, codec: ValueCodec) -> None:
        """Have the messages of a list in the view."""
        view = self.view
        if elements.roll is not None:
            return
        view.opened = partial(self._message, codec=codec)
        for far in _stretches(self._missing(elements)):
            await self._read_messages(store, far, min(far[-1] + _NAMED_WITHIN, view.floor))
        if missing := self._missing(elements):  # they may have been given their ids anywhere before the floor
            await self._read_messages(store, missing, view.floor)

    def _missing(self, elements: Elements) -> list[int]:
        """The records whose messages are not in the view yet."""
        return sorted({abs(seq) for seq in elements.numbers() if not self.view.has_message(seq)})

    async def _read_messages(self, store: AsyncStateStore, wanted: Sequence[int], end: int) -> None:
        """Have some messages in the view, and the ids that messages were given before a record."""
        numbers = set(wanted)
        stored = await self.session.read(store, after=wanted[0] - 1, before=max(wanted[-1] + 1, end))
        for seq, line in [] if stored is None else lines_of(stored):
            if seq in numbers:
                self.view.lines[seq] = line
            elif line.content is UNSET and line.mark is not UNSET:
                self.view.note_names_in(bytes(line.mark))

    def _message(self, seq: int, codec: ValueCodec) -> BaseMessage:
        line, name = self.view.lines.get(abs(seq)), self.view.names.get(-seq)
        if line is None or line.mark is UNSET or (seq < 0 and name is None):
            raise CorruptSession(f"thread {self.session.thread_id}: record {abs(seq)} should be a message, and is none")
        try:
            return message_in(line, codec, name)
        except (msgspec.MsgspecError, ValueError, TypeError, KeyError) as error:
            raise CorruptSession(
                f"thread {self.session.thread_id}: the message in record {abs(seq)} cannot be read: {error}"
            ) from error


def lines_of(stored: StoredSession) -> list[tuple[int, Line]]:
    """The records as the saver reads them; one that cannot be read is left out, and hides no other."""
    try:
        return decoded_as(stored.records, Line)
    except (msgspec.DecodeError, ValueError, RecursionError):
        found: list[tuple[int, Line]] = []
        with understanding(stored.id):
            records = stored.records.in_order()
        for record in records:
            try:
                found.append((record.seq, msgspec.json.decode(record.body, type=Line)))
            except (msgspec.DecodeError, ValueError, RecursionError) as error:
                log().warning("session %s: record %d cannot be read, and is left out: %s", stored.id, record.seq, error)
        return found


def _stretches(numbers: Iterable[int]) -> list[list[int]]:
    """Numbers that ascend, cut where they are far apart."""
    found: list[list[int]] = []
    for number in numbers:
        if not found or number - found[-1][-1] > _APART:
            found.append([])
        found[-1].append(number)
    return found


def numbers_of(stored: StoredSession) -> list[int]:
    """The numbers of the records, in order, also of those that cannot be read."""
    return stored.records.numbering.in_order()
