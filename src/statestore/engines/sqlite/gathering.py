"""Group commit: whoever writes takes along everyone who waits.

Many threads commit at once. One of them leads: it takes all batches that wait and has them made in one transaction,
with one flush; the others sleep until theirs is done. What came in meanwhile is the next group, led by one of its own.
It is that one who wakes them, right before its flush: woken earlier, they would only contend with it for the
interpreter, thread by thread and statement by statement.
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
        self._waiting: list[_Entry] = []
        self.made: list[_Entry] = []
        """Who sleep on though theirs is done, until the next group is about to be flushed."""

    def commit(self, batches: Sequence[Batch], make: Make) -> list[Result]:
        """Have batches made, each wholly or not at all, together with whatever else waits."""
        slots = list(map(Slot, batches))
        while slots[-1].result is None:  # results come in order, so the last one is the one to look at
            if self._leading.locked():
                self._wait(slots)
            else:
                self._lead(slots, make)
        return list(map(_RESULT, slots))

    def _wait(self, slots: list[Slot]) -> None:
        """Sleep until somebody has made these, or it is time to look up: whoever took them along may be gone."""
        entry = _Entry(slots, Sleep())
        self._waiting.append(entry)
        try:
            if self._leading.locked():
                entry.sleep.until_woken(NAP)
        finally:
            if slots[-1].result is None:
                with suppress(ValueError):
                    self._waiting.remove(entry)

    def _lead(self, own: list[Slot], make: Make) -> None:
        """Make these, and what waits; unless they were made by whoever led just before."""
        try:
            with self._leading:
                if own[-1].result is not None:
                    return
                others: list[_Entry] = []
                if self._waiting:
                    others = self._waiting[:]
                    del self._waiting[: len(others)]
                try:
                    make(_undecided(own, others) if others or own[0].result is not None else own)
                finally:
                    if self.made:
                        self.wake_made()
                    self.made = others
                    if others and not self._waiting:
                        self.wake_made()
        finally:
            for entry in self._waiting[:1]:  # the next to lead; what it needs is there by now
                entry.sleep.wake()

    def wake_made(self) -> None:
        """For who leads: wake those whose batches the group before has made."""
        made, self.made = self.made, []
        for entry in made:
            entry.sleep.wake()


_RESULT: Final[Callable[[Slot], Result]] = attrgetter("result")


def _undecided(own: list[Slot], others: Iterable[_Entry]) -> list[Slot]:
    """What is left to do: an interrupted leader may have made some of these."""
    return [slot for slots in (own, *(entry.slots for entry in others)) for slot in slots if slot.result is None]
