"""openai-agents: ``RedisSession`` on Valkey, an object for each session."""

from __future__ import annotations

from agents.extensions.memory import RedisSession
from redis.asyncio import Redis

from benchmarks.peers.openai_agents import Sessions
from benchmarks.peers.peer import flushing_of_valkey


class OpenAIAgentsRedis(Sessions[RedisSession]):
    """All sessions share a client, and with it a pool of connections."""

    name = "openai-agents, Redis"
    used = (
        "RedisSession(session_id, redis_client=…), an object for a session, all on one Redis.from_url('redis://…');"
        " add_items with both messages: WATCH, two TYPE, then a MULTI that pushes them onto a list and updates a hash;"
        " get_items. It does not list sessions and has no index of them, no key against storing a message twice, and"
        " no telling of changes, for which an append of statestore writes more."
    )

    async def open(self, url: str) -> None:
        self._sessions = {}
        self._client = Redis.from_url(url.replace("valkey:", "redis:", 1))

    async def _made(self, session: str) -> RedisSession:
        return RedisSession(session, redis_client=self._client)

    async def durability(self) -> str:
        return flushing_of_valkey(await self._client.config_get("append*"))

    async def close(self) -> None:
        await self._client.aclose()
