"""The calls of an engine that is used in an event loop: whether they are let in, and what comes out of them."""

from __future__ import annotations

import asyncio
import os

from statestore.engines.columns import SENSELESS, senseless
from statestore.errors import StateStoreError, StoreClosed


def is_at_the_end(error: BaseException) -> bool:
    """Whether something needed a thread, and there are none any more: of this loop, or because the interpreter ends."""
    return isinstance(error, RuntimeError) and "shutdown" in str(error)


class Calls:
    """The calls of one engine: ``with calls:`` is one; `StoreClosed` if the engine is not open here.

    They are counted: whoever closes the engine waits for them. A stored value that makes no sense leaves a call as
    `CorruptData`.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._process: int | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._count = 0
        self._over: asyncio.Event = asyncio.Event()

    def open(self) -> None:
        """From now on, calls of this process and of the running loop are let in."""
        self._process = os.getpid()
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> None:
        if self._process != os.getpid():
            why = "was closed" if self._process is None else "was opened before a fork: open one in the child process"
            raise StoreClosed(f"{self._url} {why}")
        if self._loop is not asyncio.get_running_loop():
            raise StoreClosed(f"{self._url} was opened in another event loop: open one in this loop")
        self._count += 1

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self._count -= 1
        if not self._count:
            self._over.set()
        if isinstance(error, SENSELESS) and not isinstance(error, StateStoreError):
            raise senseless(self._url, error) from error

    async def close(self) -> bool:
        """Let no more calls in, and wait for those under way in this loop; whether there is anything to let go of."""
        was_open = self._process == os.getpid()
        self._process = None
        while was_open and self._count and self._loop is asyncio.get_running_loop():
            self._over.clear()
            await self._over.wait()
        return was_open
