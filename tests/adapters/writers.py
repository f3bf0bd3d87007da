"""The writers of the contests: each writes so many times, through an adapter of its own, into one conversation."""

from __future__ import annotations

import asyncio


def write_openai_items(url: str, name: str, count: int) -> None:
    """One item a write, through a session of the OpenAI Agents SDK."""
    from statestore.adapters.openai_agents import StateStoreSession

    async def write() -> None:
        async with StateStoreSession("contest", url) as session:
            for number in range(count):
                await session.add_items([{"role": "user", "content": f"{name} {number}"}])

    asyncio.run(write())


def write_langchain_messages(url: str, name: str, count: int) -> None:
    """One message a write, through LangChain's history."""
    from langchain_core.messages import HumanMessage

    from statestore.adapters.langchain import StateStoreChatMessageHistory

    history = StateStoreChatMessageHistory("contest", url)
    for number in range(count):
        history.add_messages([HumanMessage(f"{name} {number}")])
    history.close()


def write_llama_messages(url: str, name: str, count: int) -> None:
    """One message a write, through LlamaIndex's chat store."""
    from llama_index.core.llms import ChatMessage

    from statestore.adapters.llama_index import StateStoreChatStore

    chats = StateStoreChatStore(url)
    for number in range(count):
        chats.add_message("contest", ChatMessage(role="user", content=f"{name} {number}"))
    chats.close()


def write_llama_queue(url: str, name: str, count: int) -> None:
    """One message a write, through LlamaIndex's queue; every tenth write archives one."""
    from llama_index.core.llms import ChatMessage

    from statestore.adapters.llama_index import StateStoreDBChatStore

    async def write() -> None:
        chats = StateStoreDBChatStore(url)
        for number in range(count):
            await chats.add_message("contest", ChatMessage(role="user", content=f"{name} {number}"))
            if number % 10 == 9:
                await chats.archive_oldest_messages("contest", 1)
        await chats.aclose()

    asyncio.run(write())
