"""Looking at a store's schema from outside, and disturbing the connections to it."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

import asyncpg
import pytest

from servers.postgres import PostgresServer, sql
from statestore import StateStore
from statestore.engine import ChangeSession
from statestore.engines.postgres.batches import plain_arguments
from statestore.engines.postgres.statements import SQL
from statestore.engines.versions import new_version


def schema_of(url: str) -> str:
    """The schema that a store's URL names."""
    return dict(pair.split("=") for pair in url.partition("?")[2].split("&"))["schema"]


def run_in(url: str, *statements: str) -> list[tuple[Any, ...]]:
    """Run SQL in the schema that a store's URL names; the rows of the last statement."""
    return sql(url.partition("?")[0], f"SET search_path = {schema_of(url)}", *statements)


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Any]:
    """A connection of one's own to the schema that a store's URL names."""
    connection = await asyncpg.connect(url.partition("?")[0], server_settings={"search_path": schema_of(url)})
    try:
        yield connection
    finally:
        await connection.close()


async def append_through(connection: Any, change: ChangeSession) -> None:
    """What an engine does, in a transaction that is not over yet."""
    await connection.fetchval(
        SQL["append_to_sessions"], uuid4(), False, None, *plain_arguments([change], [new_version()])
    )


def drop_schema(url: str) -> None:
    """Remove the schema that a store's URL names."""
    sql(url.partition("?")[0], f"DROP SCHEMA {schema_of(url)} CASCADE")


def cut_connections(url: str) -> int:
    """End all connections of stores to a server; how many there were."""
    found = sql(
        url.partition("?")[0],
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'statestore'",
    )
    return len(found)


def said(store: StateStore, session_id: str) -> list[str]:
    """What the user said in a session, in order."""
    session = store.load_session(session_id)
    assert session is not None
    return [message.content for message in session.user_messages]


def until_within(seconds: float) -> Iterator[None]:
    """Have something done, and done again if it took longer, three times at most.

    A busy machine may be late at times; what waits for a server twice is late every time.
    """
    for _ in range(3):
        start = time.monotonic()
        yield
        if time.monotonic() - start < seconds:
            return
    pytest.fail(f"it took more than {seconds:g} s each time")


@contextmanager
def server_stopped(server: PostgresServer) -> Iterator[None]:
    """A server that is silent for as long as the block lasts, and then goes on where it was."""
    _signal(server, signal.SIGSTOP)
    try:
        yield
    finally:
        _signal(server, signal.SIGCONT)


def _signal(server: PostgresServer, number: signal.Signals) -> None:
    postmaster = int((server.data / "postmaster.pid").read_text().splitlines()[0])
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    for process in (postmaster, *map(int, children)):
        with suppress(ProcessLookupError):  # a connection that ended just now
            os.kill(process, number)


def note_statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of our statements that fetch rows, as they are run from now on; each is a round trip."""
    names = {statement: name for name, statement in SQL.items()}
    noted: list[str] = []
    fetch = asyncpg.Connection.fetch

    async def note_and_fetch(connection: Any, query: str, *values: Any, **options: Any) -> Any:
        noted.append(names.get(query, query))
        return await fetch(connection, query, *values, **options)

    monkeypatch.setattr(asyncpg.Connection, "fetch", note_and_fetch)
    return noted


def know_all_writers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have watchers rely on being told of every change from the first moment on."""
    monkeypatch.setitem(SQL, "latest_transaction", "SELECT 0::bigint")


def hold_answers(monkeypatch: pytest.MonkeyPatch, statement: str) -> tuple[asyncio.Event, asyncio.Event]:
    """Have the answers to a statement held back: what is set when there is one, and what lets them go when it is."""
    is_there, may_go = asyncio.Event(), asyncio.Event()
    fetch = asyncpg.Connection.fetch

    async def fetch_and_wait(connection: Any, query: str, *values: Any, **options: Any) -> Any:
        rows = await fetch(connection, query, *values, **options)
        if query == SQL[statement]:
            is_there.set()
            await may_go.wait()
        return rows

    monkeypatch.setattr(asyncpg.Connection, "fetch", fetch_and_wait)
    return is_there, may_go


def forget_after_looking(monkeypatch: pytest.MonkeyPatch, module: ModuleType, url: str, *, kept: int) -> None:
    """Have all but the last changes forgotten whenever a module has just asked which are there."""
    look = module.horizon

    async def look_and_forget(connection: Any) -> Any:
        found = await look(connection)
        run_in(url, f"SELECT tidy_up({kept})")
        return found

    monkeypatch.setattr(module, "horizon", look_and_forget)
