"""The Valkey engine beside the same commands through the bare driver, on a server that flushes every write."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from tests.servers.valkey import server

from benchmarks.timing import Result
from benchmarks.valkey import appending, loading


def run() -> Iterator[Result]:
    """All benchmarks of the Valkey engine."""
    for part in (appending, loading):
        with server() as found:
            yield from asyncio.run(part.run(found.url))
