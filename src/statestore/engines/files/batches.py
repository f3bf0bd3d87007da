"""Several files changed together, all or none: prepared, then journalled, then put in their places."""

from __future__ import annotations

import os
from collections.abc import Sequence

from statestore.engine import Batch, ChangeSession, DeleteCategory, DeleteDocument, Outcome
from statestore.engines.files import journal
from statestore.engines.files.directory import Directory
from statestore.engines.files.documents import documents_in
from statestore.engines.files.journal import Journal, SessionChange, Step, fingerprint
from statestore.engines.files.locks import ALL_STRIPES, BATCHES, Locks
from statestore.engines.files.planning import ChangedMeanwhile, Found, Plan, Surveyor, place_of, planned, present
from statestore.engines.files.recovery import Recovery
from statestore.engines.judging import SingleChange, item_of, judge


class BatchMaker:
    """Makes batches of several files."""

    def __init__(self, directory: Directory, locks: Locks, surveyor: Surveyor, recovery: Recovery) -> None:
        self._directory = directory
        self._locks = locks
        self._surveyor = surveyor
        self._recovery = recovery

    def commit_all(self, batch: Batch) -> list[Outcome]:
        """Make several changes, all or none."""
        while True:
            with self._locks.alone(BATCHES):
                self._recovery.finish_journal_of_the_dead()
                with self._locks.all_held(_stripes(batch)):
                    singles, owners = self._singles(batch)
                    try:
                        return _per_change(batch, owners, self._made_together(batch, singles))
                    except ChangedMeanwhile:
                        continue

    def _singles(self, batch: Batch) -> tuple[list[SingleChange], list[int]]:
        """The batch with each category's deletion spelt out, and which change of the batch each comes from."""
        singles: list[SingleChange] = []
        owners: list[int] = []
        for index, change in enumerate(batch):
            if isinstance(change, DeleteCategory):
                infos = documents_in(self._directory, change.category)
                several: list[SingleChange] = [DeleteDocument(i.category, i.name, i.kind) for i in infos]
            else:
                several = [change]
            singles += several
            owners += [index] * len(several)
        return singles, owners

    def _made_together(self, batch: Batch, singles: list[SingleChange]) -> list[Outcome]:
        found = [self._surveyor.find_alone(change) for change in singles]
        by_item = {item_of(change): present(f) for change, f in zip(singles, found, strict=True)}
        judge(batch, lambda change: by_item.get(item_of(change)))
        plans = [planned(change, f) for change, f in zip(singles, found, strict=True)]
        steps: list[Step] = []
        statuses: list[os.stat_result | None] = []
        try:
            for change, before, plan in zip(singles, found, plans, strict=True):
                step, status = self._step(change, before, plan)
                steps.append(step)
                statuses.append(status)
            for change, before in zip(singles, found, strict=True):
                self._surveyor.check_alone(change, before)
            journal.write_journal(self._directory, Journal(steps))
        except BaseException:
            self._take_back(steps)
            raise
        self._recovery.make(steps)
        outcomes: list[Outcome] = []
        for change, before, plan, status in zip(singles, found, plans, statuses, strict=True):
            version = None
            if status is None:
                self._surveyor.forget(place_of(change))
            else:
                version = self._surveyor.noted(place_of(change), plan, status)
            gone = int(plan.body is None and before is not None)
            outcomes.append(Outcome(before.version if before else None, version, plan.seqs, gone))
        return outcomes

    def _take_back(self, steps: Sequence[Step]) -> None:
        """After a failure before anything was put in its place: the batch did not happen."""
        if journal.is_waiting(self._directory):
            journal.remove_journal(self._directory)
        for step in steps:
            if step.temporary is not None:
                self._directory.temporary.discard(step.temporary)

    def _step(self, change: SingleChange, before: Found | None, plan: Plan) -> tuple[Step, os.stat_result | None]:
        place = place_of(change)
        temporary = status = None
        with self._directory.category(place.category, create=plan.body is not None) as directory:
            if directory is not None:
                self._directory.check_writable(directory, place.category)
                if plan.body is not None:
                    self._directory.temporary.check_within_reach(directory, f"{self._directory.path}/{place.category}")
                self._directory.spelling.check_is_free(directory, place.file)
        if plan.body is not None:
            temporary, status = self._directory.temporary.prepare(
                place.stripe, plan.body, before.status if before else None
            )
        logical = SessionChange.of(change) if isinstance(change, ChangeSession) else None
        old = fingerprint(before.body) if before else None
        return Step(place.category, place.file, old, fingerprint(plan.body), temporary, logical), status


def _stripes(batch: Batch) -> list[str]:
    """The locks that a batch needs: all, if it empties a category, because nothing may be put there meanwhile."""
    if any(isinstance(change, DeleteCategory) for change in batch):
        return ALL_STRIPES
    return [place_of(change).stripe for change in batch if not isinstance(change, DeleteCategory)]


def _per_change(batch: Batch, owners: list[int], outcomes: list[Outcome]) -> list[Outcome]:
    """One outcome for each change of the batch: a category's is the number of its documents."""
    by_owner: list[list[Outcome]] = [[] for _ in batch]
    for owner, outcome in zip(owners, outcomes, strict=True):
        by_owner[owner].append(outcome)
    return [
        Outcome(None, deleted=sum(outcome.deleted for outcome in own)) if isinstance(change, DeleteCategory) else own[0]
        for change, own in zip(batch, by_owner, strict=True)
    ]
