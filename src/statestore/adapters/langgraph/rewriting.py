"""Taking checkpoints out of the middle of a thread, and copying threads.

A session's records can only be cut off at its end, so a thread that loses checkpoints is written anew in one commit:
the checkpoints that stay, whole, with their writes and the messages that they need. It carries the version that was
read, and is worked out again if somebody wrote meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from msgspec import UNSET
from msgspec.structs import replace

from statestore.adapters.langgraph.lists import LIST, list_note, whole_list
from statestore.adapters.langgraph.notes import (
    FRAMEWORK,
    CheckpointNote,
    WritesNote,
    decode_writes,
    note_text,
    ts_told_by,
)
from statestore.adapters.langgraph.references import SAID, said_in
from statestore.adapters.langgraph.sessions import ThreadSession
from statestore.adapters.langgraph.thread import Thread, lines_of
from statestore.adapters.langgraph.view import Kept, Key, View
from statestore.engine import NewRecord
from statestore.errors import SessionConflict
from statestore.jsontext import joined_members, members
from statestore.labels import opening_of
from statestore.records import USER, UserMessage, decode_body
from statestore.store.async_store import AsyncStateStore
from statestore.stored import StoredRecord, StoredSession
from statestore.timestamps import nanoseconds

_ATTEMPTS: Final = 1000
Chosen = Callable[[View], Iterable[Key]]
"""Which checkpoints of a thread stay, decided on everything there is."""


async def keep_only(store: AsyncStateStore, thread: Thread, chosen: Chosen) -> None:
    """Remove all checkpoints of a thread but the chosen ones; the session goes if none is left."""
    async with thread.turn(store):
        for _ in range(_ATTEMPTS):
            thread.forget()
            stored = await thread.session.read(store)
            if stored is None:
                return
            await thread.refresh(store)
            await thread.extend(store)
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
    raise SessionConflict(f"thread {thread.session.thread_id} changed {_ATTEMPTS} times while it was pruned")


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

    async def records(self, stored: StoredSession) -> list[NewRecord]:
        """All records that stay, with the numbers that they will have."""
        view = self._thread.view
        kept = {view.checkpoints[key].seq: view.checkpoints[key] for key in self._staying}
        writes = {seq: decode_writes(raw) for key in self._staying for seq, raw in view.writes.get(key, ())}
        notes = set(view.by_seq) | {seq for found in view.writes.values() for seq, _ in found}
        needed = await self._needed(kept.values())
        needed.update(number for note in writes.values() for _, _, value in note.writes for number in said_in(value))
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
            for channel, at in _places(one).items():
                note = await self._thread.note_at(self._store, at)
                if list_note(note.values[channel]) is not None:
                    found = (await self._thread.elements(self._store, at, channel)).all
                    needed.update(element for element in found if isinstance(element, int))
        return needed

    async def _whole(self, kept: Kept, body: bytes) -> bytes:
        """A checkpoint's record with all its values in it."""
        note = kept.opened()
        values: dict[str, Any] = {}
        for channel, at in _places(kept).items():
            value = (await self._thread.note_at(self._store, at)).values[channel]
            if list_note(value) is not None:
                found = (await self._thread.elements(self._store, at, channel)).all
                moved = [self._moved[element] if isinstance(element, int) else element for element in found]
                value = {LIST: whole_list(moved)}
            values[channel] = value
        early = [
            self._moved[seq] for seq, _ in self._thread.view.writes.get((note.ns, note.id), ()) if seq in self._moved
        ]
        ts = "" if note.ts == ts_told_by(kept.moment) else note.ts
        whole = replace(note, ts=ts, values=values, at={}, since=min(early, default=None))
        return _with_note(body, whole)

    def _renamed(self, note: WritesNote, body: bytes) -> bytes:
        """The record of some writes, with the messages that they name under their new numbers."""
        if not any(said_in(value) for _, _, value in note.writes):
            return body
        writes = [
            (idx, channel, {SAID: [self._moved[seq] for seq in said_in(value)]} if said_in(value) else value)
            for idx, channel, value in note.writes
        ]
        return _with_note(body, replace(note, writes=writes))


def _with_note(body: bytes, note: CheckpointNote | WritesNote) -> bytes:
    return joined_members(members(body) | {FRAMEWORK: note_text(note)})


def _places(kept: Kept) -> dict[str, int]:
    note = kept.opened()
    return dict.fromkeys(note.values, kept.seq) | note.at


def _renumbered(record: StoredRecord, body: bytes, seq: int) -> NewRecord:
    said = decode_body(record.kind, body)
    opening = opening_of(said.content) if isinstance(said, UserMessage) else None
    return NewRecord(record.kind, body, nanoseconds(said.timestamp_text), record.key, seq, opening)


def _opening(records: Iterable[NewRecord]) -> str | None:
    return next((record.opening for record in records if record.kind == USER), None)


def heads(view: View) -> Iterable[Key]:
    """The newest checkpoint of each namespace, and the older ones that a delta channel of it is built on."""
    for ns, newest in view.newest.items():
        key: Key | None = (ns, newest.id)
        waiting = _deltas(newest.opened())
        while key is not None and key in view.checkpoints:
            yield key
            note = view.checkpoints[key].opened()
            waiting -= set(_places(view.checkpoints[key]))
            key = (ns, note.parent) if waiting and note.parent is not None else None


def _deltas(note: CheckpointNote) -> set[str]:
    """The channels of a checkpoint that are built from what was written to its ancestors."""
    counters = note.metadata.get("counters_since_delta_snapshot")
    return set(cast("dict[str, Any]", counters)) if isinstance(counters, dict) else set()


async def copy_thread(store: AsyncStateStore, source: ThreadSession, target: ThreadSession) -> None:
    """Copy a thread with everything in it; nothing happens if there is none. `SessionConflict` if the target exists."""
    stored = await source.read(store)
    if stored is None:
        return
    await store.fork_session(source.id, new_id=target.id)
