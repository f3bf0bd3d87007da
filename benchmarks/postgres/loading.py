"""Loading a session of 1,000 exchanges."""

from __future__ import annotations

import time

import asyncpg
import msgspec

from benchmarks.postgres.bare import MESSAGE
from benchmarks.timing import Result
from statestore import AgentResponse, AsyncStateStore, Session, UserMessage


async def run(url: str) -> list[Result]:
    decoders = msgspec.json.Decoder(UserMessage), msgspec.json.Decoder(AgentResponse)
    pairs: list[tuple[float, float]] = []
    connection = await asyncpg.connect(url, server_settings={"search_path": "statestore"})
    async with AsyncStateStore.open(url) as store:
        await store.save_session(Session("user", "long"))
        await store.append("long", *[UserMessage(MESSAGE), AgentResponse(MESSAGE)] * 1000)
        for turn in range(153):
            start = time.perf_counter()
            session = await store.load_session("long")
            middle = time.perf_counter()
            header = await connection.fetchrow("SELECT * FROM sessions WHERE id = $1", "long")
            rows = await connection.fetch("SELECT kind, body FROM records WHERE id = $1 ORDER BY seq", "long")
            lists: tuple[list[object], list[object]] = ([], [])
            for kind, body in rows:
                lists[kind].append(decoders[kind].decode(body))
            end = time.perf_counter()
            assert session is not None
            assert header is not None
            assert len(session.user_messages) == len(lists[0]) == 1000
            if turn >= 3:
                pairs.append((middle - start, end - middle))
    await connection.close()
    return [Result.of("load 1,000 exchanges", 1.5, "fetch the rows, decode each with msgspec", pairs)]
