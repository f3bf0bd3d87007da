"""The PostgreSQL engine beside the same statements through the bare driver, at a server that flushes what it writes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from tests.servers.postgres import running_server

from benchmarks.postgres import appending, listing, loading
from benchmarks.timing import Result


def run() -> Iterator[Result]:
    """All benchmarks of the PostgreSQL engine."""
    for part in (appending, loading, listing):
        with running_server() as server:
            yield from asyncio.run(part.run(server.url()))
