"""The floor: one call of a script that does the same writes, through the driver alone."""

from __future__ import annotations

import os
from pathlib import Path

import redis.asyncio

from statestore import AgentResponse, UserMessage
from statestore.records import body_of

MESSAGE = ("The quick brown fox jumps over the lazy dog. " * 5)[:200]
USER_BODY = body_of(UserMessage(MESSAGE))
AGENT_BODY = body_of(AgentResponse(MESSAGE))
SCRIPT = Path(__file__).with_name("bare.lua").read_text()


class Bare:
    """The driver, as anybody would use it."""

    def __init__(self, url: str) -> None:
        self.client = redis.asyncio.Redis.from_url(url.replace("valkey", "redis", 1), protocol=2)
        self._digest = ""
        self._number = 0

    async def start(self) -> None:
        self._digest = await self.client.script_load(SCRIPT)

    async def append(self, name: str) -> None:
        """One exchange, durably."""
        self._number += 1
        version, place = os.urandom(8).hex(), f"{10**20 - self._number:021}"
        keys = [f"bare:{name}:{part}" for part in ("h", "r")]
        keys += ["bare:newest", "bare:newest:user", "bare:change", "bare:changes", f"bare:t:{version}"]
        head = f"{self._number:016}".encode()
        values = [b"u" + head + USER_BODY, b"a" + head + AGENT_BODY, version, "2026-01-01T00:00:00.000001Z", place]
        values += [self._number, f"{10**20 - self._number + 1:021}"]
        await self.client.evalsha(self._digest, len(keys), *keys, *values)
