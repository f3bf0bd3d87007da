"""Group commit: whoever writes takes along everyone who waits.

Many threads commit at once. One of them leads: it takes all batches that wait and has them made in one transaction,
with one flush; the others sleep until theirs is done. What came in meanwhile is the next group, led by one of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from enum import Enum, auto

from statestore.engine import Change, Outcome
from statestore.engines.forking import forget_after_fork

Batch = Sequence[Change]
Result = list[Outcome] | Exception


class _Stage(Enum):
    WAITING = auto()
    TAKEN = auto()
    DONE = auto()
    LEADING = auto()


class Slot:
    """A batch on its way into a transaction, and what became of it, as soon as that is decided."""

    __slots__ = ("batch", "result")

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.result: Result | None = None


class _Entry:
    """What one thread wants to have made."""

    __slots__ = ("slots", "stage", "wake")

    def __init__(self, batches: Sequence[Batch]) -> None:
        self.slots = [Slot(batch) for batch in batches]
        self.stage = _Stage.WAITING
        self.wake = threading.Lock()
        self.wake.acquire()

    def is_decided(self) -> bool:
        """Whether there is nothing left to do."""
        return all(slot.result is not None for slot in self.slots)


class Gathering:
    """Where the threads of one store meet. ``make`` fills in the results of some batches, all in one go."""

    def __init__(self, make: Callable[[list[Slot]], None]) -> None:
        self._make = make
        self.forget()
        forget_after_fork(self)

    def forget(self) -> None:
        """In a child process: nobody waits here yet."""
        self._lock = threading.Lock()
        self._waiting: list[_Entry] = []
        self._has_leader = False

    def commit(self, batches: Sequence[Batch]) -> list[Result]:
        """Have batches made, each wholly or not at all, together with whatever else waits."""
        entry = _Entry(batches)
        with self._lock:
            self._waiting.append(entry)
            is_first, self._has_leader = not self._has_leader, True
            if is_first:
                entry.stage = _Stage.LEADING
        if not is_first:
            self._wait(entry)
        if entry.stage is _Stage.LEADING:
            self._lead()
        return [slot.result for slot in entry.slots if slot.result is not None]

    def _wait(self, entry: _Entry) -> None:
        """Sleep until the entry is done, or is to lead."""
        try:
            entry.wake.acquire()
        except BaseException:
            with self._lock:
                if entry in self._waiting:
                    self._waiting.remove(entry)
                if entry.stage is _Stage.LEADING:
                    self._pass_on()
            raise

    def _lead(self) -> None:
        with self._lock:
            group, self._waiting = self._waiting, []
            for entry in group:
                entry.stage = _Stage.TAKEN
        try:
            self._make([slot for entry in group for slot in entry.slots])
        finally:
            with self._lock:
                undone = [entry for entry in group[1:] if not entry.is_decided()]
                for entry in undone:  # the leader was interrupted: somebody else leads these
                    entry.stage = _Stage.WAITING
                self._waiting[:0] = undone
                self._pass_on()
            for entry in group:
                if entry not in undone:
                    entry.stage = _Stage.DONE
            for entry in group[1:]:  # the first is the leader itself, which does not sleep
                if entry not in undone:
                    entry.wake.release()

    def _pass_on(self) -> None:
        """Let the first who waits lead; with the lock held."""
        self._has_leader = bool(self._waiting)
        if self._waiting:
            leader = self._waiting[0]
            leader.stage = _Stage.LEADING
            leader.wake.release()
