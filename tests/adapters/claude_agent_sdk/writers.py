"""What each of two processes writes in a contest."""

from __future__ import annotations

import asyncio
from typing import Any

from statestore.adapters.claude_agent_sdk import StateStoreSessions

KEY: Any = {"project_key": "-home-alice-island", "session_id": "contest"}


def write_entries(url: str, name: str, count: int) -> None:
    """Each entry is sent twice, as after a time-out; both writers share every tenth."""

    async def write() -> None:
        async with StateStoreSessions(url) as sessions:
            for number in range(count):
                entry: Any = {"type": "user", "uuid": f"{name}-{number}", "message": {"content": f"{name} {number}"}}
                await sessions.append(KEY, [entry])
                if number % 10 == 0:
                    await sessions.append(KEY, [entry, {"type": "user", "uuid": f"both-{number}"}])

    asyncio.run(write())
