"""Where the store's coroutines run in plain code: in the caller's own thread, in one step.

Local engines never suspend, so sending a coroutine on once brings it to its end. Nothing here knows of
event loops; `statestore.bridge` is the counterpart for those, and for engines that need one.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager
from threading import get_ident
from typing import Any, Final, NamedTuple, TypeVar, cast

from statestore.engine import Engine
from statestore.errors import NotSupported, SessionConflict, StoreClosed
from statestore.session import Session, ledger_of
from statestore.waking import Sleep

T = TypeVar("T")

NAP: Final = 0.05
"""Seconds after which a thread that waits for a turn, and was not woken, looks up."""
SHORTEST_PAUSE: Final = 0.005
LONGEST_PAUSE: Final = 0.1
"""Seconds between two looks of a watcher: longer the longer nothing happens, no longer than anybody would notice."""


class ClosedEngine:
    """Stands in for an engine that was closed: whatever is asked of it raises `StoreClosed`."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def close(self) -> None:
        """It is."""

    def __getattr__(self, name: str) -> Any:
        raise StoreClosed(f"{self.url} was closed")


class Watch(NamedTuple):
    """Somebody was told all up to a cursor, and waits for more: of one session or all, of one user or all."""

    cursor: str
    session_id: str | None
    user_id: str | None


class Host(ABC):
    """What the store needs from the place it runs in."""

    engine: Engine

    async def close(self) -> None:
        """Close the engine and leave a `ClosedEngine` in its place."""
        engine, self.engine = self.engine, cast("Engine", ClosedEngine(self.engine.url))
        await engine.close()

    async def run(self, work: Callable[[Engine], Coroutine[Any, Any, T]]) -> T:
        """Do something with the engine, and with what it gives.

        In plain code, that happens in the caller's thread. In an event loop, a thread does it for an engine that
        blocks, so that nobody is held up; for all others, those of servers among them, it is done in the loop.
        """
        return await work(self.engine)

    @abstractmethod
    def turn(self, session: Session) -> AbstractAsyncContextManager[None]:
        """Held while one object is saved, so that two saves of it do not send the same records."""

    @abstractmethod
    def spawn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start something that nobody waits for until `drain`; `RuntimeError` if no thread can be had for it."""

    @abstractmethod
    async def drain(self) -> None:
        """Wait for all that was spawned."""

    @abstractmethod
    async def wait_for_changes(self, watch: Watch, pause: float) -> str:
        """Do nothing for a while, or until something happens that may concern a watcher; where it reads on."""


def step(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as finished:
        return finished.value
    coroutine.close()
    raise NotSupported("this engine needs an event loop")


def stepped(generator: AsyncGenerator[T]) -> Generator[T]:
    """The items of an asynchronous generator that never suspends."""
    try:
        while True:
            try:
                item = step(anext(generator))
            except StopAsyncIteration:
                return
            yield item
    finally:
        step(generator.aclose())


class PlainHost(Host):
    """Runs everything in the calling thread, background work in threads of its own."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._threads: set[threading.Thread] = set()

    def turn(self, session: Session) -> AbstractAsyncContextManager[None]:
        return given_turn(session, _is_of_this_process, _ThreadTurn)

    def spawn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        thread = threading.Thread(target=self._run, args=(work,), name="statestore-background")
        with _spawning:
            thread.start()
            self._threads.add(thread)

    def _run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            step(work())
        finally:
            with _spawning:
                self._threads.discard(threading.current_thread())

    async def drain(self) -> None:
        with _spawning:
            threads = list(self._threads)
        for thread in threads:
            thread.join()

    async def wait_for_changes(self, watch: Watch, pause: float) -> str:
        time.sleep(pause)  # noqa: ASYNC251 - in plain code the caller's thread is what waits
        return watch.cursor


def given_turn(
    session: Session, is_ours: Callable[[Any], bool], make: Callable[[], Any]
) -> AbstractAsyncContextManager[None]:
    """The turn for saving an object; a new one if the last was another host's, which must not be holding it."""
    ledger = ledger_of(session)
    turn = ledger.turn
    if not is_ours(turn):
        with _giving_turns:
            turn = ledger.turn
            if not is_ours(turn):
                if turn is not None and turn.locked():
                    raise _saved_elsewhere(session)
                turn = ledger.turn = make()
    return _GivenTurn(session, turn)


class _GivenTurn(AbstractAsyncContextManager[None]):
    """A turn that counts only if no other host gave a new one before it was taken."""

    __slots__ = ("_session", "_turn")

    def __init__(self, session: Session, turn: AbstractAsyncContextManager[None]) -> None:
        self._session = session
        self._turn = turn

    async def __aenter__(self) -> None:
        await self._turn.__aenter__()
        with _giving_turns:
            is_current = ledger_of(self._session).turn is self._turn
        if not is_current:
            await self._turn.__aexit__(None, None, None)
            raise _saved_elsewhere(self._session)

    async def __aexit__(self, *error: Any) -> None:
        await self._turn.__aexit__(*error)


def _saved_elsewhere(session: Session) -> SessionConflict:
    return SessionConflict(f"session {session.id}: this object is being saved in another loop, thread or process")


class _ThreadTurn(AbstractAsyncContextManager[None]):
    """Held by one thread. A thread is in one save at a time, so what an interrupted one left behind is its own again.

    Others wait for as long as the thread lives: those who wait look up now and then.
    """

    def __init__(self) -> None:
        self._holder: int | None = None
        self._looking = threading.Lock()
        self._sleep = Sleep()
        self.process = os.getpid()

    def locked(self) -> bool:
        return self._holder not in (None, get_ident())

    async def __aenter__(self) -> None:
        while not self._took_turn():
            self._sleep.until_woken(NAP)

    def _took_turn(self) -> bool:
        """Take the turn, if nobody who lives holds it; whether it is this thread's now."""
        with self._looking:
            if not self.locked() or not _is_alive(self._holder):
                self._holder = get_ident()
            return self._holder == get_ident()

    async def __aexit__(self, *_: object) -> None:
        self._holder = None
        self._sleep.wake()


def _is_alive(thread: int | None) -> bool:
    """Whether there is such a thread, also one that Python did not start."""
    return thread in sys._current_frames()  # pyright: ignore[reportPrivateUsage] - it is documented


def _is_of_this_process(turn: object) -> bool:
    """Whether a turn can be waited for: one that a thread of the parent held when we were forked never ends here."""
    return isinstance(turn, _ThreadTurn) and turn.process == os.getpid()


_giving_turns = threading.Lock()
_spawning = threading.Lock()
"""Held while a thread is started and noted: one that is not started yet cannot be waited for."""
for _lock in (_giving_turns, _spawning):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
