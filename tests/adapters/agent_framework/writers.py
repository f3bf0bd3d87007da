"""What each of two processes writes in a contest."""

from __future__ import annotations

import asyncio
from typing import Any

from agent_framework import Message, WorkflowCheckpoint

from statestore.adapters.agent_framework import StateStoreCheckpointStorage, StateStoreHistoryProvider


def write_messages(url: str, name: str, count: int) -> None:
    async def write() -> None:
        async with StateStoreHistoryProvider(url) as history:
            for number in range(count):
                await history.save_messages("contest", [Message("user", [f"{name} {number}"])])

    asyncio.run(write())


def write_checkpoints(url: str, name: str, count: int) -> None:
    async def write() -> None:
        async with StateStoreCheckpointStorage(url) as storage:
            for number in range(count):
                more: Any = {"checkpoint_id": f"{name}-{number}", "state": {"count": number}}
                await storage.save(WorkflowCheckpoint("contest", "hash", **more))

    asyncio.run(write())
