"""Loading a session of 1,000 exchanges."""

from __future__ import annotations

import time

import msgspec

from benchmarks.timing import WARM_UP, Result
from benchmarks.valkey.bare import MESSAGE, Bare
from statestore import AgentResponse, AsyncStateStore, Session, UserMessage

EXCHANGES = 1_000


async def run(url: str) -> list[Result]:
    bare = Bare(url)
    decoders = {b"u": msgspec.json.Decoder(UserMessage), b"a": msgspec.json.Decoder(AgentResponse)}
    async with AsyncStateStore.open(url) as store:
        session = Session.with_id("user", "long")
        for _ in range(EXCHANGES):
            session.add_user_message(MESSAGE)
            session.add_agent_response(MESSAGE)
        await store.save_session(session)

        async def load() -> float:
            start = time.perf_counter()
            loaded = await store.load_session("long")
            assert loaded is not None
            assert len(loaded.user_messages) == EXCHANGES
            return time.perf_counter() - start

        async def fetch_and_decode() -> float:
            start = time.perf_counter()
            await bare.client.hgetall("statestore:s:{long}:h")
            records = await bare.client.lrange("statestore:s:{long}:r", 0, -1)
            decoded = [decoders[record[:1]].decode(record[17:]) for record in records]
            assert len(decoded) == 2 * EXCHANGES
            return time.perf_counter() - start

        pairs: list[tuple[float, float]] = []
        for turn in range(100 + WARM_UP):
            pair = (
                (await load(), await fetch_and_decode()) if turn % 2 else (await fetch_and_decode(), await load())[::-1]
            )
            pairs.append(pair)
    await bare.client.aclose()
    return [Result.of("load 1,000 exchanges", 1.5, "bare fetch, decode each with msgspec", pairs[WARM_UP:])]
