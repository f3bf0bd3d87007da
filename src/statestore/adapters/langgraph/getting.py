"""Reading checkpoints: a stored note as the tuple that the framework knows."""

from __future__ import annotations

from collections.abc import Container, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import msgspec
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, CheckpointTuple, PendingWrite

from statestore.adapters.langgraph.lists import list_note
from statestore.adapters.langgraph.noted import Kept
from statestore.adapters.langgraph.notes import CheckpointNote
from statestore.adapters.langgraph.references import INPUT, SAID, from_input, said_in, said_in_input
from statestore.adapters.langgraph.thread import Thread
from statestore.adapters.langgraph.values import ValueCodec
from statestore.adapters.langgraph.view import Elements
from statestore.errors import CorruptSession
from statestore.store.async_store import AsyncStateStore

if TYPE_CHECKING:
    from langgraph.checkpoint.base import DeltaChannelHistory  # since 4.1


class Getter:
    """Reads for one saver."""

    def __init__(self, codec: ValueCodec) -> None:
        self._codec = codec

    async def get(
        self, store: AsyncStateStore, thread: Thread, ns: str, checkpoint_id: str | None
    ) -> CheckpointTuple | None:
        """A checkpoint, or the newest one of a namespace."""
        async with thread.turn(store):
            return await self._found(store, thread, ns, checkpoint_id)

    async def get_known(
        self, store: AsyncStateStore, thread: Thread, ns: str, checkpoint_id: str
    ) -> CheckpointTuple | None:
        """A checkpoint that the thread is known to have, if it still has it; nothing is read if nothing is needed."""
        async with thread.turn(store):
            kept = thread.view.checkpoints.get((ns, checkpoint_id))
            with suppress(CorruptSession):  # it may have been rewritten since
                if kept is not None:
                    return await self.tuple_of(store, thread, kept)
            return await self._found(store, thread, ns, checkpoint_id)

    async def _found(
        self, store: AsyncStateStore, thread: Thread, ns: str, checkpoint_id: str | None
    ) -> CheckpointTuple | None:
        async def found() -> CheckpointTuple | None:
            kept = await thread.find(store, ns, checkpoint_id)
            return None if kept is None else await self.tuple_of(store, thread, kept)

        return await thread.look(store, found)

    async def tuple_of(self, store: AsyncStateStore, thread: Thread, kept: Kept) -> CheckpointTuple:
        """A checkpoint with its values and its writes."""
        await thread.know_what_it_needs(store, kept)
        note = thread.view.note_of(kept)
        values: dict[str, Any] = {}
        for channel in (*note.values, *note.at):
            values[channel] = await self._value(store, thread, kept.seq, note, channel)
        more = {key: self._codec.decoded(value) for key, value in note.more.items()}
        checkpoint = {
            "v": note.v,
            "ts": note.ts,
            "id": note.id,
            "channel_values": values,
            "channel_versions": dict(note.versions),
            "versions_seen": {node: dict(seen) for node, seen in note.seen.items()},
            "updated_channels": None if note.updated is None else list(note.updated),
            **more,
        }
        thread_id = thread.session.thread_id
        return CheckpointTuple(
            config=config_of(thread_id, note.ns, note.id),
            checkpoint=cast("Checkpoint", checkpoint),
            metadata=self.metadata_of(note),
            parent_config=None if note.parent is None else config_of(thread_id, note.ns, note.parent),
            pending_writes=await self.writes_of(store, thread, note),
        )

    async def history(
        self, store: AsyncStateStore, thread: Thread, ns: str, checkpoint_id: str | None, channels: Sequence[str]
    ) -> dict[str, DeltaChannelHistory]:
        """What was written to channels on the way to a checkpoint, back to the nearest stored value of each."""

        async def found() -> dict[str, DeltaChannelHistory]:
            histories: dict[str, DeltaChannelHistory] = {channel: {"writes": []} for channel in channels}
            kept = await thread.find(store, ns, checkpoint_id)
            waiting = set(channels)
            while waiting and kept is not None and (parent := thread.view.note_of(kept).parent) is not None:
                kept = await thread.find(store, ns, parent)
                if kept is None:
                    break
                note = thread.view.note_of(kept)
                for write in reversed(await self.writes_of(store, thread, note, waiting)):
                    histories[write[1]]["writes"].append(write)
                for channel in waiting.intersection((*note.values, *note.at)):
                    histories[channel]["seed"] = await self._value(store, thread, kept.seq, note, channel)
                    waiting.discard(channel)
            for history in histories.values():
                history["writes"].reverse()
            return histories

        async with thread.turn(store):
            return await thread.look(store, found) or {channel: {"writes": []} for channel in channels}

    def metadata_of(self, note: CheckpointNote) -> CheckpointMetadata:
        """A checkpoint's metadata."""
        return cast("CheckpointMetadata", {key: self._codec.decoded(value) for key, value in note.metadata.items()})

    async def writes_of(
        self, store: AsyncStateStore, thread: Thread, note: CheckpointNote, channels: Container[str] | None = None
    ) -> list[PendingWrite]:
        """What was written to a checkpoint, in the order in which the framework applies it."""
        found: dict[tuple[str, int], tuple[str, str, Any]] = {}
        for writes in await thread.writes_of(store, (note.ns, note.id), note.since):
            for idx, channel, value in writes.writes:
                if idx < 0 or (writes.task, idx) not in found:
                    found[writes.task, idx] = (writes.path, channel, value)
        ordered = sorted(found.items(), key=lambda entry: (entry[1][0], *entry[0]))
        return [
            (task, channel, await self._written(store, thread, note, channel, value))
            for (task, _), (_, channel, value) in ordered
            if channels is None or channel in channels
        ]

    async def _written(
        self, store: AsyncStateStore, thread: Thread, note: CheckpointNote, channel: str, value: Any
    ) -> Any:
        if value.__class__ is dict and SAID in value:
            return await self._said(store, thread, note, said_in(value))
        if value.__class__ is dict and INPUT in value:
            value = from_input(note, channel, value[INPUT])
        return self._codec.decoded(value)

    async def _value(self, store: AsyncStateStore, thread: Thread, seq: int, note: CheckpointNote, channel: str) -> Any:
        if channel not in note.values:
            seq = note.at[channel]
            note = await thread.note_at(store, seq)
        stored = note.values[channel]
        if list_note(stored) is None:
            said = said_in_input(channel, stored)
            decoded = self._codec.decoded(stored)
            for name, numbers in said.items():
                decoded[name] = await self._said(store, thread, note, numbers)
            return decoded
        elements = await thread.elements(store, seq, channel)
        await thread.load_messages(store, elements, self._codec)
        messages = thread.view.lend(elements)
        if len(messages) == len(elements.all):
            return messages
        waiting = iter(messages)
        return [
            next(waiting) if isinstance(element, int) else self._codec.decoded(msgspec.json.decode(element))
            for element in elements.all
        ]

    async def _said(
        self, store: AsyncStateStore, thread: Thread, note: CheckpointNote, numbers: list[int]
    ) -> list[BaseMessage]:
        """Messages that were written to a checkpoint. If it is the newest, the next one may give them their ids."""
        view, elements, key = thread.view, Elements(numbers), (note.ns, note.id)
        await thread.load_messages(store, elements, self._codec)
        newest = view.newest.get(note.ns)
        for seq in numbers if newest is not None and newest.key == key else ():
            if seq > 0 and seq not in view.names and not (held := view.held(seq)).id:
                view.expect(seq, key, held)
        return view.lend(elements)


def config_of(thread_id: str, ns: str, checkpoint_id: str) -> RunnableConfig:
    """How the framework names a checkpoint."""
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}}
