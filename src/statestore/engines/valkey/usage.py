"""Closing an engine that is in use: tasks under way are waited for, later calls are refused."""

from __future__ import annotations

import asyncio
import os

from statestore.errors import StoreClosed


class TaskUsage:
    """Counts the calls of one engine that are under way: ``with usage:`` is one; `StoreClosed` if it is not open."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._process: int | None = None
        self._count = 0
        self._idle = asyncio.Event()

    def open(self) -> None:
        """From now on, calls are let in."""
        self._process = os.getpid()

    def __enter__(self) -> None:
        if self._process != os.getpid():
            raise StoreClosed(
                f"{self._url} was closed" if self._process is None else f"{self._url} was opened before a fork"
            )
        self._count += 1

    def __exit__(self, *_: object) -> None:
        self._count -= 1
        if not self._count:
            self._idle.set()

    async def close(self) -> bool:
        """Let no more calls in, and wait for those under way; whether it was open before."""
        was_open, self._process = self._process is not None, None
        while self._count:
            self._idle.clear()
            await self._idle.wait()
        return was_open
