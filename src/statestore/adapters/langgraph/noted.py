"""What a saver knows of a thread's checkpoints and writes: the notes in a stretch of its log, opened when asked."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import UNSET, Raw, Struct, UnsetType

from statestore.adapters.langgraph.likeness import Models, checkpoint_like, writes_like
from statestore.adapters.langgraph.notes import (
    CheckpointNote,
    Head,
    Line,
    WritesNote,
    decode_checkpoint,
    decode_like_checkpoint,
    decode_like_writes,
    decode_writes,
    head_of,
    step_shown_by,
    ts_told_by,
)
from statestore.adapters.langgraph.shortening import full
from statestore.errors import CorruptSession

Key = tuple[str, str]
"""A checkpoint: its namespace and its id."""


class Kept(Struct, gc=False):
    """A checkpoint in the view."""

    seq: int
    raw: bytes
    head: Head
    moment: str
    data: Raw | UnsetType
    note: CheckpointNote | None = None

    @property
    def key(self) -> Key:
        """Its namespace and its id."""
        return self.head.ns, self.id

    @property
    def id(self) -> str:
        """The checkpoint's id."""
        return self.head.id or ""

    @property
    def needs(self) -> list[int]:
        """The numbers of the checkpoints that must be known to understand this one."""
        head = self.head
        return [self.seq - back for back in (head.like, head.up) if back is not None]


class KeptWrites(Struct, gc=False):
    """Writes in the view."""

    seq: int
    raw: bytes
    head: Head

    @property
    def needs(self) -> list[int]:
        """The numbers of the writes that must be known to understand these."""
        return [] if self.head.like is None else [self.seq - self.head.like]


class Noted:
    """The notes of one thread, as far as they are known."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Know nothing."""
        self.checkpoints: dict[Key, Kept] = {}
        self.by_seq: dict[int, Kept] = {}
        self.newest: dict[str, Kept] = {}
        """The checkpoint with the highest id, by namespace, as far as the view reaches."""
        self.highest = ""
        """The highest id of a checkpoint, in whatever namespace, as far as the view reaches."""
        self.ceiling: str | None = None
        """All checkpoints that the view does not reach have lower ids than this, if there is such an id."""
        self.writes: dict[Key, list[KeptWrites]] = {}
        self.writes_by_seq: dict[int, KeptWrites] = {}
        self._strays: dict[int, list[KeptWrites]] = {}
        """Writes to checkpoints that the view does not reach, by the numbers of those."""
        self.far: dict[int, Kept] = {}
        """Checkpoints that the view does not reach, but that others refer to."""
        self.models = Models()
        self.names: dict[int, str] = {}
        """The ids that messages were given after they were stored, by the numbers of their records."""
        self.lines: dict[int, Line] = {}
        """Records that are messages, as they were read."""

    def absorb(self, found: Iterable[tuple[int, Line]]) -> None:
        """Take note of records."""
        for seq, line in found:
            if line.mark is UNSET:
                continue
            raw = bytes(line.mark)
            head = head_of(raw) if line.content is UNSET else None
            if head is not None and head.is_checkpoint:
                self.keep(Kept(seq, raw, head, line.timestamp, line.data))
            elif head is not None and head.is_writes:
                self.keep_writes(KeptWrites(seq, raw, head))
            elif raw.startswith(b"{"):
                self.lines[seq] = line

    def keep(self, kept: Kept) -> None:
        """Take note of a checkpoint; of two with one id, the later one holds."""
        key = kept.key
        known, newest = self.checkpoints.get(key), self.newest.get(kept.head.ns)
        self.by_seq[kept.seq] = kept
        self.note_names(kept.head)
        if known is None or known.seq < kept.seq:
            self.checkpoints[key] = kept
        if newest is None or newest.id < kept.id or (newest.id == kept.id and newest.seq < kept.seq):
            self.newest[kept.head.ns] = kept
        self.highest = max(self.highest, kept.id)
        if not kept.head.is_late:
            self.ceiling = kept.id if self.ceiling is None else min(self.ceiling, kept.id)
        for writes in self._strays.pop(kept.seq, ()):
            self.writes.setdefault(key, []).append(writes)

    def keep_writes(self, kept: KeptWrites) -> None:
        """Take note of writes."""
        head = kept.head
        self.writes_by_seq[kept.seq] = kept
        self.note_names(head)
        if head.to is None:
            self.writes.setdefault((head.ns, head.checkpoint), []).append(kept)
        elif (checkpoint := self.by_seq.get(kept.seq - head.to)) is not None:
            self.writes.setdefault(checkpoint.key, []).append(kept)
        else:
            self._strays.setdefault(kept.seq - head.to, []).append(kept)

    def note_names(self, head: Head) -> None:
        """Take note of the ids that messages were given."""
        for seq, id in head.ids.items():
            self.names[seq] = full(id)

    def note_names_in(self, mark: bytes) -> None:
        """Take note of the ids that messages were given, and of nothing else that is beside a record."""
        if b'"ids":' in mark and (head := head_of(mark)) is not None:
            self.note_names(head)

    def known(self, seq: int) -> Kept | None:
        """The checkpoint in a record."""
        return self.by_seq.get(seq) or self.far.get(seq)

    def note_of(self, kept: Kept) -> CheckpointNote:
        """The whole note of a checkpoint; what it needs must be known."""
        if kept.note is None:
            if kept.head.like is None:
                kept.note = decode_checkpoint(kept.raw)
                self.models.add(kept.seq, kept.note, len(kept.raw))
            else:
                model, *parents = [self._needed(seq, kept.seq) for seq in kept.needs]
                if model.head.like is not None:
                    raise CorruptSession(f"record {model.seq} should be a whole note, and is none")
                parent = parents[0].id if parents else None
                like, step = decode_like_checkpoint(kept.raw), step_shown_by(kept.data)
                kept.note = checkpoint_like(like, kept.id, kept.seq, self.note_of(model), model.seq, parent, step)
            kept.note.ts = kept.note.ts or ts_told_by(kept.moment)
        return kept.note

    def _needed(self, seq: int, by: int) -> Kept:
        found = self.known(seq)
        if found is None:
            raise CorruptSession(f"record {seq} should be a checkpoint, and is none: record {by} needs it")
        return found

    def note_of_writes(self, kept: KeptWrites, key: Key) -> WritesNote:
        """The whole note of some writes to a checkpoint; what it needs must be known."""
        if kept.head.like is None:
            note = decode_writes(kept.raw)
            self.models.add(kept.seq, note, len(kept.raw))
            return note
        (seq,) = kept.needs
        model = self.writes_by_seq.get(seq)
        if model is None or model.head.like is not None:
            raise CorruptSession(f"record {seq} should be the whole note of some writes, and is none")
        return writes_like(decode_like_writes(kept.raw), kept.seq, self.note_of_writes(model, key), seq, key)

    def writes_of(self, key: Key) -> list[WritesNote]:
        """The notes of a checkpoint's writes, as they came."""
        return [self.note_of_writes(kept, key) for kept in sorted(self.writes.get(key, ()), key=lambda kept: kept.seq)]
