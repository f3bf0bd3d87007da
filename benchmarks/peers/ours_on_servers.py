"""statestore on the engines that are servers."""

from __future__ import annotations

from typing import cast

from benchmarks.peers.ours import AsyncFace
from benchmarks.peers.peer import flushing_of_postgres, flushing_of_valkey
from statestore.engines.postgres.engine import PostgresEngine
from statestore.engines.valkey.engine import ValkeyEngine


class OursOnPostgres(AsyncFace[str]):
    """A schema of a database."""

    used = (
        "AsyncStateStore.open('postgresql://…'): append of both messages, load_session, list_sessions(limit=50). What"
        " tasks append while another append is under way is committed together, on two connections at most."
    )

    def _url(self, place: str) -> str:
        return place

    async def durability(self) -> str:
        async with cast(PostgresEngine, self._engine)._pool.connection(30) as connection:
            return await flushing_of_postgres(connection.fetchval)


class OursOnValkey(AsyncFace[str]):
    """The keys of a database."""

    used = (
        "AsyncStateStore.open('valkey://…'): the same methods. An append is one call of a script, which makes it wholly"
        " or not at all; what tasks append while another append is under way goes in one round trip. This engine"
        " has no search."
    )

    def _url(self, place: str) -> str:
        return place

    async def durability(self) -> str:
        found = await cast(ValkeyEngine, self._engine)._server.settings_of(("appendonly", "appendfsync"))
        return flushing_of_valkey(found["the server"])
