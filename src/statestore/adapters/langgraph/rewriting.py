"""Taking checkpoints out of the middle of a thread, and copying threads.

A session's records can only be cut off at its end, so a thread that loses checkpoints is written anew in one commit:
the checkpoints that stay, whole, with their writes and the messages that they need. It carries the version that was
read, and is worked out again if somebody wrote meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, cast

from langgraph.checkpoint.base import CheckpointMetadata
from msgspec import UNSET
from msgspec.structs import replace

from statestore.adapters.identifiers import birth_metadata
from statestore.adapters.langgraph.lists import list_note, whole_list
from statestore.adapters.langgraph.noted import Kept, Key
from statestore.adapters.langgraph.notes import (
    FRAMEWORK,
    CheckpointNote,
    WritesNote,
    note_text,
    ts_told_by,
)
from statestore.adapters.langgraph.reading import lines_of
from statestore.adapters.langgraph.references import SAID, said_in, said_in_input
from statestore.adapters.langgraph.sessions import ThreadSession
from statestore.adapters.langgraph.shortening import short
from statestore.adapters.langgraph.thread import Thread
from statestore.adapters.langgraph.view import View
from statestore.engine import NewRecord
from statestore.errors import SessionConflict
from statestore.jsontext import joined_members, members
from statestore.labels import opening_of
from statestore.records import USER, UserMessage, decode_body
from statestore.store.async_store import AsyncStateStore
from statestore.store.writing import MAX_ATTEMPTS
from statestore.stored import StoredRecord, StoredSession
from statestore.timestamps import nanoseconds

Chosen = Callable[[View], Iterable[Key]]
"""Which checkpoints of a thread stay, decided on everything there is."""


async def keep_only(store: AsyncStateStore, thread: Thread, chosen: Chosen) -> None:
    """Remove all checkpoints of a thread but the chosen ones; the session goes if none is left."""
    async with thread.turn(store):
        for _ in range(MAX_ATTEMPTS):
            thread.forget()
            stored = await thread.session.read(store)
            if stored is None:
                return
            await thread.look(store, partial(thread.extend, store))
            if thread.view.version != stored.version:
                continue
            staying = set(chosen(thread.view))
            if staying == set(thread.view.checkpoints):
                return
            if not staying and _is_all_ours(stored):
                if await thread.session.delete(store, stored):
                    thread.forget()
                    return
                continue
            records = await _Rewriting(store, thread, staying).records(stored)
            outcome = await thread.session.rewrite(store, records, stored, opening=_opening(records))
            thread.forget()
            if outcome is not None:
                return
    raise SessionConflict(f"thread {thread.session.thread_id} changed {MAX_ATTEMPTS} times while it was pruned")


def _is_all_ours(stored: StoredSession) -> bool:
    """Whether a session holds nothing but what savers wrote."""
    return all(line.mark is not UNSET for _, line in lines_of(stored))


class _Rewriting:
    """The records of a thread, worked out anew."""

    def __init__(self, store: AsyncStateStore, thread: Thread, staying: set[Key]) -> None:
        self._store = store
        self._thread = thread
        self._staying = staying
        self._moved: dict[int, int] = {}
        self._named: set[int] = set()

    async def records(self, stored: StoredSession) -> list[NewRecord]:
        """All records that stay, with the numbers that they will have."""
        view = self._thread.view
        kept = {view.checkpoints[key].seq: view.checkpoints[key] for key in self._staying}
        writes = {
            found.seq: view.note_of_writes(found, key) for key in self._staying for found in view.writes.get(key, ())
        }
        notes = {*view.by_seq, *view.writes_by_seq}
        needed = await self._needed(kept.values())
        for note in writes.values():
            needed.update(abs(number) for _, _, value in note.writes for number in said_in(value))
        new: list[NewRecord] = []
        is_dropping = False
        for record in stored.records.in_order():
            seq = record.seq
            if seq in kept:
                body = await self._whole(kept[seq], record.body)
            elif seq in writes:
                body = self._renamed(writes[seq], record.body)
            elif seq in notes:
                continue
            else:
                mark = view.lines.get(seq)
                is_aside = mark is None and b'"langgraph":false' in record.body
                if not is_aside:
                    is_dropping = mark is not None and seq not in needed
                if is_dropping:
                    continue
                body = record.body
            self._moved[seq] = stored.next_seq + len(new)
            new.append(_renumbered(record, body, self._moved[seq]))
        return new

    async def _needed(self, kept: Iterable[Kept]) -> set[int]:
        """The messages that checkpoints hold."""
        needed: set[int] = set()
        for one in kept:
            for channel, at in _places(self._thread.view.note_of(one), one.seq).items():
                value = (await self._thread.note_at(self._store, at)).values[channel]
                if list_note(value) is not None:
                    found = (await self._thread.elements(self._store, at, channel)).all
                    needed.update(abs(element) for element in found if isinstance(element, int))
                needed.update(abs(number) for numbers in said_in_input(channel, value).values() for number in numbers)
        return needed

    def _now(self, number: int) -> int:
        """The number that a message will have."""
        return self._moved[number] if number > 0 else -self._moved[-number]

    def _ids(self, numbers: Iterable[int]) -> dict[int, str]:
        """The ids that messages were given, for those whose ids nobody has noted yet."""
        new = {-number for number in numbers if number < 0} - self._named
        self._named |= new
        return {self._moved[seq]: short(self._thread.view.names[seq]) for seq in sorted(new)}

    async def _whole(self, kept: Kept, body: bytes) -> bytes:
        """A checkpoint's record with all its values in it."""
        note = self._thread.view.note_of(kept)
        values: dict[str, Any] = {}
        said: set[int] = set()
        for channel, at in _places(note, kept.seq).items():
            value = (await self._thread.note_at(self._store, at)).values[channel]
            if list_note(value) is not None:
                found = (await self._thread.elements(self._store, at, channel)).all
                said.update(element for element in found if isinstance(element, int))
                moved = [self._now(element) if isinstance(element, int) else element for element in found]
                value = whole_list(moved)
            for name, numbers in said_in_input(channel, value).items():
                said.update(numbers)
                value = {**value, name: {SAID: [self._now(number) for number in numbers]}}
            values[channel] = value
        written = self._thread.view.writes.get((note.ns, note.id), ())
        early = [self._moved[found.seq] for found in written if found.seq in self._moved]
        ts = "" if note.ts == ts_told_by(kept.moment) else note.ts
        since = min(early, default=None)
        return _with_note(body, replace(note, ts=ts, values=values, at={}, since=since, ids=self._ids(said)))

    def _renamed(self, note: WritesNote, body: bytes) -> bytes:
        """The record of some writes, with the messages that they name under their new numbers."""
        said = [number for _, _, value in note.writes for number in said_in(value)]
        writes = [
            (idx, channel, {SAID: [self._now(number) for number in said_in(value)]} if said_in(value) else value)
            for idx, channel, value in note.writes
        ]
        return _with_note(body, replace(note, writes=writes, ids=self._ids(said)))


def _with_note(body: bytes, note: CheckpointNote | WritesNote) -> bytes:
    return joined_members(members(body) | {FRAMEWORK: note_text(note)})


def _places(note: CheckpointNote, seq: int) -> dict[str, int]:
    return dict.fromkeys(note.values, seq) | note.at


def _renumbered(record: StoredRecord, body: bytes, seq: int) -> NewRecord:
    said = decode_body(record.kind, body)
    opening = opening_of(said.content) if isinstance(said, UserMessage) else None
    return NewRecord(record.kind, body, nanoseconds(said.timestamp_text), record.key, seq, opening)


def _opening(records: Iterable[NewRecord]) -> str | None:
    return next((record.opening for record in records if record.kind == USER), None)


def heads(metadata_of: Callable[[CheckpointNote], CheckpointMetadata], view: View) -> Iterable[Key]:
    """The newest checkpoint of each namespace, and the older ones that a delta channel of it is built on."""
    for ns, newest in view.newest.items():
        key: Key | None = (ns, newest.id)
        waiting = _deltas(metadata_of(view.note_of(newest)))
        while key is not None and key in view.checkpoints:
            yield key
            note = view.note_of(view.checkpoints[key])
            waiting -= {*note.values, *note.at}
            key = (ns, note.parent) if waiting and note.parent is not None else None


def _deltas(metadata: CheckpointMetadata) -> set[str]:
    """The channels of a checkpoint that are built from what was written to its ancestors."""
    counters: Any = metadata.get("counters_since_delta_snapshot")
    return set(cast("dict[str, Any]", counters)) if isinstance(counters, dict) else set()


async def copy_thread(store: AsyncStateStore, source: ThreadSession, target: ThreadSession) -> None:
    """Copy a thread with everything in it; nothing happens if there is none. `SessionConflict` if the target exists."""
    if await source.read(store, last=0) is None:
        return
    await store.fork_session(source.id, new_id=target.id)
    if birth := birth_metadata(target.thread_id):
        await store.update_session_with(target.id, lambda copy: copy.metadata.update(birth), last=0)
