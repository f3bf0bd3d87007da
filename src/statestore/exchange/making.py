"""Where the texts of an export are made: plain code makes them itself, an event loop has a thread make them.

Half a megabyte for people takes seconds, and nothing else in the loop would get its turn meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Make(Protocol):
    """Has texts made, here or elsewhere."""

    async def __call__(self, texts: Callable[[], T], /) -> T: ...


async def at_once(texts: Callable[[], T], /) -> T:
    """Make texts here and now."""
    return texts()


def in_a_thread() -> Make:
    """What makes texts in a thread of its own, which ends when nobody can ask for more."""
    from statestore.bridge.workers import Workers  # noqa: PLC0415 - event loops alone need it

    workers = Workers(1)

    async def make(texts: Callable[[], T], /) -> T:
        return await workers.run(at_once(texts))

    return make
