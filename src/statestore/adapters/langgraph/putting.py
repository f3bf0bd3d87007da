"""Storing checkpoints and writes: what is new goes into one commit, at the version that it was worked out at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import WRITES_IDX_MAP, Checkpoint
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT
from msgspec import Raw

from statestore.adapters.langgraph.ahead import Ahead
from statestore.adapters.langgraph.lists import Element, changed_list, is_chain_long, list_note, whole_list
from statestore.adapters.langgraph.noted import Kept, KeptWrites, Key
from statestore.adapters.langgraph.notes import (
    CHECKPOINT,
    WRITES,
    CheckpointNote,
    Head,
    WritesNote,
    head_of,
    moment_said_by,
    note_record,
    note_text,
)
from statestore.adapters.langgraph.references import SAID, START, as_input
from statestore.adapters.langgraph.spoken import Spoken, is_kept_as_it_is
from statestore.adapters.langgraph.thread import Thread
from statestore.adapters.langgraph.values import ValueCodec
from statestore.adapters.langgraph.view import Elements, View
from statestore.engine import NewRecord
from statestore.store.async_store import AsyncStateStore

_FAR: Final = 512
_SMALL: Final = 512
"""A small value that lies this many records back is stored anew, so that a checkpoint's values are never far apart."""
_KNOWN: Final = ("v", "ts", "id", "channel_values", "channel_versions", "versions_seen", "updated_channels")


class Putter:
    """Stores for one saver."""

    def __init__(self, codec: ValueCodec, messages_key: str) -> None:
        self._codec = codec
        self._messages_key = messages_key

    async def put(
        self,
        store: AsyncStateStore,
        thread: Thread,
        ns: str,
        parent: str | None,
        checkpoint: Checkpoint,
        metadata: dict[str, Any],
        new_versions: dict[str, Any],
    ) -> None:
        """Store a checkpoint."""

        async def build(store: AsyncStateStore, ahead: Ahead) -> list[NewRecord]:
            draft = _Draft(thread, self._codec, self._messages_key if ns == "" else None, (ns, parent or ""))
            note = await draft.drawn_up(store, ns, parent, checkpoint, metadata, new_versions)
            return draft.records(note, checkpoint["ts"], metadata, ahead)

        await thread.do(store, build, checkpoint=(ns, checkpoint["id"]))

    async def put_writes(
        self,
        store: AsyncStateStore,
        thread: Thread,
        ns: str,
        checkpoint_id: str,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
    ) -> None:
        """Store what a task wrote. A write that is there already is kept, a special one takes the place of an older."""

        async def build(store: AsyncStateStore, ahead: Ahead) -> list[NewRecord]:
            view, key = thread.view, (ns, checkpoint_id)
            known = {(n.task, write[0]) for n in await thread.writes_of(store, key) for write in n.writes}
            kept = view.checkpoints.get(key)
            if kept is not None:
                await thread.know_what_it_needs(store, kept)
            spoken = Spoken(view, self._codec, key)
            note = WritesNote(task_id, checkpoint_id, ns, task_path, [])
            for position, (channel, value) in enumerate(writes):
                idx = WRITES_IDX_MAP.get(channel, position)
                if idx < 0 or (task_id, idx) not in known:
                    note.writes.append((idx, channel, self._written(channel, value, note, spoken, view)))
            if not note.writes:
                return []
            note.ids, seq = spoken.ids, spoken.next_seq
            like = view.models.like_writes(note, seq, None if kept is None else kept.seq)
            body = note_text(like or note)
            new = [*spoken.records(), note_record(*self._shown(note), body, seq)]
            spoken.note(ahead)
            ahead.writes(key, KeptWrites(seq, body, _head(body)))
            if like is None:
                view.models.add(seq, note, len(body))
            return new

        await thread.do(store, build)

    def _written(self, channel: str, value: Any, note: WritesNote, spoken: Spoken, view: View) -> Any:
        """A written value, encoded. What is said in the conversation, or was the checkpoint's input, is only named."""
        key = note.ns, note.checkpoint
        is_conversation = note.ns == "" and channel == self._messages_key and self._codec.is_readable
        if is_conversation and value.__class__ is list and all(map(is_kept_as_it_is, value)):
            return {SAID: [spoken.written(message, key) for message in value]}
        encoded = self._codec.encoded(value)
        kept = view.checkpoints.get(key)
        return encoded if kept is None else as_input(view.note_of(kept), channel, encoded)

    def _shown(self, note: WritesNote) -> tuple[str, Any]:
        """What a person sees of writes: errors and interrupts by their value, others by their number."""
        if self._codec.is_readable:
            for _, channel, value in note.writes:
                if channel in (ERROR, INTERRUPT):
                    return channel.strip("_"), value
        return WRITES, {"writes": len(note.writes)}


class _Draft:
    """One checkpoint on its way into a thread as it is known now."""

    def __init__(self, thread: Thread, codec: ValueCodec, messages_key: str | None, follows: Key) -> None:
        self._thread = thread
        self._view = thread.view
        self._codec = codec
        self._messages_key = messages_key
        self._spoken = Spoken(thread.view, codec, follows)
        self._lists: dict[str, Elements] = {}
        self._parent: Kept | None = None

    async def drawn_up(
        self,
        store: AsyncStateStore,
        ns: str,
        parent: str | None,
        checkpoint: Checkpoint,
        metadata: dict[str, Any],
        new_versions: dict[str, Any],
    ) -> CheckpointNote:
        """The note, with each value that its parent does not have."""
        self._parent = kept = None if parent is None else await self._thread.find(store, ns, parent)
        known_versions = {} if kept is None else self._view.note_of(kept).versions
        versions = checkpoint["channel_versions"]
        note = CheckpointNote(
            v=checkpoint["v"],
            id=checkpoint["id"],
            ns=ns,
            parent=parent,
            versions=dict(versions),
            seen={node: dict(seen) for node, seen in checkpoint["versions_seen"].items()},
            updated=None if (updated := checkpoint.get("updated_channels")) is None else list(updated),
            more={key: self._codec.encoded(value) for key, value in checkpoint.items() if key not in _KNOWN},
            metadata={key: self._codec.encoded(value) for key, value in metadata.items()},
        )
        for channel, value in checkpoint["channel_values"].items():
            at = self._place_of(kept, channel)
            is_unchanged = channel not in new_versions and known_versions.get(channel) == versions.get(channel)
            if at is not None and is_unchanged:
                await self._refer(store, note, channel, at)
            elif value.__class__ is list:
                note.values[channel] = await self._list(store, channel, value, at)
            elif channel == START:
                note.values[channel] = self._input(value, (ns, note.id))
            else:
                note.values[channel] = self._codec.encoded(value)
        await self._look_back(store, note)
        return note

    async def _look_back(self, store: AsyncStateStore, note: CheckpointNote) -> None:
        """Note what was there before the checkpoint: a higher id, writes to it, or the checkpoint itself."""
        key = note.ns, note.id
        same = await self._thread.find(store, *key)
        note.is_late = self._view.highest >= note.id
        if same is not None:
            note.since = self._view.note_of(same).since or same.seq
        else:
            note.since = min((kept.seq for kept in self._view.writes.get(key, ())), default=None)

    async def _refer(self, store: AsyncStateStore, note: CheckpointNote, channel: str, at: int) -> None:
        """Point to a value that is stored already; one that is small and far away is stored anew."""
        if self._view.next_seq - at > _FAR:
            value = (await self._thread.note_at(store, at)).values[channel]
            if list_note(value) is None and len(note_text(value)) < _SMALL:
                note.values[channel] = value
                return
        note.at[channel] = at

    def _input(self, value: Any, key: Key) -> Any:
        """A checkpoint's input. Messages for the conversation are said in it from now on, and only named here."""
        name = self._messages_key
        said: Any = value.get(name) if value.__class__ is dict and self._codec.is_readable else None
        if name is None or said.__class__ is not list or not said or not all(map(is_kept_as_it_is, said)):
            return self._codec.encoded(value)
        others: dict[str, Any] = self._codec.encoded({**value, name: None})
        if name not in others:  # it is not stored as it is
            return self._codec.encoded(value)
        return {**others, name: {SAID: [self._spoken.written(message, key) for message in said]}}

    async def _list(self, store: AsyncStateStore, channel: str, value: list[Any], at: int | None) -> Any:
        """A list, as a change of what it was in the parent."""
        known = None if at is None else list_note((await self._thread.note_at(store, at)).values.get(channel))
        base = Elements(())
        if at is not None and known is not None:
            base = await self._thread.elements(store, at, channel)
            await self._thread.load_messages(store, base, self._codec)
        roll = self._view.roll_of(base)
        same = 0 if roll is None else roll.common(value)
        elements = self._elements(value, base, same, is_conversation=channel == self._messages_key)
        self._lists[channel] = elements
        if at is None or known is None or is_chain_long(base.depth + 1, len(value)):
            return whole_list(elements.all)
        elements.depth = base.depth + 1
        return changed_list(elements.all, base.all, at, same)

    def _elements(self, value: list[Any], base: Elements, same: int, *, is_conversation: bool) -> Elements:
        """Which elements a list has: those of its base as far as they are the same, then others."""
        new = [self._element(item, is_conversation=is_conversation) for item in value[same:]]
        if base.roll is None or not all(isinstance(element, int) for element in new):
            return Elements([*base.all[:same], *new])
        return Elements([*base.all[:same], *new], base.roll.grown(same, [self._spoken.held(seq) for seq in new]))

    def _element(self, item: Any, *, is_conversation: bool) -> Element:
        if isinstance(item, BaseMessage) and item.type != "remove":
            seq = self._spoken.listed(item) if is_conversation else self._spoken.number_of(item)
            if seq is not None:
                return seq
        return note_text(self._codec.encoded(item))

    def records(self, note: CheckpointNote, ts: str, metadata: dict[str, Any], ahead: Ahead) -> list[NewRecord]:
        """The checkpoint with the messages that it brings, noted in the view."""
        view, seq = self._view, self._spoken.next_seq
        moment = moment_said_by(ts)
        note.ts, note.ids = "" if moment is not None else ts, self._spoken.ids
        like = view.models.like_checkpoint(note, seq, None if self._parent is None else self._parent.seq)
        body = note_text(like or note)
        note.ts = ts
        shown = {key: metadata[key] for key in ("step", "run_id") if isinstance(metadata.get(key), (int, str))}
        new = [*self._spoken.records(), note_record(CHECKPOINT, shown, body, seq, moment)]
        ahead.checkpoint(Kept(seq, body, _head(body), moment or "", Raw(note_text(shown)), note))
        if like is None:
            view.models.add(seq, note, len(body))
        self._spoken.note(ahead)
        for channel, elements in self._lists.items():
            ahead.elements(seq, channel, elements)
        return new

    def _place_of(self, kept: Kept | None, channel: str) -> int | None:
        """Where a checkpoint's value of a channel lies."""
        if kept is None:
            return None
        note = self._view.note_of(kept)
        return kept.seq if channel in note.values else note.at.get(channel)


def _head(body: bytes) -> Head:
    head = head_of(body)
    assert head is not None
    return head
