"""The engine contract: a handful of ways to read, and one door to write through.

An engine knows its storage and nothing of what agents do. It implements `Engine`, passes
``statestore.conformance``, and can then be trusted with everything the store does on top.
"""

from collections.abc import Sequence
from typing import Final, Literal, Protocol

from msgspec import Struct

from statestore.errors import StateStoreError
from statestore.stored import (
    Cursor,
    Document,
    DocumentInfo,
    DocumentKind,
    Problem,
    SearchHit,
    SessionSummary,
    StoredNotice,
    StoredSession,
    Version,
)
from statestore.terms import Term


class Requires(Struct, frozen=True, gc=False):
    """Preconditions of a change, judged against the state before its batch. All that are set must hold.

    A batch that fails names every change whose preconditions do not hold, in order, with one reason for each.
    """

    absent: bool = False
    present: bool = False
    version: Version | None = None
    owner: str | None = None
    """Only for sessions: the user it must belong to, if it exists. Outranks all others."""
    created: str | None = None
    """Only for sessions: the moment it must have been created at, as text, if it exists. One created anew is another
    session: where it is found, the reason is ``missing``, as if there were none."""


NOTHING = Requires()


class PutDocument(Struct, frozen=True, gc=False):
    """Write a document whole."""

    category: str
    name: str
    kind: DocumentKind
    body: bytes
    requires: Requires = NOTHING


class DeleteDocument(Struct, frozen=True, gc=False):
    """Remove a document; one that is not there is no error."""

    category: str
    name: str
    kind: DocumentKind
    requires: Requires = NOTHING


class DeleteCategory(Struct, frozen=True, gc=False):
    """Remove all documents of one category, not those of categories below it."""

    category: str


class NewRecord(Struct, frozen=True, gc=False):
    """A record to append. ``timestamp_ns`` is the moment that its body tells, for engines that order by it."""

    kind: str
    body: bytes
    timestamp_ns: int
    key: str | None = None
    seq: int | None = None
    """The number to keep, for copies: above all that the session ever gave out. Numbers rise strictly."""
    opening: str | None = None
    """Only of user messages: what the label ``opening`` becomes if this record is stored and the label is unset."""


class NewSession(Struct, frozen=True, gc=False):
    """What a session is born with and never changes."""

    user_id: str
    created: str
    layout: bytes | None = None
    next_seq: int = 1
    """Sequence numbers below this one are taken: a copy goes on where its original stood."""


LABELS: Final = ("title", "project", "projects", "opening")
"""What listings show besides: what the metadata keys ``title``, ``project_id`` and ``project_ids`` tell, and how the
first message begins. A summary's title is the first of ``title`` and ``opening`` that is set, its project the first of
``project_id`` (the field), ``project`` and ``projects``. The store works the labels out; an engine that can derive them
from what it stores may ignore them.
"""


class ChangeSession(Struct, frozen=True, gc=False):
    """Change one session. Without ``create``, it must exist; with it, it is created if it does not.

    Applied in this order: create, truncate, append, fields, metadata.
    """

    id: str
    updated: str
    """The session's new ``updated_at``; an engine keeps the later of this and its own."""
    requires: Requires = NOTHING
    create: NewSession | None = None
    truncate_after: int | None = None
    """Drop all records with a higher number."""
    append: tuple[NewRecord, ...] = ()
    set_fields: dict[str, str | None] = {}
    """Any of `OPTIONAL_FIELDS` and `LABELS`; ``None`` unsets."""
    set_metadata: dict[str, bytes] = {}
    """Metadata keys and their JSON text; a new key goes last."""
    unset_metadata: tuple[str, ...] = ()


class DeleteSession(Struct, frozen=True, gc=False):
    """Remove a session with all its records; one that is not there is no error."""

    id: str
    requires: Requires = NOTHING


Change = PutDocument | DeleteDocument | DeleteCategory | ChangeSession | DeleteSession
Batch = Sequence[Change]
"""Changes that are all made, or none."""


class Outcome(Struct, frozen=True, gc=False):
    """What became of one change of a batch that happened."""

    before: Version | None
    """The version that the change was applied to; ``None`` if there was nothing."""
    version: Version | None = None
    """The version now; ``None`` if there is nothing."""
    seqs: tuple[int, ...] = ()
    """The number of each appended record; for a key that was there already, the number it has."""
    deleted: int = 0
    """How many documents or sessions are gone."""


Result = list[Outcome] | Exception
"""What became of a batch: an outcome for each of its changes, or why it was not made."""

Reason = Literal["exists", "missing", "version", "owner"]


class Failure(Struct, frozen=True):
    """Which change of a batch could not be made, and why."""

    index: int
    reason: Reason


class PreconditionFailed(StateStoreError):
    """Raised by `Engine.commit`: nothing of the batch happened. The store turns it into an error for users."""

    def __init__(self, failures: Sequence[Failure]) -> None:
        self.failures = tuple(failures)
        super().__init__("; ".join(f"change {failure.index}: {failure.reason}" for failure in failures))


class SessionQuery(Struct, frozen=True):
    """Which sessions, in which order, from where, how many."""

    user_id: str | None = None
    project_id: str | None = None
    parent_session_id: str | None = None
    top_level: bool = False
    """Leave out sessions that have a parent."""
    updated_since_ns: int | None = None
    order: Literal["updated", "id"] = "updated"
    """Newest first with ties by id, or by id."""
    after: Cursor | None = None
    limit: int | None = None


class DocumentQuery(Struct, frozen=True):
    """The documents of one category, by name and kind, from where, how many."""

    category: str
    after: tuple[str, DocumentKind] | None = None
    """Name and kind of the last one that is known already; it need not be there any more."""
    limit: int | None = None


RunsIn = Literal["caller", "worker", "loop"]
AtomicScope = Literal["store", "item"]


class Engine(Protocol):
    """Storage for one store. Constructing one does no I/O; ``open`` does.

    Ids and names sort by code point. Moments from year 1 to year 9999 are kept and ordered; numbers in queries may
    exceed 64 bits. An empty text is a value, not an absence. Categories below ``sessions/`` are like any other.
    Reads raise `CorruptData` for what they cannot understand; listings leave such sessions out
    and log a warning that names them.
    """

    runs_in: RunsIn
    """Where its coroutines belong. ``caller``: they never suspend and are instant. ``worker``: they never
    suspend but do I/O, so an event loop hands them to a thread. ``loop``: they are truly asynchronous."""

    atomic_scope: AtomicScope
    """Whether a batch may name items that do not live together."""

    @property
    def url(self) -> str:
        """The store as a URL, without any password."""
        ...

    async def open(self) -> None:
        """Get ready: connect, create or recover. Called once, before anything else."""
        ...

    async def close(self) -> None:
        """Wait for calls under way, then let go of everything; later calls raise `StoreClosed`. Twice is once."""
        ...

    async def commit(self, batch: Batch) -> list[Outcome]:
        """Make all changes or none; durable when it returns.

        A batch that names an item twice raises `InvalidValue`; one that goes beyond `atomic_scope`, `NotSupported`.
        Putting the same bytes again makes a new version; a session change without effect may keep the old one.
        """
        ...

    async def read_session(
        self, session_id: str, *, after: int | None = None, before: int | None = None, last: int | None = None
    ) -> StoredSession | None:
        """One session, with its records numbered above ``after`` and below ``before``, of these the ``last`` ones."""
        ...

    async def list_sessions(self, query: SessionQuery) -> list[SessionSummary]:
        """The sessions that a query selects."""
        ...

    async def count_sessions(self, query: SessionQuery) -> int:
        """How many sessions a query selects, ``limit`` and ``after`` aside."""
        ...

    async def get_document(self, category: str, name: str, kind: DocumentKind) -> Document | None:
        """One document."""
        ...

    async def list_documents(self, query: DocumentQuery) -> list[DocumentInfo]:
        """What a category holds, by name, then kind."""
        ...

    async def list_categories(self, prefix: str = "") -> list[str]:
        """The categories that hold documents: all, or the named one and those below it. Sorted; no sessions."""
        ...

    async def check(self) -> list[Problem]:
        """Everything that is wrong with what is stored. Changes nothing."""
        ...


# -- What an engine may offer besides. The store looks for the method, and says which engines have it if it is missing.


class GroupCommits(Protocol):
    """Makes many callers' batches together, with one flush: group commit."""

    async def commit_group(self, batches: Sequence[Batch]) -> list[Result]:
        """Make each batch wholly or not at all, as if in this order; its outcomes, or why it was not made.

        A batch that cannot be made takes no other one down.
        """
        ...


class ReadsSeveral(Protocol):
    """Hands out many small items in one call. What is large or damaged may be left out: it is read alone."""

    async def read_sessions(self, ids: Sequence[str]) -> list[StoredSession]:
        """Those of some sessions that are small and can be read, whole."""
        ...

    async def get_documents(self, category: str, places: Sequence[tuple[str, DocumentKind]]) -> list[Document]:
        """Those of some documents, by name and kind, that are small and can be read."""
        ...


class SearchQuery(Struct, frozen=True):
    """What to look for, in whose sessions, from where, how much."""

    terms: tuple[Term, ...]
    """All of them must occur in one record, or in one title; there is at least one."""
    user_id: str | None = None
    project_id: str | None = None
    after: str | None = None
    """The ``cursor`` of a hit; `InvalidCursor` if it is none."""
    limit: int = 50


class Searches(Protocol):
    """Finds records and titles by their words."""

    async def search_sessions(self, query: SearchQuery) -> list[SearchHit]:
        """Hits, best first. Sees everything that was acknowledged before it was called."""
        ...

    async def update_search_index(self) -> None:
        """Bring the index up to date, if there is one: what was deleted leaves no words behind."""
        ...


class ChangePage(Struct, frozen=True):
    """Some of what happened, in order, and where to go on."""

    notices: list[StoredNotice]
    cursor: str


class Watches(Protocol):
    """Tells what happened to sessions since some moment, whoever did it."""

    async def change_cursor(self) -> str:
        """The present moment: what happens from now on comes after it."""
        ...

    async def read_changes(
        self, after: str, *, session_id: str | None = None, user_id: str | None = None, limit: int = 500
    ) -> ChangePage:
        """What happened after a cursor: about ``limit`` notices at most, none if nothing did.

        Every record once, unless it was removed again; several changes of a session's fields may be told as one.
        `CursorExpired` if the cursor is older than what is kept, `InvalidCursor` if it is none.
        """
        ...


class Wakes(Protocol):
    """Wakes those who watch when something happens, so that they need not look all the time."""

    async def wait_for_changes(self, after: str, seconds: float) -> None:
        """Return as soon as there may be something after a cursor, and after so many seconds at the latest."""
        ...


class Changed(Struct, frozen=True):
    """Which sessions changed, and whose they are, up to a cursor."""

    sessions: frozenset[str]
    users: frozenset[str]
    cursor: str


class PointsOut(Protocol):
    """Points out which sessions changed, so that one look is enough for all who wait in one place."""

    async def changed_since(self, after: str) -> Changed:
        """Whom `Watches.read_changes` may have something to tell after a cursor, up to another one."""
        ...


class BacksUp(Protocol):
    """Copies itself while it is in use."""

    async def backup(self, to: str) -> None:
        """Write a copy to a path where nothing is yet: whole, of one moment, verified."""
        ...


class Compacts(Protocol):
    """Gives back the room that is free since something was deleted."""

    async def compact(self) -> int:
        """Store everything anew, with nothing left of what was said in deleted sessions; how many bytes less it takes.

        Others may go on reading; who writes waits until it is done.
        """
        ...


class Repairs(Protocol):
    """Puts right by itself what `Engine.check` finds, as far as that loses nothing."""

    async def repair(self) -> list[Problem]:
        """Mend what can be mended; what was wrong, with what was done about it as the advice."""
        ...


class FindsStrays(Protocol):
    """Keeps sessions where others may put or damage something, so that their owners cannot always be told."""

    async def strays_of(self, user_id: str) -> list[str]:
        """The places of all that no listing shows, but for what certainly is another user's."""
        ...
