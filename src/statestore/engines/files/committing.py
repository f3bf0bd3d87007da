"""One file changed: found, judged, written beside the old one, and put in its place by a single rename."""

from __future__ import annotations

import os

from statestore.engine import Outcome
from statestore.engines.files import journal
from statestore.engines.files.directory import Directory
from statestore.engines.files.locks import Locks
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
from statestore.engines.files.recovery import Recovery
from statestore.engines.judging import SingleChange, judge


class Committer:
    """Makes changes of one file."""

    def __init__(self, directory: Directory, locks: Locks, surveyor: Surveyor, recovery: Recovery) -> None:
        self._directory = directory
        self._locks = locks
        self._surveyor = surveyor
        self._recovery = recovery

    def commit_one(self, change: SingleChange) -> Outcome:
        """Make one change; a single rename, so it needs no journal."""
        place = place_of_file(change)
        stripe = place.stripe
        while True:
            with self._locks.held(stripe):
                if not journal.is_waiting(self._directory):
                    try:
                        return self._made(change, place, stripe)
                    except ChangedMeanwhile:
                        continue  # another program wrote it: look again, and merge with that
            self._recovery.finish_journal()

    def _made(self, change: SingleChange, place: Place, stripe: str) -> Outcome:
        with self._directory.category(place.category) as directory:
            found = None if directory is None else self._surveyor.find(change, directory, place)
            _judge_one(change, found)
            plan = planned(change, found)
            if plan.body is None:
                return self._removed(directory, place, found)
            if directory is not None and found and found.image and plan.text is found.image.text:
                self._directory.lasting.flush(directory)  # whoever wrote it may have died before that
                return Outcome(found.version, found.version, plan.seqs)
            if directory is not None:
                return self._written(directory, place, stripe, found, plan)
        with self._directory.category(place.category, create=True) as directory:
            assert directory is not None
            return self._written(directory, place, stripe, found, plan)

    def _written(self, directory: int, place: Place, stripe: str, found: Found | None, plan: Plan) -> Outcome:
        assert plan.body is not None
        self._directory.spelling.check_is_free(directory, place.file)
        temporary, status = self._directory.temporary.prepare(stripe, plan.body, found.status if found else None)
        with self._directory.changing(place.category):
            try:
                self._surveyor.check_unchanged(directory, place, found)
                self._directory.put_in_place(temporary, directory, place.category, place.file)
            except BaseException:
                self._directory.temporary.discard(temporary)
                raise
            self._directory.lasting.flush(directory)
        status = self._directory.temporary.status_in_place(directory, place.file, status)
        return Outcome(found.version if found else None, self._surveyor.noted(place, plan, status), plan.seqs)

    def _removed(self, directory: int | None, place: Place, found: Found | None) -> Outcome:
        if directory is None:
            return Outcome(None)
        if found is None:
            self._directory.lasting.flush(directory)  # whoever removed it may have died before that
            return Outcome(None)
        self._surveyor.check_unchanged(directory, place, found)
        with self._directory.changing(place.category):
            os.unlink(place.file, dir_fd=directory)
            self._directory.lasting.flush(directory)
        self._surveyor.forget(place)
        return Outcome(found.version, deleted=1)


def _judge_one(change: SingleChange, found: Found | None) -> None:
    judge([change], lambda _: present(found))
