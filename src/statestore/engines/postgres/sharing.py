"""Reading once for all who ask the same at the same time, as watchers do when something happens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from statestore.engines.postgres.driver import Connection
from statestore.engines.postgres.persisting import Persistence

Q = TypeVar("Q", bound=Hashable)
A = TypeVar("A")


class SharedReading(Generic[Q, A]):
    """Answers questions by reading. Who asks while the same is being read is told what is read next.

    So an answer is never older than its question, and of one question there are never two readings at the same time.
    """

    def __init__(self, persistence: Persistence, read: Callable[[Connection, Q], Awaitable[A]]) -> None:
        self._persistence = persistence
        self._read = read
        self._asked: WeakValueDictionary[Q, _Asked[A]] = WeakValueDictionary()

    async def answer(self, question: Q) -> A:
        """What is read now, or soon, for everybody who asks this."""
        asked = self._asked.setdefault(question, _Asked())
        while True:
            turn = asked.next
            if turn is None:
                turn = asked.next = _Turn(self._persistence.end_of_call())
                await self._take(turn, asked, question)
            else:
                await asyncio.wait([turn.answer])
            if not turn.answer.cancelled():
                return turn.answer.result()

    async def _take(self, turn: _Turn[A], asked: _Asked[A], question: Q) -> None:
        """Read for all whose turn it is; if we are cancelled meanwhile, one of them does."""
        try:
            async with asked.reading:
                await asyncio.sleep(0)  # whoever was woken together with us asks by now
                asked.next = None
                found = await self._persistence.run(
                    lambda connection, _: self._read(connection, question), end=turn.end
                )
            turn.answer.set_result(found)
        except Exception as error:  # noqa: BLE001 - carried to all who asked, whatever it is
            turn.answer.set_exception(error)
        finally:
            if asked.next is turn:
                asked.next = None
            turn.answer.cancel()


class _Asked(Generic[A]):
    """A question, for as long as somebody waits for an answer."""

    def __init__(self) -> None:
        self.reading = asyncio.Lock()
        self.next: _Turn[A] | None = None


class _Turn(Generic[A]):
    """One reading: what it gave, and when it has to be over for who asked first, by the loop's clock."""

    def __init__(self, end: float) -> None:
        self.answer: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self.end = end
