"""Transactions of several statements."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from statestore.engines.postgres.driver import Connection

ONE_STATE: Final = "ISOLATION LEVEL REPEATABLE READ READ ONLY"
"""The kind of a transaction that only reads, and in which every statement sees the same."""


@asynccontextmanager
async def transaction(connection: Connection, kind: str = "") -> AsyncGenerator[None]:
    """What is done in the block happens together, or not at all.

    If it fails, the pool breaks the connection off, and the server takes everything back. The driver would ask for
    that, and wait for an answer as long as a silent server gives none.
    """
    await connection.execute(f"BEGIN {kind}")
    yield
    await connection.execute("COMMIT")
