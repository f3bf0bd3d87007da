"""Notes that are like an earlier one: a graph does much the same turn after turn, and only the difference is stored.

A note that may be told so is first put into terms that do not move: records are named by how far back they are,
versions by how far below the highest one. What is then equal to the same part of an earlier, whole note is left out.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import cache, partial
from itertools import chain
from typing import Any, Final, cast

from msgspec import UNSET, Raw

from statestore.adapters.langgraph.lists import MORE
from statestore.adapters.langgraph.notes import CheckpointNote, LikeCheckpoint, LikeWrites, WritesNote, note_text
from statestore.adapters.langgraph.references import SAID
from statestore.adapters.langgraph.shortening import full, short
from statestore.adapters.langgraph.values import ESCAPED

_REACH: Final = 1024
"""No note is like one that is further back than this."""
_LARGEST: Final = 4096
"""A note with more bytes than this is stored whole; the little that it has in common with others does not matter."""
_MODELS: Final = 8
_FARTHEST: Final = 2**53
_MEMBERS: Final = ("versions", "seen", "more", "metadata", "values", "at")
_OTHERS: Final = ""
_STEP: Final = "step"
Parts = dict[tuple[str, str], bytes]
"""A note cut up: the JSON of each part, by the member that it belongs to, and its key there."""
_Known = OrderedDict[int, Callable[[], Parts]]


class Models:
    """The latest whole notes of a thread, for others to be like."""

    def __init__(self) -> None:
        self._checkpoints: _Known = OrderedDict()
        self._writes: _Known = OrderedDict()

    def add(self, seq: int, note: CheckpointNote | WritesNote, size: int) -> None:
        """A whole note of so many bytes was stored, or read."""
        known = self._checkpoints if isinstance(note, CheckpointNote) else self._writes
        if seq not in known and size <= _LARGEST:
            cut = _checkpoint_parts if isinstance(note, CheckpointNote) else _writes_parts
            known[seq] = cache(partial(cut, note, seq))  # only if somebody asks
            if len(known) > _MODELS:
                known.popitem(last=False)

    def drop(self, seq: int) -> None:
        """There is no such note after all."""
        self._checkpoints.pop(seq, None)
        self._writes.pop(seq, None)

    def like_checkpoint(self, note: CheckpointNote, seq: int, parent: int | None) -> LikeCheckpoint | None:
        """A checkpoint told by its likeness to one of these; ``None`` if that is not worth it."""
        top = _top(note)
        if top is None or (parent is None) is not (note.parent is None):
            return None
        like, parts = self._nearest(self._checkpoints, seq, _checkpoint_parts(note, seq))
        if like is None:
            return None
        told: dict[str, Any] = {}
        for (member, key), text in sorted(parts.items()):
            if member:
                told.setdefault(member, {})[key] = Raw(text)
            else:
                told[key] = Raw(text)
        return LikeCheckpoint(
            id=short(note.id),
            like=seq - like,
            top=None if note.metadata.get(_STEP).__class__ is int else top,
            up=None if parent is None else seq - parent,
            ns=note.ns,
            ts=note.ts,
            since=None if note.since is None else seq - note.since,
            is_late=note.is_late,
            ids=note.ids,
            **told,
        )

    def like_writes(self, note: WritesNote, seq: int, checkpoint: int | None) -> LikeWrites | None:
        """Writes told by their likeness to one of these; ``None`` if that is not worth it."""
        like, parts = self._nearest(self._writes, seq, _writes_parts(note, seq))
        if like is None:
            return None
        told: dict[str, Any] = {member: Raw(text) for (member, _), text in parts.items()}
        if checkpoint is None:
            told |= {"checkpoint": short(note.checkpoint), "ns": note.ns}
        else:
            told["to"] = seq - checkpoint
        return LikeWrites(task=short(note.task), like=seq - like, ids=note.ids, **told)

    def _nearest(self, known: _Known, seq: int, parts: Parts) -> tuple[int | None, Parts]:
        """Which note has most in common, and what is left to tell; it must have nothing that the new one has not."""
        if sum(map(len, parts.values())) > _LARGEST:
            return None, parts
        best, least, cost = None, parts, _cost(parts)
        worth = cost[0] / 2
        for at, model in reversed(known.items()):
            if seq - at > _REACH:
                continue
            its_parts = model()
            if its_parts.keys() <= parts.keys():
                left = dict(parts.items() - its_parts.items())
                if not left:
                    return at, left
                if (its_cost := _cost(left)) < cost:
                    best, least, cost = at, left, its_cost
        return (best, least) if cost[0] < worth else (None, parts)


def checkpoint_like(
    note: LikeCheckpoint,
    id: str,
    seq: int,
    model: CheckpointNote,
    model_seq: int,
    parent: str | None,
    step: int | None,
) -> CheckpointNote:
    """The checkpoint that is like another one but for what its note says, and the step that its event shows."""
    members = _told(model, model_seq)
    for member in _MEMBERS:
        members[member] |= getattr(note, member)
    top = note.top if note.top is not None else (step or 0) - members["metadata"].get(_STEP, 0)
    return CheckpointNote(
        v=model.v if note.v is UNSET else note.v,
        id=id,
        ns=note.ns,
        parent=parent,
        ts=note.ts,
        versions=_moved(members["versions"], top),
        seen={node: _moved(seen, top) for node, seen in members["seen"].items()},
        updated=model.updated if note.updated is UNSET else note.updated,
        more=members["more"],
        metadata=_with_step(members["metadata"], top),
        values={channel: _placed(value, seq) for channel, value in members["values"].items()},
        at={channel: seq - back for channel, back in members["at"].items()},
        since=None if note.since is None else seq - note.since,
        is_late=note.is_late,
        ids=note.ids,
    )


def writes_like(
    note: LikeWrites, seq: int, model: WritesNote, model_seq: int, checkpoint: tuple[str, str]
) -> WritesNote:
    """The writes that are like others but for what their note says."""
    writes = _turned_writes(model, model_seq) if note.writes is UNSET else note.writes
    return WritesNote(
        task=full(note.task),
        checkpoint=checkpoint[1],
        ns=checkpoint[0],
        path=model.path if note.path is UNSET else note.path,
        writes=[(idx, channel, _turned(value, seq)) for idx, channel, value in writes],
        ids=note.ids,
    )


def _checkpoint_parts(note: CheckpointNote, seq: int) -> Parts:
    parts = {
        (member, key): note_text(value) for member, values in _told(note, seq).items() for key, value in values.items()
    }
    return {**parts, (_OTHERS, "v"): note_text(note.v), (_OTHERS, "updated"): note_text(note.updated)}


def _writes_parts(note: WritesNote, seq: int) -> Parts:
    return {("path", ""): note_text(note.path), ("writes", ""): note_text(_turned_writes(note, seq))}


def _cost(parts: Parts) -> tuple[int, int]:
    """How much there is to tell; first without values, which may well be new every time."""
    sizes = [(member == "values", len(text)) for (member, _), text in parts.items()]
    return sum(size for is_value, size in sizes if not is_value), sum(size for _, size in sizes)


def _told(note: CheckpointNote, seq: int) -> dict[str, dict[str, Any]]:
    """The members of a note in terms that do not move."""
    top = _top(note) or 0
    return {
        "versions": _moved(note.versions, -top),
        "seen": {node: _moved(seen, -top) for node, seen in note.seen.items()},
        "more": dict(note.more),
        "metadata": _with_step(note.metadata, -top),
        "values": {channel: _placed(value, seq) for channel, value in note.values.items()},
        "at": {channel: seq - at for channel, at in note.at.items()},
    }


def _top(note: CheckpointNote) -> int | None:
    """The highest version; ``None`` where numbers are so far apart that their distances are none."""
    found = [number for number in _numbers(note) if number.__class__ is int]
    return None if any(abs(number) > _FARTHEST for number in found) else max(found, default=0)


def _numbers(note: CheckpointNote) -> Iterable[Any]:
    return chain(note.versions.values(), *(seen.values() for seen in note.seen.values()), [note.metadata.get(_STEP)])


def _moved(versions: dict[str, Any], by: int) -> dict[str, Any]:
    return {key: number + by if number.__class__ is int else number for key, number in versions.items()}


def _with_step(metadata: dict[str, Any], by: int) -> dict[str, Any]:
    step: Any = metadata.get(_STEP)
    return {**metadata, _STEP: step + by} if step.__class__ is int else dict(metadata)


def _placed(value: Any, seq: int) -> Any:
    """A value with the records that it names told by their distance from one; and back."""
    if value.__class__ is not dict or ESCAPED in value:
        return value
    if MORE in value:
        return {MORE: [_distance(number, seq) for number in value[MORE]]}
    return {key: _turned(item, seq) for key, item in cast("dict[str, Any]", value).items()}


def _turned_writes(note: WritesNote, seq: int) -> list[tuple[int, str, Any]]:
    return [(idx, channel, _turned(value, seq)) for idx, channel, value in note.writes]


def _turned(value: Any, seq: int) -> Any:
    if value.__class__ is dict and SAID in value:
        return {SAID: [_distance(number, seq) for number in value[SAID]]}
    return value


def _distance(number: int, seq: int) -> int:
    """How far back a record is, or which record is so far back; below 0 for a message under the id it was given."""
    return seq - number if number > 0 else -(seq + number)
