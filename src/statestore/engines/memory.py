"""``memory:`` - the smallest correct engine. Nothing survives the process; for tests and scratch work."""

from __future__ import annotations

import threading
from itertools import count

from statestore.engine import (
    AtomicScope,
    Batch,
    Change,
    ChangeSession,
    DeleteCategory,
    DeleteDocument,
    DeleteSession,
    DocumentQuery,
    NewRecord,
    NewSession,
    Outcome,
    PutDocument,
    RunsIn,
    SessionQuery,
)
from statestore.engines.forking import hold_while_forking
from statestore.engines.judging import Present, SingleChange, check_batch, judge
from statestore.engines.options import check_writable, is_durable
from statestore.engines.selecting import is_selected, select
from statestore.engines.versions import new_version
from statestore.errors import InvalidValue
from statestore.jsontext import changed_members
from statestore.labels import project_of, title_of
from statestore.records import AGENT, USER
from statestore.stored import (
    OPTIONAL_FIELDS,
    Document,
    DocumentInfo,
    DocumentKind,
    Problem,
    Records,
    SessionFields,
    SessionSummary,
    StoredRecord,
    StoredSession,
)
from statestore.timestamps import later_of


class _Session:
    """One session in memory."""

    def __init__(self, session_id: str, new: NewSession, updated: str) -> None:
        self.id = session_id
        self.new = new
        self.updated = updated
        self.fields: dict[str, str] = {}
        self.metadata = b"{}"
        self.records: list[StoredRecord] = []
        self.seq_of_key: dict[str, int] = {}
        self.next_seq = new.next_seq
        self.version = ""

    def append(self, record: NewRecord) -> int:
        """Store a record unless its key is there already; the number it has."""
        if record.key is not None and record.key in self.seq_of_key:
            return self.seq_of_key[record.key]
        seq = self.next_seq if record.seq is None else record.seq
        if record.key is not None:
            self.seq_of_key[record.key] = seq
        self.records.append(StoredRecord(seq, record.kind, record.body, record.key))
        if record.opening is not None:
            self.fields.setdefault("opening", record.opening)
        self.next_seq = max(self.next_seq, seq + 1)
        return seq

    def check_numbers(self, change: ChangeSession, *, is_new: bool) -> None:
        """Raise `InvalidValue` if a record asks for a number that is taken."""
        kept = change.truncate_after
        keys = {key for key, seq in self.seq_of_key.items() if kept is None or seq <= kept}
        free, next_seq = 1 if is_new else self.next_seq, self.next_seq
        for record in change.append:
            if record.key is not None and record.key in keys:
                continue
            seq = next_seq if record.seq is None else record.seq
            if seq < free:
                raise InvalidValue(
                    f"session {self.id}: a record asks for number {seq}, and the first free one is {free}"
                )
            free = seq + 1
            next_seq = max(next_seq, free)
            if record.key is not None:
                keys.add(record.key)

    def truncate(self, after: int) -> None:
        self.records = [record for record in self.records if record.seq <= after]
        self.seq_of_key = {key: seq for key, seq in self.seq_of_key.items() if seq <= after}

    def apply(self, change: ChangeSession) -> tuple[int, ...]:
        """Make a change; the numbers of the appended records."""
        if change.truncate_after is not None:
            self.truncate(change.truncate_after)
        seqs = tuple(self.append(record) for record in change.append)
        for name, value in change.set_fields.items():
            if value is None:
                self.fields.pop(name, None)
            else:
                self.fields[name] = value
        self.metadata = changed_members(self.metadata, change.set_metadata, change.unset_metadata)
        self.updated = later_of(self.updated, change.updated)
        return seqs

    def summary(self) -> SessionSummary:
        counts = {USER: 0, AGENT: 0}
        for record in self.records:
            if record.kind in counts:
                counts[record.kind] += 1
        return SessionSummary(
            id=self.id,
            user_id=self.new.user_id,
            message_count=counts[USER],
            created_text=self.new.created,
            updated_text=self.updated,
            response_count=counts[AGENT],
            event_count=len(self.records) - counts[USER] - counts[AGENT],
            active_seed_id=self.fields.get("active_seed_id"),
            active_persona_id=self.fields.get("active_persona_id"),
            project_id=project_of(self.fields),
            parent_session_id=self.fields.get("parent_session_id"),
            title=title_of(self.fields),
            size=len(self.metadata) + sum(len(record.body) for record in self.records),
            version=self.version,
        )

    def stored(self, records: list[StoredRecord]) -> StoredSession:
        fields = {name: self.fields.get(name) for name in OPTIONAL_FIELDS}
        return StoredSession(
            id=self.id,
            fields=SessionFields(self.new.user_id, self.new.created, self.updated, **fields),
            records=Records.of(records),
            version=self.version,
            next_seq=self.next_seq,
            message_count=sum(record.kind == USER for record in self.records),
            metadata=self.metadata,
            layout=self.new.layout,
        )


class MemoryEngine:
    """Everything in dictionaries, one lock around them."""

    runs_in: RunsIn = "caller"
    atomic_scope: AtomicScope = "store"

    def __init__(self, *, read_only: bool = False) -> None:
        self._number = next(_numbers)
        self._read_only = read_only
        self._lock = threading.Lock()
        hold_while_forking(self._lock)
        self._sessions: dict[str, _Session] = {}
        self._documents: dict[tuple[str, str, DocumentKind], Document] = {}

    @property
    def url(self) -> str:
        """Every one is a store of its own, and its number tells which."""
        return f"memory:#{self._number}"

    async def open(self) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing to do: what is stored stays as long as the engine."""

    async def commit(self, batch: Batch) -> list[Outcome]:
        check_writable(self, read_only=self._read_only)
        check_batch(batch)
        with self._lock:
            judge(batch, self._find)
            self._check_numbers(batch)
            return [self._apply(change) for change in batch]

    def _find(self, change: SingleChange) -> Present | None:
        if isinstance(change, (ChangeSession, DeleteSession)):
            session = self._sessions.get(change.id)
            return Present(session.version, session.new.user_id, session.new.created) if session else None
        document = self._documents.get((change.category, change.name, change.kind))
        return Present(document.version) if document else None

    def _check_numbers(self, batch: Batch) -> None:
        for change in batch:
            if isinstance(change, ChangeSession) and any(record.seq is not None for record in change.append):
                session = self._sessions.get(change.id)
                if session is not None:
                    session.check_numbers(change, is_new=False)
                elif change.create is not None:
                    _Session(change.id, change.create, change.updated).check_numbers(change, is_new=True)

    def _apply(self, change: Change) -> Outcome:
        present = None if isinstance(change, DeleteCategory) else self._find(change)
        before = present.version if present else None
        match change:
            case PutDocument(category, name, kind, body):
                version = new_version()
                self._documents[category, name, kind] = Document(category, name, kind, body, version)
                return Outcome(before, version)
            case DeleteDocument(category, name, kind):
                gone = self._documents.pop((category, name, kind), None)
                return Outcome(before, deleted=int(gone is not None))
            case DeleteCategory(category):
                doomed = [key for key in self._documents if key[0] == category]
                for key in doomed:
                    del self._documents[key]
                return Outcome(None, deleted=len(doomed))
            case DeleteSession(session_id):
                return Outcome(before, deleted=int(self._sessions.pop(session_id, None) is not None))
            case ChangeSession(session_id, updated, create=create):
                session = self._sessions.get(session_id)
                if session is None:
                    assert create is not None
                    session = self._sessions[session_id] = _Session(session_id, create, updated)
                seqs = session.apply(change)
                session.version = new_version()
                return Outcome(before, session.version, seqs)

    async def read_session(
        self, session_id: str, *, after: int | None = None, before: int | None = None, last: int | None = None
    ) -> StoredSession | None:
        with self._lock:
            session = self._sessions.get(session_id)
            if session is None:
                return None
            records = [
                record
                for record in session.records
                if (after is None or record.seq > after) and (before is None or record.seq < before)
            ]
            return session.stored(records if last is None else records[len(records) - min(last, len(records)) :])

    async def list_sessions(self, query: SessionQuery) -> list[SessionSummary]:
        with self._lock:
            summaries = [session.summary() for session in self._sessions.values()]
        return select(summaries, query)

    async def count_sessions(self, query: SessionQuery) -> int:
        with self._lock:
            return sum(is_selected(session.summary(), query) for session in self._sessions.values())

    async def get_document(self, category: str, name: str, kind: DocumentKind) -> Document | None:
        with self._lock:
            return self._documents.get((category, name, kind))

    async def list_documents(self, query: DocumentQuery) -> list[DocumentInfo]:
        with self._lock:
            found = [
                DocumentInfo(document.category, document.name, document.kind, len(document.body))
                for document in self._documents.values()
                if document.category == query.category
                and (query.after is None or (document.name, document.kind) > query.after)
            ]
        return sorted(found, key=lambda info: (info.name, info.kind))[: query.limit]

    async def list_categories(self, prefix: str = "") -> list[str]:
        with self._lock:
            categories = {category for category, _, _ in self._documents}
        return sorted(c for c in categories if not prefix or c == prefix or c.startswith(prefix + "/"))

    async def check(self) -> list[Problem]:
        return []


_numbers = count(1)


def open_url(rest: str, *, create: bool = True, read_only: bool = False, durability: str = "full") -> MemoryEngine:
    """An engine for ``memory:``; every one is a store of its own."""
    is_durable(durability)
    if rest:
        raise InvalidValue(f"memory: takes no name, and got {rest!r}")
    return MemoryEngine(read_only=read_only)
