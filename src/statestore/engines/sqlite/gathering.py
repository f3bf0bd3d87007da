"""Group commit: whoever writes takes along everyone who waits.

Many threads commit at once. One of them leads: it takes all batches that wait and has them made in one transaction,
with one flush; the others sleep until theirs is done. Then they wake one after the other, and only when the last of
them is awake, somebody leads the next group, with all that came in meanwhile. Were all woken together, or were somebody
to lead already, they would contend for the interpreter, statement by statement: three changes of thread a batch instead
of one, and small groups.
Nothing here can be left in disorder by a thread that is interrupted: whoever sleeps looks up now and then, and leads
itself if nobody does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Final

from msgspec import Struct

from statestore.engine import Batch, Result
from statestore.engines.forking import forget_after_fork
from statestore.waking import Sleep

NAP: Final = 0.05
"""Seconds after which a thread that nobody woke looks up."""


class Slot(Struct, eq=False):
    """A batch on its way into a transaction, and what became of it, as soon as that is decided."""

    batch: Batch
    result: Result | None = None


class _Entry(Struct, eq=False):
    """What a thread wants to have made that sleeps meanwhile."""

    slots: list[Slot]
    sleep: Sleep
    group: int | None = None
    """The group that took it along last, if any did."""
    is_over: bool = False
    """Whether nobody sleeps here any more."""


Make = Callable[[list[Slot]], None]
"""Fills in the results of some batches, all in one go."""


class Gathering:
    """Where the threads of one store meet."""

    def __init__(self) -> None:
        self.forget()
        forget_after_fork(self)

    def forget(self) -> None:
        """In a child process: nobody waits here yet."""
        self._leading = threading.Lock()
        self._group = 0
        """How many groups there were, with the one that is being made."""
        self._waiting: list[_Entry] = []
        self._made: list[_Entry] = []
        """Who sleep on though theirs is done: the last one is the next to be woken."""

    def commit(self, batches: Sequence[Batch], make: Make) -> list[Result]:
        """Have batches made, each wholly or not at all, together with whatever else waits."""
        slots = list(map(Slot, batches))
        if self._leading.locked() or self._made:
            self._wait_or_lead(slots, make)
        else:
            self._lead(slots, make)
        return list(map(_RESULT, slots))

    def _wait_or_lead(self, slots: list[Slot], make: Make) -> None:
        """Sleep until somebody has made these, or it is ours to lead.

        Whoever is interrupted while somebody makes them waits for that to end. Else they would be stored after the
        caller has looked, found nothing, and stored them again.
        """
        entry = _Entry(slots, Sleep())
        is_new = True
        try:
            while slots[-1].result is None:  # results come in order, so the last one is the one to look at
                if entry.group != self._group and entry not in self._waiting:
                    self._waiting.append(entry)  # as a new one, or because whoever took it along was interrupted
                if self._leading.locked() or (is_new and self._made):  # else nobody would wake us
                    entry.sleep.until_woken(NAP)
                    is_new = False
                else:
                    self._withdraw(entry)
                    self._lead(slots, make)
        finally:
            if not self._withdraw(entry):
                while slots[-1].result is None and self._is_being_made(entry):
                    entry.sleep.until_woken(NAP)
            entry.is_over = True
            self._wake_next()

    def _is_being_made(self, entry: _Entry) -> bool:
        return entry.group == self._group and self._leading.locked()

    def _withdraw(self, entry: _Entry) -> bool:
        """Take an entry out of the line; whether it was there, and nobody else takes it."""
        try:
            self._waiting.remove(entry)
        except ValueError:
            return False
        return True

    def _lead(self, own: list[Slot], make: Make) -> None:
        """Make these, and what waits; unless they were made by whoever led just before."""
        try:
            with self._leading:
                if own[-1].result is not None:
                    return
                self._group += 1
                while self._made:  # somebody was interrupted, and did not wake the next one
                    self._wake_next()
                others = self._take_along() if self._waiting else []
                try:
                    make(_undecided(own, others) if others or own[0].result is not None else own)
                finally:
                    self._made = others[::-1]
        finally:
            if self._made or self._waiting:
                self._wake_next()

    def _take_along(self) -> list[_Entry]:
        """Who waits, as part of this group. Whoever wakes up before theirs is made knows that it is being made."""
        others: list[_Entry] = []
        for entry in self._waiting[:]:
            entry.group = self._group
            if self._withdraw(entry):  # else its thread was faster, and leaves
                others.append(entry)
        return others

    def _wake_next(self) -> None:
        """Wake the next one whose batch is done, or when all are awake, the next one to lead."""
        with suppress(IndexError):
            while (entry := self._made.pop()).is_over:
                pass
            entry.sleep.wake()
            return
        for entry in self._waiting[:1]:
            entry.sleep.wake()


_RESULT: Final[Callable[[Slot], Result]] = attrgetter("result")


def _undecided(own: list[Slot], others: Iterable[_Entry]) -> list[Slot]:
    """What is left to do: an interrupted leader may have made some of these."""
    return [slot for slots in (own, *(entry.slots for entry in others)) for slot in slots if slot.result is None]
