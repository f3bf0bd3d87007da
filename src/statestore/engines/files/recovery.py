"""After a crash: the batch that a writer left half made is made to its end, and its temporary files go."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Sequence

import msgspec

from statestore.engine import ChangeSession
from statestore.engines.files import journal
from statestore.engines.files.directory import Directory, NotAFile
from statestore.engines.files.editing import changed
from statestore.engines.files.identity import status_of
from statestore.engines.files.journal import Step, fingerprint
from statestore.engines.files.locks import ALL_STRIPES, BATCHES, PREPARING, Locks, stripe_of
from statestore.errors import InvalidValue
from statestore.records import said_in
from statestore.seedform.pieces import Pieces
from statestore.seedform.text import SessionText

log = logging.getLogger("statestore")


def owner_of(temporary: str) -> str | None:
    """The lock that a temporary file is named for; ``None`` if somebody else put it there."""
    owner = temporary.partition(".")[0]
    return owner if owner in (PREPARING, *ALL_STRIPES) else None


def _is_file(status: os.stat_result | None) -> bool:
    """Whether there is something that is no directory, which would take along what is in it."""
    return status is not None and not stat.S_ISDIR(status.st_mode)


class Recovery:
    """Finishes journals, one's own and those of the dead."""

    def __init__(self, directory: Directory, locks: Locks) -> None:
        self._directory = directory
        self._locks = locks

    def make(self, steps: Sequence[Step], done: Sequence[Step] = ()) -> None:
        """Put everything in its place; then the journal has done its work. What goes is a temporary file then.

        What the dead had done already is flushed, too: they may not have come to that.
        """
        for category in dict.fromkeys(step.category for step in (*steps, *done)):
            here = [step for step in steps if step.category == category]
            with self._directory.category(category) as directory:
                if directory is None:
                    continue  # removed with all that was in it, after a crash: there is nothing to put anywhere
                for step in here:
                    if step.after is not None:
                        self._directory.put_in_place(step.temporary, directory, category, step.name)
                    elif _is_file(status_of(directory, step.name)):
                        self._directory.temporary.take_out(directory, step.name, step.temporary)
                self._directory.lasting.flush(directory)
        journal.remove_journal(self._directory)

    def finish_journal(self) -> None:
        """Wait for the batch that is being made; if its writer died, make it to its end."""
        with self._locks.alone(BATCHES):
            self.finish_journal_of_the_dead()

    def finish_journal_of_the_dead(self) -> None:
        """With the lock for batches held, a journal is one whose writer died."""
        left = journal.read_journal(self._directory) if journal.is_waiting(self._directory) else None
        if left is None:
            return
        with self._locks.all_held(stripe_of((step.category, step.name)) for step in left.steps):
            self.make([merged for step in left.steps if (merged := self._remaining(step)) is not None], left.steps)
            for step in left.steps:  # only now: what is there twice tells whoever comes next what is still to be done
                self._directory.temporary.discard(step.temporary)

    def _remaining(self, step: Step) -> Step | None:
        """What is still to be done of a step: all of it, nothing, or our change on top of somebody else's."""
        try:
            found = self._read_again(step)
        except NotAFile as error:
            log.warning("a batch whose writer died leaves this out: %s", error)
            return None
        now = fingerprint(found[0] if found else None)
        is_ready = step.after is None or self._directory.temporary.is_there(step.temporary)
        if now == step.before and now != step.after and is_ready:
            return step
        merged = None
        if now not in (step.before, step.after) and found is not None and step.change is not None and is_ready:
            merged = self._merged(step.change.as_change(), found[0])
        if merged is None or found is None:
            return None  # done already, or another program's later word on it
        temporary, _ = self._directory.temporary.prepare(stripe_of((step.category, step.name)), merged, found[1])
        return Step(step.category, step.name, temporary, now, fingerprint(merged))

    def _read_again(self, step: Step) -> tuple[Pieces, os.stat_result] | None:
        where = f"{step.category}/{step.name}"
        with self._directory.category(step.category) as directory:
            return None if directory is None else self._directory.read(directory, step.name, where)

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
        there = {said_in(record.kind, record.body) for record in text.records.in_order()}
        if change.append and all(said_in(record.kind, record.body) in there for record in change.append):
            return None
        # A number that was free then may be taken now.
        unnumbered = tuple(msgspec.structs.replace(record, seq=None) for record in change.append)
        return changed(text, msgspec.structs.replace(change, append=unnumbered))[0].pieces

    def clean_up(self) -> None:
        """Finish what a crashed writer began, and remove the temporary files it left."""
        with self._locks.alone(BATCHES):
            self.finish_journal_of_the_dead()
            for name in self._directory.temporary.names():
                owner = owner_of(name)
                if owner is not None:
                    with self._locks.held_if_free(owner) as is_left_over:
                        if is_left_over:
                            self._directory.temporary.discard(name)
