"""``python -m benchmarks.postgres.drivers``: asyncpg beside psycopg at what this engine asks of a driver."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import asyncpg
import psycopg
from tests.servers.postgres import running_server

from benchmarks.postgres.bare import AGENT_BODY, SCHEMA, USER_BODY, prepare
from statestore.engine import ChangeSession, NewRecord
from statestore.engines.postgres.batches import plain_arguments
from statestore.engines.postgres.statements import SQL
from statestore.engines.versions import new_version

SESSIONS = 64
SETTINGS = {"search_path": SCHEMA, "plan_cache_mode": "force_generic_plan"}
TYPES = (
    *(
        "uuid",
        "boolean",
        "double precision",
        "text[]",
        "text[]",
        "text[]",
        "bigint[]",
        "smallint[]",
        "text[]",
        "text[]",
        "text[]",
    ),
    *("bigint[]", "bigint[]", "bigint[]", "bigint[]", "bytea[]", "bigint[]", "bigint[]", "smallint[]", "bytea[]"),
)
PSYCOPG_APPEND = f"SELECT append_to_sessions({', '.join(f'%s::{name}' for name in TYPES)})"
RECORDS = "SELECT seq, kind, body, key FROM records WHERE id = {} ORDER BY seq"
APPENDED = (NewRecord("user", USER_BODY, 0), NewRecord("agent", AGENT_BODY, 0))


def arguments(sessions: int, exchanges: int = 1) -> list[Any]:
    """One append to each of so many sessions."""
    changes = [
        ChangeSession(f"session-{number}", "2026-01-01T00:00:00Z", append=APPENDED * exchanges)
        for number in range(sessions)
    ]
    return [uuid4(), False, None, *map(list, plain_arguments(changes, [new_version() for _ in changes]))]


async def measure(url: str) -> None:
    await prepare(url, SESSIONS)
    ours = await asyncpg.connect(url, server_settings=SETTINGS)
    options = " ".join(f"-c {name}={value}" for name, value in SETTINGS.items())
    theirs = await psycopg.AsyncConnection.connect(url, autocommit=True, prepare_threshold=0, options=options)

    async def fetched(query: str, values: list[Any]) -> Any:
        cursor = theirs.cursor(binary=True)
        await cursor.execute(query, values, binary=True)
        return await cursor.fetchall()

    async def both(
        name: str, one: Callable[[], Awaitable[Any]], other: Callable[[], Awaitable[Any]], times: int
    ) -> None:
        took: tuple[list[float], list[float]] = ([], [])
        for _ in range(times):
            for place, work in enumerate((one, other)):
                start = time.perf_counter()
                await work()
                took[place].append(time.perf_counter() - start)
        found = [statistics.median(seconds[3:]) * 1e6 for seconds in took]
        print(f"{name:<44} asyncpg {found[0]:7,.0f} us   psycopg {found[1]:7,.0f} us   {found[1] / found[0]:.2f} x")

    await both("a round trip", lambda: ours.fetchval("SELECT 1"), lambda: fetched("SELECT 1", []), 1000)
    for sessions in (1, SESSIONS):
        await both(
            f"an append to each of {sessions} sessions, durable",
            lambda sessions=sessions: ours.fetchval(SQL["append_to_sessions"], *arguments(sessions)),
            lambda sessions=sessions: fetched(PSYCOPG_APPEND, arguments(sessions)),
            300 if sessions == 1 else 100,
        )
    await ours.fetchval(SQL["append_to_sessions"], *arguments(1, 1000))
    await ours.execute("DELETE FROM records WHERE seq > 2000 AND id = 'session-0'")
    await both(
        "the rows of 1,000 exchanges",
        lambda: ours.fetch(RECORDS.format("$1"), "session-0"),
        lambda: fetched(RECORDS.format("%s"), ["session-0"]),
        100,
    )
    await ours.close()
    await theirs.close()


if __name__ == "__main__":
    with running_server() as server:
        asyncio.run(measure(server.url()))
