"""A batch of several files before it happens: judged, planned, and written beside what is there.

All of this takes long and needs no file's lock. What was found is looked at once more when the locks are held.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from statestore.engine import Batch, ChangeSession, DeleteCategory, DeleteDocument
from statestore.engines.files import journal
from statestore.engines.files.directory import Directory
from statestore.engines.files.documents import documents_in
from statestore.engines.files.journal import Journal, SessionChange, Step, fingerprint
from statestore.engines.files.locks import PREPARING
from statestore.engines.files.planning import (
    ChangedMeanwhile,
    Found,
    Place,
    Plan,
    Surveyor,
    place_of_file,
    planned,
    present,
)
from statestore.engines.judging import SingleChange, item_of, judge


class Single(NamedTuple):
    """A change of one file, and which change of the batch it comes from."""

    change: SingleChange
    owner: int


class PreparedFile(NamedTuple):
    """One file of a batch: what was found there, and what is to take its place."""

    owner: int
    place: Place
    before: Found | None
    plan: Plan
    status: os.stat_result | None
    """What a stat says of the temporary file, if there is one."""


class PreparedBatch:
    """All files of a batch, and its journal, which needs only to be put in its place."""

    def __init__(self, singles: list[Single]) -> None:
        self.singles = singles
        self.files: list[PreparedFile] = []
        self.steps: list[Step] = []
        self.journal = ""
        self.is_journalled = False
        """Whether the temporary files belong to the journal, which is in its place or about to be."""

    def unneeded(self) -> Iterator[str]:
        """The temporary files that nobody needs: those that hold what was removed, or all if nothing happened."""
        for step in self.steps:
            if (step.after is None) == self.is_journalled:
                yield step.temporary
        if self.journal and not self.is_journalled:
            yield self.journal


class Preparer:
    """Prepares batches. Whoever does holds the lock that their temporary files are named for."""

    def __init__(self, directory: Directory, surveyor: Surveyor) -> None:
        self._directory = directory
        self._surveyor = surveyor

    @contextmanager
    def prepared(self, batch: Batch) -> Generator[PreparedBatch]:
        """A batch that is ready to happen. What is then left of its temporary files goes."""
        prepared = PreparedBatch(self._singles(batch))
        try:
            self._prepare(batch, prepared)
            yield prepared
        finally:
            for temporary in prepared.unneeded():
                self._directory.temporary.discard(temporary)

    def check_unchanged(self, batch: Batch, prepared: PreparedBatch) -> None:
        """Raise `ChangedMeanwhile` if what is there is not what the batch was prepared for."""
        if self._singles(batch) != prepared.singles:
            raise ChangedMeanwhile("there are other documents in a category by now")
        self._surveyor.check_all_unchanged((file.place, file.before, file.plan) for file in prepared.files)

    def _singles(self, batch: Batch) -> list[Single]:
        """The batch with each category's deletion spelt out."""
        singles: list[Single] = []
        for owner, change in enumerate(batch):
            if isinstance(change, DeleteCategory):
                infos = documents_in(self._directory, change.category)
                singles += (Single(DeleteDocument(i.category, i.name, i.kind), owner) for i in infos)
            else:
                singles.append(Single(change, owner))
        return singles

    def _prepare(self, batch: Batch, prepared: PreparedBatch) -> None:
        changes = [single.change for single in prepared.singles]
        found = [self._surveyor.find_alone(change) for change in changes]
        by_item = {item_of(change): present(f) for change, f in zip(changes, found, strict=True)}
        judge(batch, lambda change: by_item.get(item_of(change)))
        plans = [planned(change, f) for change, f in zip(changes, found, strict=True)]
        for (change, owner), before, plan in zip(prepared.singles, found, plans, strict=True):
            place = place_of_file(change)
            step, status = self._step(change, place, before, plan)
            prepared.steps.append(step)
            prepared.files.append(PreparedFile(owner, place, before, plan, status))
        prepared.journal = journal.prepared(self._directory, Journal(prepared.steps))

    def _step(
        self, change: SingleChange, place: Place, before: Found | None, plan: Plan
    ) -> tuple[Step, os.stat_result | None]:
        temporary, status = self._directory.temporary.name_for(PREPARING), None
        with self._directory.category(place.category, create=plan.body is not None) as directory:
            if directory is not None:
                self._directory.check_writable(directory, place.category)
                if plan.body is not None:
                    self._directory.temporary.check_within_reach(directory, f"{self._directory.path}/{place.category}")
                self._directory.spelling.check_is_free(directory, place.file)
        if plan.body is not None:
            temporary, status = self._directory.temporary.prepare(
                PREPARING, plan.body, before.status if before else None
            )
        logical = SessionChange.of(change) if isinstance(change, ChangeSession) else None
        old = fingerprint(before.body) if before else None
        return Step(place.category, place.file, temporary, old, fingerprint(plan.body), logical), status
