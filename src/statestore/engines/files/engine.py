"""`FilesEngine`: the engine contract on a directory of files."""

from __future__ import annotations

import logging
import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, TypeVar

import msgspec

from statestore.engine import (
    AtomicScope,
    Batch,
    ChangePage,
    DeleteCategory,
    DeleteSession,
    DocumentQuery,
    Outcome,
    RunsIn,
    SearchQuery,
    SessionQuery,
)
from statestore.engines.catching_up import CatchingUp
from statestore.engines.files import journal, watching
from statestore.engines.files.batches import BatchMaker
from statestore.engines.files.checking import check_everything
from statestore.engines.files.committing import Committer
from statestore.engines.files.directory import LOCKS, OWN, Directory, NotAFile
from statestore.engines.files.documents import categories_below, document_from, documents_in, file_name
from statestore.engines.files.finding import search
from statestore.engines.files.following import ChangeLog
from statestore.engines.files.index import Index, IndexDamaged
from statestore.engines.files.locks import BATCHES, Locks, NoneKept
from statestore.engines.files.looking import Looker
from statestore.engines.files.noting import LogState
from statestore.engines.files.planning import Surveyor
from statestore.engines.files.recovery import Recovery
from statestore.engines.files.repairing import Repair
from statestore.engines.files.sessions import SessionFiles
from statestore.engines.files.straying import stray_files
from statestore.engines.files.wording import index_words
from statestore.engines.forking import hold_while_forking
from statestore.engines.judging import check_batch
from statestore.engines.options import check_writable, is_durable
from statestore.engines.telling import Moment
from statestore.engines.usage import Usage
from statestore.errors import CorruptDocument, StoreUnavailable
from statestore.stored import (
    Document,
    DocumentInfo,
    DocumentKind,
    Problem,
    SearchHit,
    SessionSummary,
    StoredSession,
)

log = logging.getLogger("statestore")
T = TypeVar("T")

_finding = threading.Lock()
"""Held while a store that is only read opens what it finds of ours, so that it is opened once."""
hold_while_forking(_finding)

_LOOKS: Final = 10
"""How often an index is looked at that is damaged, or changed by others between two looks. Each look mends some."""


class FilesEngine:
    """A directory as the Rust program keeps it, made safe for many writers and for power cuts."""

    runs_in: RunsIn = "worker"
    atomic_scope: AtomicScope = "store"

    def __init__(self, path: str, *, create: bool = True, read_only: bool = False, durability: str = "full") -> None:
        with _WorkOn(path):  # a relative path in a directory that was removed
            self._path = os.path.abspath(path)
        self._create = create
        self._read_only = read_only
        self._directory = Directory(self._path, is_durable=is_durable(durability))
        self._catching_up = CatchingUp()
        self._usage = Usage(self.url)

    @property
    def url(self) -> str:
        return f"file:{self._path}"

    # -- opening and closing ---------------------------------------------------------------------------------

    async def open(self) -> None:
        _check_file_names(self._path)
        self._directory.open(create=self._create, read_only=self._read_only)
        self._sessions = SessionFiles(self._directory, is_writable=not self._read_only)
        self._log = ChangeLog(self._directory, self._sessions, is_writable=not self._read_only)
        self._locks = Locks(-1, is_writable=not self._read_only)
        try:
            with _WorkOn(self._path):
                self._prepare()
        except BaseException:
            self._let_go()
            raise
        self._usage.open()

    def _prepare(self) -> None:
        """Find or make the locks, and tidy up after those who died."""
        self._find_locks()
        if not self._read_only:
            surveyor = Surveyor(self._directory, self._sessions)
            self._recovery = Recovery(self._directory, self._locks)
            self._committer = Committer(self._directory, self._locks, surveyor, self._recovery)
            self._batches = BatchMaker(self._directory, self._locks, surveyor, self._recovery)
            self._recovery.clean_up()

    def _find_locks(self) -> None:
        locks = self._directory.own_directory(LOCKS, create=not self._read_only)
        self._locks = Locks(locks, is_writable=not self._read_only)

    async def close(self) -> None:
        if self._usage.close():
            self._let_go()

    def _let_go(self) -> None:
        self._log.close()
        self._locks.close()
        self._directory.close()

    @contextmanager
    def _between_batches(self) -> Generator[None]:
        """A part of a call in which no batch is made."""
        self._wait_for_batch()
        with self._locks.shared_in_turn(BATCHES):
            yield

    # -- writing ---------------------------------------------------------------------------------------------

    async def commit(self, batch: Batch) -> list[Outcome]:
        check_writable(self, read_only=self._read_only)
        check_batch(batch)
        if not batch:
            return []
        doomed = [change.id for change in batch if isinstance(change, DeleteSession)]
        with self._usage, _WorkOn(self._path), self._log.deleting(doomed):
            if len(batch) == 1 and not isinstance(batch[0], DeleteCategory):
                return [self._committer.commit_one(batch[0])]
            return self._batches.commit_all(batch)

    # -- reading ---------------------------------------------------------------------------------------------

    async def read_session(
        self, session_id: str, *, after: int | None = None, before: int | None = None, last: int | None = None
    ) -> StoredSession | None:
        with self._usage, _WorkOn(self._path):
            self._wait_for_batch()
            image = self._sessions.image(session_id)
        if image is None:
            return None
        records = image.text.window(after, before, last)
        layout = image.layout
        image.text.forget_records()
        return StoredSession(
            id=image.text.id,
            fields=image.text.fields,
            records=records,
            version=image.version,
            next_seq=image.text.next_seq(),
            message_count=image.text.counts[0],
            metadata=image.text.metadata,
            layout=layout,
        )

    async def list_sessions(self, query: SessionQuery) -> list[SessionSummary]:
        return self._selected(query)

    async def count_sessions(self, query: SessionQuery) -> int:
        return len(self._selected(msgspec.structs.replace(query, after=None, limit=None)))

    def _selected(self, query: SessionQuery) -> list[SessionSummary]:
        def select(index: Index) -> list[SessionSummary]:
            for session_id, error in index.errors():
                log.warning("the session file %r is left out of the listing: %s", session_id, error)
            return index.select(query)

        with self._usage, _WorkOn(self._path):
            return self._indexed(select)

    def _indexed(self, act: Callable[[Index], T]) -> T:
        """What an act gives back that uses the index after it was brought up to date; done again if that was no use."""
        for turn in range(_LOOKS):
            try:
                with self._between_batches():
                    index = self._sessions.refreshed_index()
                return act(index)
            except IndexDamaged as error:
                if turn == _LOOKS - 1:
                    raise StoreUnavailable(
                        f"{self._path} cannot be listed, as its index made no sense at {_LOOKS} looks ({error}): "
                        f"try again when others change less, or delete {OWN}/index.db, which is made anew"
                    ) from error
        raise AssertionError("the last turn returns or raises")

    async def get_document(self, category: str, name: str, kind: DocumentKind) -> Document | None:
        where = f"{self._path}/{category}/{file_name(name, kind)}"
        with self._usage, _WorkOn(self._path):
            self._wait_for_batch()
            with self._directory.category(category) as directory:
                try:
                    found = None if directory is None else self._directory.read(directory, file_name(name, kind), where)
                except NotAFile as error:
                    raise CorruptDocument(str(error)) from error
        return None if found is None else document_from(category, name, kind, *found)

    async def list_documents(self, query: DocumentQuery) -> list[DocumentInfo]:
        with self._usage, _WorkOn(self._path), self._between_batches():
            return documents_in(self._directory, query.category, after=query.after, limit=query.limit)

    async def list_categories(self, prefix: str = "") -> list[str]:
        with self._usage, _WorkOn(self._path), self._between_batches():
            return categories_below(self._directory, prefix)

    # -- searching and watching ------------------------------------------------------------------------------

    async def search_sessions(self, query: SearchQuery) -> list[SearchHit]:
        def find(connection: sqlite3.Connection, looker: Looker, _: LogState) -> list[SearchHit]:
            self._index_words(connection, looker)
            return search(connection, looker, query)

        hits = self._followed(find)
        for session_id, error in self._log.errors():
            log.warning("the session file %r is left out of the search: %s", session_id, error)
        return hits

    async def update_search_index(self) -> None:
        def update(connection: sqlite3.Connection, looker: Looker, state: LogState) -> None:
            if state.rules:  # else nobody ever searched
                self._index_words(connection, looker)

        self._followed(update)

    def _index_words(self, connection: sqlite3.Connection, looker: Looker) -> None:
        with self._catching_up.lock:
            index_words(connection, looker)

    async def change_cursor(self) -> str:
        return self._followed(lambda _, __, state: Moment(state.identity, state.last).cursor)

    async def read_changes(
        self, after: str, *, session_id: str | None = None, user_id: str | None = None, limit: int = 500
    ) -> ChangePage:
        moment = Moment.parse(after)
        with self._usage, _WorkOn(self._path):
            self._wait_for_batch()
            state = self._log.quiet_state()
        if state is not None and moment == Moment(state.identity, state.last):
            return ChangePage([], after)

        def tell(connection: sqlite3.Connection, looker: Looker) -> ChangePage:
            return watching.read_changes(
                connection, looker, moment, session_id=session_id, user_id=user_id, limit=limit
            )

        def tell_what_is_noted_first(connection: sqlite3.Connection, looker: Looker) -> ChangePage:
            if watching.is_behind(connection, after):
                page = tell(connection, looker)
                if page.cursor != after and watching.is_behind(connection, page.cursor):
                    return page  # what a scan would find comes later
            self._catch_up(connection, looker)
            return tell(connection, looker)

        with self._usage, _WorkOn(self._path):
            return self._log.use(tell_what_is_noted_first)

    def _followed(self, act: Callable[[sqlite3.Connection, Looker, LogState], T]) -> T:
        """What an act gives back that uses the change log after it was brought up to date."""

        def catch_up_and_act(connection: sqlite3.Connection, looker: Looker) -> T:
            return act(connection, looker, self._catch_up(connection, looker))

        with self._usage, _WorkOn(self._path):
            return self._log.use(catch_up_and_act)

    def _catch_up(self, connection: sqlite3.Connection, looker: Looker) -> LogState:
        with self._between_batches():
            return self._log.catch_up(connection, looker)

    # -- caring ----------------------------------------------------------------------------------------------

    async def repair(self) -> list[Problem]:
        check_writable(self, read_only=self._read_only)
        with self._usage, _WorkOn(self._path):
            self._wait_for_batch()
            self._recovery.clean_up()
            return list(Repair(self._directory, self._sessions, self._locks).run())

    async def check(self) -> list[Problem]:
        with self._usage, _WorkOn(self._path):
            self._wait_for_batch()
            return check_everything(self._directory, self._sessions)

    async def strays_of(self, user_id: str) -> list[str]:
        with self._usage, _WorkOn(self._path):
            unlisted = {session_id for session_id, _ in self._indexed(Index.errors)}
            return list(stray_files(self._directory, user_id, unlisted))

    def _wait_for_batch(self) -> None:
        """Before reading: flush what was interrupted, and let a batch of several files be made to its end.

        The batch of a writer that died is finished.
        """
        self._directory.flush_owed()
        if self._read_only:
            self._look_for_writers()
        if not journal.is_waiting(self._directory):
            return
        if not self._read_only:
            self._recovery.finish_journal()
            return
        with self._locks.shared_in_turn(BATCHES):
            if journal.is_waiting(self._directory):
                raise StoreUnavailable(
                    f"{self.url} holds a batch whose writer died: open it once for writing, which finishes the batch"
                )

    def _look_for_writers(self) -> None:
        """Whoever only reads may have come before anybody who takes locks."""
        if self._locks.are_there:
            return
        with _finding:
            if not self._locks.are_there:
                self._directory.find_own()
                self._find_locks()


def _check_file_names(path: str) -> None:
    encoding = sys.getfilesystemencoding()
    if encoding != "utf-8":
        raise StoreUnavailable(
            f"{path} cannot be used: a store's file names are UTF-8, and this Python's are {encoding}: "
            "set PYTHONUTF8=1, or a locale like C.UTF-8"
        )


class _WorkOn(NoneKept):
    """A block that works on files: what the system refuses becomes an error of ours, and no lock is kept after it."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        super().__exit__(kind, error, traceback)
        if isinstance(error, OSError):
            raise StoreUnavailable(f"{self._path}: {error.strerror or error}") from error
