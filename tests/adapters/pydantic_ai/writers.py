"""The writer of the contest."""

from __future__ import annotations

import asyncio

from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict

from adapters.pydantic_ai.messages import asked
from statestore.adapters.pydantic_ai import StateStoreConversations


def write_messages(url: str, name: str, count: int) -> None:
    """One message a write, and one more in the usage; who came too late loads again."""

    async def write() -> None:
        async with StateStoreConversations(url) as store:
            for number in range(count):
                while True:
                    conversation = await store.load("contest", limit=1) or Conversation(conversation_id="contest")
                    conversation.messages.append(asked(f"{name} {number}"))
                    conversation.usage.requests += 1
                    try:
                        await store.save(conversation)
                        break
                    except ConversationConflict:
                        continue

    asyncio.run(write())
