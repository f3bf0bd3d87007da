"""What one strand has in a store, as it ought to be; and as a store shows it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from statestore import Event, SessionSummary, StateStore
from statestore.timeline import TimelineEntry

SHARED = "shared"
"""A session that all strands append to."""
SPREAD = ("spread-x", "spread-y", "spread-z")
"""Sessions that all strands append to in one batch."""
SPREAD_DOCUMENT = ("spread", "last")


class Said(NamedTuple):
    """A record."""

    seq: int
    kind: str
    text: str


@dataclass
class Kept:
    """A session."""

    records: list[Said] = field(default_factory=list[Said])
    next_seq: int = 1
    touched: float = 0
    """At which deed it was changed last: prunes spare those that were changed last."""
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    seed: str | None = None
    parent: str | None = None

    def copy(self) -> Kept:
        return replace(self, records=list(self.records), metadata=dict(self.metadata))

    def add(self, kind: str, text: str) -> int:
        """Append a record; its number."""
        self.records.append(Said(self.next_seq, kind, text))
        self.next_seq += 1
        return self.next_seq - 1

    @property
    def count(self) -> int:
        """How many messages the user sent."""
        return sum(said.kind == "user" for said in self.records)

    @property
    def title(self) -> str | None:
        return next((said.text[:60].rstrip() for said in self.records if said.kind == "user"), None)


@dataclass
class Picture:
    """All that a strand has."""

    sessions: dict[str, Kept] = field(default_factory=dict[str, Kept])
    trash: dict[str, Kept] = field(default_factory=dict[str, Kept])
    documents: dict[tuple[str, str], Any] = field(default_factory=dict[tuple[str, str], Any])
    """By name and kind."""
    shared: list[str] = field(default_factory=list[str])
    spread: list[str] = field(default_factory=list[str])
    """What it said in the sessions that it shares with others."""

    def copy(self) -> Picture:
        sessions = {name: kept.copy() for name, kept in self.sessions.items()}
        return Picture(sessions, dict(self.trash), dict(self.documents), list(self.shared), list(self.spread))

    def shown(self) -> dict[str, Any]:
        """As a store shows it."""
        return {
            "sessions": {
                name: (kept.records, kept.metadata, kept.seed, kept.parent, kept.title)
                for name, kept in self.sessions.items()
            },
            "trash": {name: (kept.count, kept.title) for name, kept in self.trash.items()},
            "documents": self.documents,
            SHARED: self.shared,
            **dict.fromkeys(SPREAD, self.spread),
        }


def observed(store: StateStore, strands: Collection[str]) -> dict[str, dict[str, Any]]:
    """What a store shows of some strands, each by its name. Others may be writing theirs meanwhile."""
    said_together = {name: words(store, name) for name in (SHARED, *SPREAD)}
    categories = set(store.list_categories())
    seen: dict[str, dict[str, Any]] = {
        strand: {
            "sessions": {},
            "trash": {},
            "documents": _documents(store, category) if (category := category_of(strand)) in categories else {},
            **{name: [it for it in said if speaker(it) == strand] for name, said in said_together.items()},
        }
        for strand in strands
    }
    for summary in store.list_sessions():
        if summary.user_id in seen:
            seen[summary.user_id]["sessions"][summary.id] = _session(store, summary)
    for trashed in store.list_trash():
        if trashed.session.user_id in seen:
            content = (trashed.session.message_count, trashed.session.title)
            seen[trashed.session.user_id]["trash"][trashed.session.id] = content
    return seen


def _session(store: StateStore, summary: SessionSummary) -> tuple[object, ...]:
    session = store.load_session(summary.id)
    assert session is not None, f"{summary.id} is listed and not there"
    assert [summary.message_count, summary.response_count, summary.event_count] == [
        len(history) for history in (session.user_messages, session.agent_responses, session.events)
    ], f"the counts of {summary.id} are wrong"
    records = [said(entry) for entry in session.timeline]
    return records, session.metadata, session.active_seed_id, session.parent_session_id, summary.title


def _documents(store: StateStore, category: str) -> dict[tuple[str, str], Any]:
    documents: dict[tuple[str, str], Any] = {}
    for info in store.list_documents(category):
        document = store.get_document(category, info.name, kind=info.kind)
        assert document is not None, f"{category}/{info.name} is listed and not there"
        documents[info.name, info.kind] = document.value
    return documents


def said(entry: TimelineEntry) -> Said:
    """A record as a strand knows it."""
    assert entry.seq is not None
    record = entry.record
    return Said(entry.seq, entry.kind, str(record.data) if isinstance(record, Event) else record.content)


def words(store: StateStore, session_id: str) -> list[str]:
    """All that was said in a session, its numbers rising, or nothing if it is not there yet."""
    session = store.load_session(session_id)
    found = [] if session is None else [said(entry) for entry in session.timeline]
    seqs = [it.seq for it in found]
    assert seqs == sorted(set(seqs)), f"the numbers of {session_id} do not rise"
    return [it.text for it in found]


def category_of(strand: str) -> str:
    """Where a strand keeps its documents."""
    return f"{strand}-notes"


def speaker(word: str) -> str:
    """The strand whose word this is."""
    return word.partition("w")[0]
