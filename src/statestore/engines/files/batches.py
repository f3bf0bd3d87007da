"""Several files changed together, all or none: prepared, then journalled, then put in their places.

Only the last two hold up those who write the same files, or list: nobody waits while a thousand files are read.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress

from statestore.engine import Batch, DeleteCategory, Outcome, PreconditionFailed
from statestore.engines.files import journal
from statestore.engines.files.directory import Directory
from statestore.engines.files.locks import ALL_STRIPES, BATCHES, PREPARING, Locks
from statestore.engines.files.planning import ChangedMeanwhile, Surveyor, place_of_file
from statestore.engines.files.preparing import PreparedBatch, PreparedFile, Preparer
from statestore.engines.files.recovery import Recovery


class BatchMaker:
    """Makes batches of several files."""

    def __init__(self, directory: Directory, locks: Locks, surveyor: Surveyor, recovery: Recovery) -> None:
        self._directory = directory
        self._locks = locks
        self._surveyor = surveyor
        self._recovery = recovery
        self._preparer = Preparer(directory, surveyor)

    def commit_all(self, batch: Batch) -> list[Outcome]:
        """Make several changes, all or none.

        If somebody came between while it was prepared, it is prepared again with the locks held, and judged by that.
        """
        with self._locks.shared(PREPARING):
            judged_too_soon = suppress(ChangedMeanwhile, PreconditionFailed)
            with judged_too_soon, self._preparer.prepared(batch) as prepared, self._alone(batch):
                if self._directory.temporary.keeps_nanoseconds:  # else a later state may look like the one found
                    return self._made(batch, prepared)
            while True:
                with suppress(ChangedMeanwhile), self._alone(batch), self._preparer.prepared(batch) as prepared:
                    return self._made(batch, prepared)

    @contextmanager
    def _alone(self, batch: Batch) -> Generator[None]:
        """Held while a batch happens: nobody lists, and nobody who takes locks writes what it changes."""
        with self._locks.alone(BATCHES):
            self._recovery.finish_journal_of_the_dead()
            with self._locks.all_held(_stripes(batch)):
                yield

    def _made(self, batch: Batch, prepared: PreparedBatch) -> list[Outcome]:
        self._preparer.check_unchanged(batch, prepared)
        prepared.is_journalled = True
        try:
            journal.put_in_place(self._directory, prepared.journal)
        except BaseException:
            if journal.is_waiting(self._directory):
                journal.remove_journal(self._directory)
            prepared.is_journalled = False
            raise
        self._recovery.make(prepared.steps)
        outcomes: list[list[Outcome]] = [[] for _ in batch]
        for file in prepared.files:
            outcomes[file.owner].append(self._outcome(file))
        return [
            _of_category(own) if isinstance(change, DeleteCategory) else own[0]
            for change, own in zip(batch, outcomes, strict=True)
        ]

    def _outcome(self, file: PreparedFile) -> Outcome:
        version = None
        if file.status is None:
            self._surveyor.forget(file.place)
        else:
            version = self._surveyor.noted(file.place, file.plan, file.status)
        gone = int(file.plan.body is None and file.before is not None)
        return Outcome(file.before.version if file.before else None, version, file.plan.seqs, gone)


def _stripes(batch: Batch) -> list[str]:
    """The locks that a batch needs: all, if it empties a category, because nothing may be put there meanwhile."""
    if any(isinstance(change, DeleteCategory) for change in batch):
        return ALL_STRIPES
    return [place_of_file(change).stripe for change in batch if not isinstance(change, DeleteCategory)]


def _of_category(documents: list[Outcome]) -> Outcome:
    """The outcome of emptying a category: the number of its documents."""
    return Outcome(None, deleted=sum(outcome.deleted for outcome in documents))
