"""The oracle's idea of a `Session` object: what it was loaded with, what was done to it, what a save must do.

Like the oracle, this shares no code with the store or with any engine.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from statestore.conformance.oracle import Kept, Oracle, Refused, Told, is_same, no_fields


@dataclass
class Double:
    """What one object should hold, beside what it held when it was loaded or saved."""

    id: str
    user_id: str
    created: str
    updated: str
    fields: dict[str, str | None] = field(default_factory=no_fields)
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    told: list[Told] = field(default_factory=list[Told])
    version: str | None = None
    """The version it was loaded or saved at; ``None`` if it never was."""
    is_stale: bool = False
    is_part: bool = False
    is_straight: bool = True
    """Whether it is all of one session in its order, so that it can be stored anew."""
    cut: int | None = None
    """The lowest number of a stored record that was removed or replaced."""
    is_replaced: bool = False
    saved: tuple[str, dict[str, str | None], dict[str, Any]] = ("", {}, {})

    @classmethod
    def of(cls, kept: Kept, last: int | None = None) -> Double:
        """What loading a session gives."""
        records = kept.records if last is None else kept.records[max(0, len(kept.records) - last) :]
        double = cls(kept.id, kept.user_id, kept.created, kept.updated, dict(kept.fields), version=kept.version)
        double.metadata = copy.deepcopy(kept.metadata)
        double.told = copy.deepcopy(records)
        double.is_part = last is not None
        double._note_saved()
        return double

    def _note_saved(self) -> None:
        self.saved = (self.updated, dict(self.fields), merged(self.saved[2], self.saved[2], self.metadata))
        self.cut = None
        self.is_replaced = False

    @property
    def is_new(self) -> bool:
        """Whether it was never stored."""
        return self.version is None

    @property
    def is_rewriting(self) -> bool:
        """Whether stored history was removed or replaced."""
        return self.cut is not None

    def editable(self) -> list[int]:
        """The places of records that may be removed or replaced without doubt about the order that follows."""
        if self.is_replaced:
            return []
        return [place for place, told in enumerate(self.told) if told.seq is not None]

    def remove(self, place: int) -> Told:
        """Remove a stored record."""
        gone = self.told.pop(place)
        assert gone.seq is not None
        self.cut = gone.seq if self.cut is None else min(self.cut, gone.seq)
        return gone

    def replace(self, place: int, told: Told) -> None:
        """Put another record in the place of a stored one."""
        self.remove(place)
        self.told.insert(place, told)
        self.is_replaced = True

    def save(self, oracle: Oracle, updated: str, version: str | None, *, recreate: bool = False) -> None:
        """What a save must do; the object's moment and the session's version after it are as told."""
        self.updated = updated
        kept = oracle.sessions.get(self.id)
        if self.is_new:
            if kept is not None:
                raise Refused("conflict" if kept.user_id == self.user_id else "wrong user")
            self._store_whole(oracle, version)
            return
        if self.is_rewriting and self.is_stale:
            raise Refused("conflict")
        if not self._is_changed() and not (recreate and kept is None):
            return
        if kept is None or kept.user_id != self.user_id or kept.created != self.created:
            if not recreate or self.is_part:
                raise Refused("missing")
            if kept is not None:
                raise Refused("conflict" if kept.user_id == self.user_id else "wrong user")
            self._store_whole(oracle, version)
            return
        if self.is_rewriting and kept.version != self.version:
            raise Refused("conflict")
        self._merge(oracle, kept, version)

    def _is_changed(self) -> bool:
        updated, fields, metadata = self.saved
        return (
            self.is_rewriting
            or any(told.seq is None for told in self.told)
            or updated != self.updated
            or fields != self.fields
            or not is_same(sorted(metadata.items()), sorted(self.metadata.items()))
        )

    def _store_whole(self, oracle: Oracle, version: str | None) -> None:
        kept = Kept(self.id, self.user_id, self.created, self.updated, dict(self.fields))
        kept.metadata = merged(self.saved[2], self.saved[2], self.metadata)
        self.is_stale = False
        for told in self.told:
            told.seq = None
            self._add(kept, told)
        oracle.sessions[self.id] = kept
        oracle.advance(kept, version or "")
        self.version = kept.version
        self.is_part = False
        self._note_saved()

    def _merge(self, oracle: Oracle, kept: Kept, version: str | None) -> None:
        _, fields, metadata = self.saved
        if kept.version != self.version:
            self.is_stale = True
        if self.cut is not None:
            cut = self.cut
            kept.records = [record for record in kept.records if (record.seq or 0) < cut]
            for told in self.told:
                if told.seq is not None and told.seq >= cut:
                    told.seq = None
        highest = max((told.seq or 0 for told in self.told), default=0)
        for told in self.told:
            if told.seq is None:
                self._add(kept, told)
                if (told.seq or 0) <= highest:
                    self.is_straight = False
        kept.fields |= {name: value for name, value in self.fields.items() if value != fields[name]}
        kept.metadata = merged(kept.metadata, metadata, self.metadata)
        kept.touch(self.updated)
        oracle.advance(kept, version or "")
        if not self.is_stale:
            self.version = kept.version
        self._note_saved()

    def _add(self, kept: Kept, told: Told) -> None:
        if not kept.add(told):
            self.is_stale = True  # the object holds a record too many
            self.is_straight = False


def merged(stored: dict[str, Any], before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Metadata with what changed from before to now: a changed key keeps its place, a new one goes last."""
    changed = {key: value for key, value in now.items() if key not in before or not is_same(before[key], value)}
    whole = stored | changed
    return copy.deepcopy({key: value for key, value in whole.items() if key in now or key not in before})
