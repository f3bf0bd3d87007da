"""What a store should hold: plain lists and dicts, written from the promises alone.

Nothing of statestore is imported here, so that no mistake is shared with what is being tried. Versions cannot be
foretold; the oracle is told them, and insists that each one is new.
"""

from __future__ import annotations

import copy
import json
import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

Reason = Literal["exists", "missing", "version", "owner"]


class Refused(Exception):
    """The store must refuse this: ``missing``, ``conflict`` or ``wrong user``."""


@dataclass
class Told:
    """A record: its kind, its JSON value, its idempotency key, and its number once it has one."""

    kind: str
    body: dict[str, Any]
    key: str | None = None
    seq: int | None = None


@dataclass
class Kept:
    """A session as it should be stored."""

    id: str
    user_id: str
    created: str
    updated: str
    fields: dict[str, str | None]
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    records: list[Told] = field(default_factory=list[Told])
    next_seq: int = 1
    version: str = ""

    def add(self, told: Told) -> bool:
        """Number a record and keep it, unless its key is here already; whether it was kept."""
        if told.key is not None:
            for record in self.records:
                if record.key == told.key:
                    told.seq = record.seq
                    return False
        if told.seq is None:
            told.seq = self.next_seq
        self.next_seq = max(self.next_seq, told.seq + 1)
        self.records.append(copy.deepcopy(told))
        return True

    def refuses(self, told: Told) -> bool:
        """Whether a record asks for a number that is taken, and has no key that is here already."""
        is_known = told.key is not None and any(record.key == told.key for record in self.records)
        return not is_known and told.seq is not None and told.seq < self.next_seq

    def touch(self, updated: str) -> None:
        """``updated`` never goes back."""
        self.updated = max(self.updated, updated, key=instant)

    @property
    def title(self) -> str | None:
        """What a listing calls the session."""
        given = self.metadata.get("title")
        if isinstance(given, str) and given:
            return given
        first = next((record.body["content"] for record in self.records if record.kind == "user"), None)
        return None if first is None else first.strip().split("\n")[0][:60].strip()

    @property
    def project(self) -> str | None:
        """The project that a listing shows and filters by."""
        single, several = self.metadata.get("project_id"), self.metadata.get("project_ids")
        if self.fields["project_id"] is not None:
            return self.fields["project_id"]
        if isinstance(single, str) and single:
            return single
        names = cast("list[Any]", several if isinstance(several, list) else str(several or "").split(","))
        first = names[0] if names and isinstance(several, (str, list)) else None
        return first.strip() or None if isinstance(first, str) else None


@dataclass
class Wish:
    """One change of a batch, and what it requires."""

    what: Literal["put", "drop", "begin", "note", "end"]
    name: str
    value: Any = None
    user_id: str = ""
    absent: bool = False
    present: bool = False
    version: str | None = None
    owner: str | None = None


class Oracle:
    """Sessions and documents as they should be."""

    def __init__(self) -> None:
        self.sessions: dict[str, Kept] = {}
        self.documents: dict[str, tuple[bytes, str]] = {}
        self._contents: dict[str, str] = {}
        self._used: defaultdict[str, set[str]] = defaultdict(set)

    def advance(self, kept: Kept, version: str) -> None:
        """A session was written to, and has this version now: a new one, unless it is what it was before."""
        content = repr(replace(kept, version=""))
        if (content, version) != (self._contents.get(kept.id), kept.version):
            kept.version = self._fresh(f"session {kept.id}", version)
        self._contents[kept.id] = content

    def _fresh(self, item: str, version: str) -> str:
        assert version not in self._used[item], f"the version of {item} was used before"
        self._used[item].add(version)
        return version

    def find(self, session_id: str, owner: str | None = None) -> Kept:
        """A session that must be there, and be this owner's."""
        kept = self.sessions.get(session_id)
        if kept is None or owner not in (None, kept.user_id):
            raise Refused("missing")
        return kept

    def append(self, kept: Kept, told: list[Told]) -> list[int]:
        """Add records; the number each one has."""
        for record in told:
            kept.add(record)
        return [record.seq or 0 for record in told]

    def rewind(self, kept: Kept, to: int) -> list[int]:
        """Drop what comes after a number; the numbers that were dropped."""
        dropped = [record.seq or 0 for record in kept.records if (record.seq or 0) > to]
        kept.records = [record for record in kept.records if (record.seq or 0) <= to]
        return dropped

    def fork(self, kept: Kept, new_id: str, at: int | None) -> Kept:
        """A copy of a session, up to a number."""
        if new_id in self.sessions:
            raise Refused("conflict")
        fields = kept.fields | {"parent_session_id": kept.id}
        forked = Kept(new_id, kept.user_id, "", "", fields, copy.deepcopy(kept.metadata))
        for record in kept.records:
            if at is None or (record.seq or 0) <= at:
                forked.add(copy.deepcopy(record))
        self.sessions[new_id] = forked
        return forked

    def listed(
        self, user_id: str | None = None, project_id: str | None = None, *, top_level: bool = False, by_id: bool = False
    ) -> list[Kept]:
        """The sessions of a listing, in its order."""
        found = [
            kept
            for kept in self.sessions.values()
            if user_id in (None, kept.user_id)
            and project_id in (None, kept.project)
            and not (top_level and kept.fields["parent_session_id"] is not None)
        ]
        found.sort(key=lambda kept: kept.id)
        if not by_id:
            found.sort(key=lambda kept: instant(kept.updated), reverse=True)
        return found

    def found(self, word: str, user_id: str | None = None) -> list[tuple[str, int]]:
        """Where a word is: in which sessions and records; 0 for the title."""
        places: list[tuple[str, int]] = []
        for kept in self.listed(user_id, by_id=True):
            texts = [(record.seq or 0, record.body.get("content", record.body.get("data"))) for record in kept.records]
            given = kept.metadata.get("title")
            places += [
                (kept.id, seq) for seq, text in [(0, given), *texts] if isinstance(text, str) and _has(text, word)
            ]
        return places

    def prune(self, most: int, most_of_user: int, oldest: str, user_id: str | None) -> int:
        """Drop what is too old, then what is too much; how many."""
        kept: list[Kept] = []
        gone: list[str] = []
        for session in self.listed(user_id):
            of_user = sum(other.user_id == session.user_id for other in kept)
            is_old = instant(session.updated) < instant(oldest)
            if is_old or (most_of_user and of_user >= most_of_user) or (most and len(kept) >= most):
                gone.append(session.id)
            else:
                kept.append(session)
        for session_id in gone:
            del self.sessions[session_id]
        return len(gone)

    def put(self, name: str, body: bytes, version: str) -> None:
        """A document was written, and has this version now."""
        self.documents[name] = (body, self._fresh(f"document {name}", version))

    def objections(self, batch: list[Wish]) -> list[tuple[int, Reason]]:
        """The changes that cannot be made, and why."""
        found: list[tuple[int, Reason]] = []
        for index, wish in enumerate(batch):
            reason = self._objection(wish)
            if reason is not None:
                found.append((index, reason))
        return found

    def _objection(self, wish: Wish) -> Reason | None:
        owner: str | None = None
        if wish.what in ("put", "drop"):
            version = self.documents[wish.name][1] if wish.name in self.documents else None
        else:
            kept = self.sessions.get(wish.name)
            version, owner = (kept.version, kept.user_id) if kept else (None, None)
        if version is None:
            return "missing" if wish.present or wish.version is not None or wish.what == "note" else None
        if wish.owner not in (None, owner):
            return "owner"
        if wish.absent:
            return "exists"
        return "version" if wish.version not in (None, version) else None

    def grant(self, wish: Wish, version: str | None) -> None:
        """A change of a batch was made, and its item has this version now."""
        if wish.what == "put":
            self.put(wish.name, wish.value, version or "")
        elif wish.what == "drop":
            self.documents.pop(wish.name, None)
        elif wish.what == "end":
            self.sessions.pop(wish.name, None)
        else:
            when: str = wish.value.body["timestamp"]
            if wish.name not in self.sessions:
                self.sessions[wish.name] = Kept(wish.name, wish.user_id, when, when, no_fields())
            kept = self.sessions[wish.name]
            kept.add(copy.deepcopy(wish.value))
            kept.touch(when)
            self.advance(kept, version or "")


def _has(text: str, word: str) -> bool:
    """Whether a word is in a text; a part of a word will do where words are not told apart."""
    return word in re.findall(r"[a-z]+", text.lower()) if word.isascii() else word in text


def no_fields() -> dict[str, str | None]:
    """The optional fields of a session, all unset."""
    return dict.fromkeys(("active_seed_id", "active_persona_id", "project_id", "parent_session_id"))


def instant(text: str) -> tuple[str, str]:
    """A moment in UTC as something that sorts: all that the machine uses are four-digit years that end in Z."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    return whole, fraction.ljust(9, "0")


def is_same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON: 1 is neither true nor 1.0."""
    return json.dumps(one) == json.dumps(other)
