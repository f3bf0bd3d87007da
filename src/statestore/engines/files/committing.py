"""The write door of the files engine: one file at a time, or several through the journal."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from statestore.engine import (
    Change,
    ChangeSession,
    DeleteCategory,
    DeleteDocument,
    DeleteSession,
    Outcome,
    PutDocument,
)
from statestore.engines.files import journal
from statestore.engines.files.directory import ChangedMeanwhile, Directory, Identity, NotAFile
from statestore.engines.files.documents import documents_in, file_name
from statestore.engines.files.editing import changed, created
from statestore.engines.files.image import SessionImage, version_text
from statestore.engines.files.journal import Journal, SessionChange, Step, fingerprint
from statestore.engines.files.locks import BATCHES, Locks, stripe_of
from statestore.engines.files.sessions import SUFFIX, SessionFiles
from statestore.engines.judging import Item, Present, item_of, judge
from statestore.errors import CorruptDocument, CorruptSession, InvalidValue
from statestore.names import SESSIONS
from statestore.records import decode_body
from statestore.seedform.pieces import Pieces
from statestore.seedform.text import SessionText
from statestore.stored import Version

log = logging.getLogger("statestore")

SingleChange = PutDocument | DeleteDocument | ChangeSession | DeleteSession


class _Place(NamedTuple):
    """Where an item's file is."""

    category: str
    file: str

    @property
    def stripe(self) -> str:
        return stripe_of(self)


def _place_of(change: SingleChange) -> _Place:
    if isinstance(change, (ChangeSession, DeleteSession)):
        return _Place(SESSIONS, change.id + SUFFIX)
    return _Place(change.category, file_name(change.name, change.kind))


class _Found(NamedTuple):
    """What is there before a change: a file's bytes, and a session's image if it was understood."""

    body: Pieces
    status: os.stat_result
    version: Version
    image: SessionImage | None = None


class _Plan(NamedTuple):
    """What a change comes to: the bytes that will be there (``None``: no file), and the numbers given out."""

    body: Pieces | None
    text: SessionText | None = None
    seqs: tuple[int, ...] = ()


class Committer:
    """Makes changes durable."""

    def __init__(self, directory: Directory, locks: Locks, sessions: SessionFiles) -> None:
        self._directory = directory
        self._locks = locks
        self._sessions = sessions

    # -- one file --------------------------------------------------------------------------------------------

    def commit_one(self, change: SingleChange) -> Outcome:
        """Make one change; a single rename, so it needs no journal."""
        place = _place_of(change)
        stripe = place.stripe
        while True:
            with self._locks.held(stripe):
                if not journal.is_waiting(self._directory):
                    try:
                        return self._made(change, place, stripe)
                    except ChangedMeanwhile:
                        continue  # another program wrote it: look again, and merge with that
            self.finish_journal()

    def _made(self, change: SingleChange, place: _Place, stripe: str) -> Outcome:
        with self._directory.category(place.category) as directory:
            found = None if directory is None else self._find(change, directory, place)
            _judge_one(change, found)
            plan = _planned(change, found)
            if plan.body is None:
                return self._removed(directory, place, found)
            if found is not None and found.image is not None and plan.text is found.image.text:
                return Outcome(found.version, found.version, plan.seqs)
            if directory is not None:
                return self._written(directory, place, stripe, found, plan)
        with self._directory.category(place.category, create=True) as directory:
            assert directory is not None
            return self._written(directory, place, stripe, found, plan)

    def _written(self, directory: int, place: _Place, stripe: str, found: _Found | None, plan: _Plan) -> Outcome:
        assert plan.body is not None
        self._directory.check_name_is_free(directory, place.file)
        temporary, status = self._directory.prepare(stripe, plan.body, found.status if found else None)
        try:
            self._check_unchanged(directory, place, found)
            self._directory.put_in_place(temporary, directory, place.file)
        except BaseException:
            self._directory.discard(temporary)
            raise
        self._directory.flush_directory(directory)
        status = self._directory.stat_after_rename(directory, place.file, status)
        return Outcome(found.version if found else None, self._noted(place, plan, status), plan.seqs)

    def _removed(self, directory: int | None, place: _Place, found: _Found | None) -> Outcome:
        if directory is None or found is None:
            return Outcome(None)
        self._check_unchanged(directory, place, found)
        os.unlink(place.file, dir_fd=directory)
        self._directory.flush_directory(directory)
        self._forget(place)
        return Outcome(found.version, deleted=1)

    def _check_unchanged(self, directory: int, place: _Place, found: _Found | None) -> None:
        """Raise `ChangedMeanwhile` if somebody without our lock replaced the file since we read it.

        What remains is the instant between this look and the rename that follows.
        """
        now = self._directory.stat(directory, place.file)
        is_same = now is None if found is None else now is not None and Identity.of(now) == Identity.of(found.status)
        if not is_same:
            raise ChangedMeanwhile(f"{place.category}/{place.file} changed")

    # -- several files ---------------------------------------------------------------------------------------

    def commit_all(self, batch: Sequence[Change]) -> list[Outcome]:
        """Make several changes, all or none."""
        while True:
            with self._locks.held(BATCHES):
                self._finish_journal_of_the_dead()
                singles, owners = self._singles(batch)
                with self._locks.hold(_place_of(single).stripe for single in singles):
                    try:
                        return _per_change(batch, owners, self._made_together(batch, singles, owners))
                    except ChangedMeanwhile:
                        continue

    def _singles(self, batch: Sequence[Change]) -> tuple[list[SingleChange], list[int]]:
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

    def _made_together(self, batch: Sequence[Change], singles: list[SingleChange], owners: list[int]) -> list[Outcome]:
        found = [self._find_alone(change) for change in singles]
        by_item = {item_of(change): _present(f) for change, f in zip(singles, found, strict=True)}
        judge(batch, by_item.get)
        plans = [_planned(change, f) for change, f in zip(singles, found, strict=True)]
        steps: list[Step] = []
        statuses: list[os.stat_result | None] = []
        try:
            for change, before, plan in zip(singles, found, plans, strict=True):
                step, status = self._step(change, before, plan)
                steps.append(step)
                statuses.append(status)
            for change, before in zip(singles, found, strict=True):
                self._check_alone(change, before)
            journal.write_journal(self._directory, Journal(steps))
        except BaseException:
            self._take_back(steps)
            raise
        self._make(steps)
        outcomes: list[Outcome] = []
        for change, before, plan, status in zip(singles, found, plans, statuses, strict=True):
            version = None
            if status is None:
                self._forget(_place_of(change))
            else:
                version = self._noted(_place_of(change), plan, status)
            gone = int(plan.body is None and before is not None)
            outcomes.append(Outcome(before.version if before else None, version, plan.seqs, gone))
        return outcomes

    def _take_back(self, steps: Sequence[Step]) -> None:
        """After a failure before anything was put in its place: the batch did not happen."""
        if journal.is_waiting(self._directory):
            journal.remove_journal(self._directory)
        for step in steps:
            if step.temporary is not None:
                self._directory.discard(step.temporary)

    def _step(self, change: SingleChange, before: _Found | None, plan: _Plan) -> tuple[Step, os.stat_result | None]:
        place = _place_of(change)
        temporary = status = None
        with self._directory.category(place.category, create=plan.body is not None) as directory:
            if directory is not None:
                self._directory.check_writable(directory, place.category)
                self._directory.check_name_is_free(directory, place.file)
        if plan.body is not None:
            temporary, status = self._directory.prepare(place.stripe, plan.body, before.status if before else None)
        logical = SessionChange.of(change) if isinstance(change, ChangeSession) else None
        old = fingerprint(before.body) if before else None
        return Step(place.category, place.file, old, fingerprint(plan.body), temporary, logical), status

    def _make(self, steps: Sequence[Step]) -> None:
        """Put everything in its place; then the journal has done its work."""
        for category in dict.fromkeys(step.category for step in steps):
            here = [step for step in steps if step.category == category]
            with self._directory.category(category) as directory:
                if directory is None:
                    continue  # removed with all that was in it, after a crash: there is nothing to put anywhere
                for step in here:
                    if step.temporary is not None:
                        self._directory.put_in_place(step.temporary, directory, step.name)
                    elif self._directory.stat(directory, step.name) is not None:
                        os.unlink(step.name, dir_fd=directory)
                self._directory.flush_directory(directory)
        journal.remove_journal(self._directory)

    # -- after a crash ---------------------------------------------------------------------------------------

    def finish_journal(self) -> None:
        """Wait for the batch that is being made; if its writer died, make it to its end."""
        with self._locks.held(BATCHES):
            self._finish_journal_of_the_dead()

    def _finish_journal_of_the_dead(self) -> None:
        """With the lock for batches held, a journal is one whose writer died."""
        left = journal.read_journal(self._directory) if journal.is_waiting(self._directory) else None
        if left is None:
            return
        with self._locks.hold(stripe_of((step.category, step.name)) for step in left.steps):
            self._make([merged for step in left.steps if (merged := self._remaining(step)) is not None])

    def _remaining(self, step: Step) -> Step | None:
        """What is still to be done of a step: all of it, nothing, or our change on top of somebody else's."""
        found = self._read_again(step)
        now = fingerprint(found[0] if found else None)
        is_ready = step.temporary is None or self._directory.has_temporary(step.temporary)
        if now == step.before and now != step.after and is_ready:
            return step
        merged = None
        if now not in (step.before, step.after) and found is not None and step.change is not None and is_ready:
            merged = self._merged(step.change.as_change(), found[0])
        if step.temporary is not None:
            self._directory.discard(step.temporary)
        if merged is None or found is None:
            return None  # done already, or another program's later word on it
        temporary, _ = self._directory.prepare(stripe_of((step.category, step.name)), merged, found[1])
        return Step(step.category, step.name, now, fingerprint(merged), temporary)

    def _read_again(self, step: Step) -> tuple[Pieces, os.stat_result] | None:
        where = f"{step.category}/{step.name}"
        with self._directory.category(step.category) as directory:
            try:
                return None if directory is None else self._directory.read(directory, step.name, where)
            except NotAFile as error:
                log.warning("a batch whose writer died leaves this out: %s", error)
                return Pieces.of(b""), os.stat_result((0,) * 10)

    @staticmethod
    def _merged(change: ChangeSession, body: Pieces) -> Pieces | None:
        """Our change on top of what another program wrote since; ``None`` if it is in there, or would undo that."""
        if change.truncate_after is not None:
            return None
        try:
            text = SessionText(body.joined())
        except (msgspec.DecodeError, InvalidValue, UnicodeDecodeError, RecursionError) as error:
            log.warning(
                "a batch whose writer died leaves session %s out, which was damaged since: %s", change.id, error
            )
            return None
        there = {_said(record.kind, record.body) for record in text.records.in_order()}
        if change.append and all(_said(record.kind, record.body) in there for record in change.append):
            return None
        return changed(text, change)[0].pieces

    def clean_up(self) -> None:
        """Finish what a crashed writer began, and remove the temporary files it left."""
        with self._locks.held(BATCHES):
            self._finish_journal_of_the_dead()
            for name in self._directory.temporary_files():
                stripe = name.partition(".")[0]
                if stripe == journal.NAME:
                    self._directory.discard(name)  # only written with this lock held
                    continue
                with self._locks.held_if_free(stripe) as is_left_over:
                    if is_left_over:
                        self._directory.discard(name)

    # -- shared ----------------------------------------------------------------------------------------------

    def _find_alone(self, change: SingleChange) -> _Found | None:
        place = _place_of(change)
        with self._directory.category(place.category) as directory:
            return None if directory is None else self._find(change, directory, place)

    def _check_alone(self, change: SingleChange, found: _Found | None) -> None:
        place = _place_of(change)
        with self._directory.category(place.category) as directory:
            if directory is not None:
                self._check_unchanged(directory, place, found)

    def _find(self, change: SingleChange, directory: int, place: _Place) -> _Found | None:
        """What is there now. A session to be deleted need not be understood, unless its owner matters."""
        if isinstance(change, ChangeSession):
            return _found_image(self._sessions.image_in(directory, change.id))
        if isinstance(change, DeleteSession):
            try:
                image = self._sessions.image_in(directory, change.id)
            except CorruptSession:
                if change.requires.owner is not None:
                    raise
            else:
                return _found_image(image)
        where = f"{self._directory.path}/{place.category}/{place.file}"
        try:
            found = self._directory.read(directory, place.file, where)
        except NotAFile as error:
            kind = CorruptSession if isinstance(change, DeleteSession) else CorruptDocument
            raise kind(str(error)) from error
        if found is None:
            return None
        body, status = found
        return _Found(body, status, version_text(Identity.of(status), body.crc32()))

    def _noted(self, place: _Place, plan: _Plan, status: os.stat_result) -> Version:
        """Remember what was written; its version."""
        assert plan.body is not None
        if plan.text is None:
            return version_text(Identity.of(status), plan.body.crc32())
        return self._sessions.keep(place.file.removesuffix(SUFFIX), status, plan.text).version

    def _forget(self, place: _Place) -> None:
        if place.category == SESSIONS:
            self._sessions.forget(place.file.removesuffix(SUFFIX))


def _said(kind: str, body: bytes) -> tuple[str, str, str]:
    """What a record is known by, however another program spelt it: its kind, its moment, and its text."""
    record = decode_body(kind, body)
    return kind, record.timestamp_text, getattr(record, "content", "")


def _present(found: _Found | None) -> Present | None:
    if found is None:
        return None
    return Present(found.version, found.image.text.fields.user_id if found.image else None)


def _judge_one(change: SingleChange, found: _Found | None) -> None:
    def find(_: Item) -> Present | None:
        return _present(found)

    judge([change], find)


def _planned(change: SingleChange, found: _Found | None) -> _Plan:
    """What will be there after a change whose preconditions hold."""
    if isinstance(change, PutDocument):
        return _Plan(Pieces.of(change.body))
    if isinstance(change, (DeleteDocument, DeleteSession)):
        return _Plan(None)
    image = found.image if found else None
    text, seqs = created(change) if image is None else changed(image.text, change)
    return _Plan(text.pieces, text, seqs)


def _per_change(batch: Sequence[Change], owners: list[int], outcomes: list[Outcome]) -> list[Outcome]:
    """One outcome for each change of the batch: a category's is the number of its documents."""
    by_owner: list[list[Outcome]] = [[] for _ in batch]
    for owner, outcome in zip(owners, outcomes, strict=True):
        by_owner[owner].append(outcome)
    return [
        Outcome(None, deleted=sum(outcome.deleted for outcome in own)) if isinstance(change, DeleteCategory) else own[0]
        for change, own in zip(batch, by_owner, strict=True)
    ]


def _found_image(image: SessionImage | None) -> _Found | None:
    return None if image is None else _Found(image.body, image.status, image.version, image)
