"""The floor: what an append writes, statement by statement, in a transaction of its own, through the bare driver."""

from __future__ import annotations

import os
from itertools import count
from typing import Any
from uuid import uuid4

import asyncpg

from statestore import AgentResponse, AsyncStateStore, Session, UserMessage
from statestore.records import body_of

MESSAGE = ("The quick brown fox jumps over the lazy dog. " * 5)[:200]
USER_BODY = body_of(UserMessage(MESSAGE))
AGENT_BODY = body_of(AgentResponse(MESSAGE))
SCHEMA = "bare"

_ages = count(1)


async def prepare(url: str, sessions: int) -> str:
    """A schema with the tables of a store, and sessions in it; the URL to connect to it."""
    async with AsyncStateStore.open(f"{url}?schema={SCHEMA}") as store, store.batch() as batch:
        for number in range(sessions):
            batch.save_session(Session("user", f"session-{number}"))
    return url


async def connect(url: str) -> Any:
    """A connection whose names are those of the schema."""
    return await asyncpg.connect(url, server_settings={"search_path": SCHEMA})


async def pool_of(url: str, size: int) -> Any:
    """So many such connections."""
    return await asyncpg.create_pool(url, min_size=size, max_size=size, server_settings={"search_path": SCHEMA})


async def append(connection: Any, number: int) -> None:
    """One exchange, durably."""
    session_id = f"session-{number}"
    async with connection.transaction():
        row = await connection.fetchrow("SELECT number, next_seq FROM sessions WHERE id = $1 FOR UPDATE", session_id)
        seq = row["next_seq"]
        await connection.execute(
            "INSERT INTO records (id, seq, kind, body) VALUES ($1, $2, 0, $3), ($1, $2::bigint + 1, 1, $4)",
            session_id,
            seq,
            USER_BODY,
            AGENT_BODY,
        )
        await connection.execute(
            "UPDATE sessions SET version = $2, updated = $3, age = $4, next_seq = next_seq + 2, users = users + 1, "
            "agents = agents + 1, size = size + $5 WHERE id = $1",
            session_id,
            os.urandom(8).hex(),
            "2026-01-01T00:00:00.000001Z",
            -next(_ages),
            len(USER_BODY) + len(AGENT_BODY),
        )
        await connection.execute(
            "INSERT INTO changes (change, id, number, first, last, is_header) "
            "VALUES (nextval('change_numbers'), $1, $2, $3, $3::bigint + 1, false)",
            session_id,
            row["number"],
            seq,
        )
        await connection.execute("INSERT INTO tokens (token, outcomes) VALUES ($1, $2)", uuid4(), "[]")
