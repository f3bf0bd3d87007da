"""Threads that a seed schedules: wherever the interpreter may change from one to another, chance says who goes on.

Only one thread runs at a time, with a baton that it hands over. Locks are of our own, so that waiting takes no time,
and a schedule in which everybody waits for somebody is seen at once. The same seed gives the same schedule.
"""

from __future__ import annotations

import dis
import random
import sys
import threading
from collections.abc import Callable, Collection
from functools import cache
from types import CodeType, FrameType
from typing import Any

MOST_STEPS = 20_000
"""A schedule that takes more does not end."""
_SWITCHES_AFTER = ("CALL", "CALL_FUNCTION_EX", "RESUME", "JUMP_BACKWARD", "POP_JUMP_BACKWARD")
"""After these instructions, and no others, the interpreter looks whether another thread wants to run."""


class Stuck(Exception):
    """Everybody who has not ended waits, and nobody would ever wake them."""


class _Abandoned(BaseException):
    """Ends the threads of a schedule that is over."""


class Schedule:
    """Some threads, and who of them goes on."""

    def __init__(self, seed: int, files: Collection[str], *, may_nap: bool, interrupts: int) -> None:
        self.random = random.Random(seed)
        self.files = frozenset(files)
        self.interrupts = interrupts
        """How many threads may yet be interrupted."""
        self._may_nap = may_nap
        self._chance = self.random.choice((0.02, 0.05, 0.1, 0.3, 0.6, 1.0))
        self._threads: list[_Thread] = []
        self._over = threading.Semaphore(0)
        self._is_over = False
        self._steps = 0

    def run(self, *works: Callable[[], object]) -> None:
        """Run something in a thread each until all have ended; `Stuck` if they never would."""
        self._threads = [_Thread(self, work) for work in works]
        for thread in self._threads:
            thread.start()
        self._next().baton.release()
        self._over.acquire()
        asleep = [thread for thread in self._threads if not thread.is_done]
        self._is_over = True
        for thread in asleep:
            thread.baton.release()
        for thread in self._threads:
            thread.join()
        for thread in self._threads:
            if thread.error is not None:
                raise thread.error
        if asleep:
            raise Stuck(f"{len(asleep)} of {len(self._threads)} threads")

    def step(self) -> None:
        """Another thread may go on here."""
        self._check_goes_on()
        self._steps += 1
        if self._steps > MOST_STEPS:
            self._over.release()
            _this_thread().wait_for_baton()
        elif self.random.random() < self._chance:
            self.hand_over()

    def hand_over(self) -> None:
        """Let another thread go on, or this one if chance says so; back when it is this one's turn again."""
        this = _this_thread()
        following = self._next()
        if following is this:
            return
        (self._over if following is None else following.baton).release()
        if not this.is_done:
            this.wait_for_baton()

    def _check_goes_on(self) -> None:
        if self._is_over:
            raise _Abandoned

    def wait_for(self, lock: Lock, *, has_timeout: bool) -> bool:
        """Let others go on until a lock is free; whether it is, and not the time over."""
        this = _this_thread()
        this.waits_for, this.may_nap = lock, has_timeout and self._may_nap
        try:
            self.hand_over()
        finally:
            this.waits_for = None
        self._check_goes_on()
        return not lock.is_held

    def _next(self) -> Any:
        """Who goes on: whoever can, else whoever looks up because time is over; ``None`` if there is nobody."""
        threads = [thread for thread in self._threads if not thread.is_done]
        ready = [thread for thread in threads if thread.waits_for is None or not thread.waits_for.is_held]
        return self.random.choice(ready or [thread for thread in threads if thread.may_nap] or [None])  # type: ignore[list-item]


class Lock:
    """A lock, as far as a `threading.Lock` is used. Outside of a schedule, nobody may have to wait for it."""

    def __init__(self) -> None:
        self.is_held = False

    def locked(self) -> bool:
        return self.is_held

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        thread = threading.current_thread()
        while self.is_held:
            if not blocking:
                return False
            assert isinstance(thread, _Thread)
            if not thread.schedule.wait_for(self, has_timeout=timeout >= 0) and thread.may_nap:
                return False
        self.is_held = True
        return True

    def release(self) -> None:
        if not self.is_held:
            raise RuntimeError("release unlocked lock")
        self.is_held = False

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class _Thread(threading.Thread):
    def __init__(self, schedule: Schedule, work: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self.schedule = schedule
        self.baton = threading.Semaphore(0)
        self.waits_for: Lock | None = None
        self.may_nap = False
        self.is_done = False
        self.may_be_interrupted = False
        self.error: BaseException | None = None
        self._work = work
        self._before: dict[FrameType, str] = {}

    def wait_for_baton(self) -> None:
        self.baton.acquire()
        self.schedule._check_goes_on()  # pyright: ignore[reportPrivateUsage]

    def run(self) -> None:
        try:
            self.wait_for_baton()
            sys.settrace(self._trace)
            try:
                self._work()
            finally:
                sys.settrace(None)
        except _Abandoned:
            return
        except BaseException as error:  # noqa: BLE001 - raised by whoever runs the schedule
            self.error = error
        self.is_done = True
        self.schedule.hand_over()

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename not in self.schedule.files:
            return None
        if event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        elif event == "opcode":
            before = self._before.get(frame, "")
            self._before[frame] = _instructions(frame.f_code)[frame.f_lasti]
            if before.startswith(_SWITCHES_AFTER):
                self.schedule.step()
                self._interrupt_perhaps()
        elif event == "return":
            self._before.pop(frame, None)
        return self._trace

    def _interrupt_perhaps(self) -> None:
        schedule = self.schedule
        if self.may_be_interrupted and schedule.interrupts and schedule.random.random() < 0.02:
            schedule.interrupts -= 1
            raise KeyboardInterrupt


@cache
def _instructions(code: CodeType) -> dict[int, str]:
    return {instruction.offset: instruction.opname for instruction in dis.get_instructions(code)}


def _this_thread() -> _Thread:
    thread = threading.current_thread()
    assert isinstance(thread, _Thread)
    return thread


class interruptible:  # noqa: N801 - used like a function
    """While this lasts, the thread may be interrupted."""

    def __enter__(self) -> None:
        _this_thread().may_be_interrupted = True

    def __exit__(self, *_: object) -> None:
        _this_thread().may_be_interrupted = False
