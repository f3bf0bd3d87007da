"""LlamaIndex on a statestore: a memory whose queue and archive are one readable session.

    pip install 'statestore[llama-index]'
    python examples/llama_index_chat.py [URL]

No network and no key: the model says what is written below.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from llama_index.core.llms import ChatMessage, CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.memory import ChatMemoryBuffer

from statestore import StateStore
from statestore.adapters.llama_index import StateStoreChatStore, StateStoreDBChatStore


class ScriptedLLM(CustomLLM):
    """A model that answers from a list."""

    script: list[str]

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="scripted")

    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        return CompletionResponse(text=self.script.pop(0))

    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
        raise NotImplementedError("this model does not stream")


def chat(url: str) -> None:
    """Two turns, each with a store of its own, as two processes would have."""
    model = ScriptedLLM(script=["The 10:40 arrives before noon.", "Booked: the 10:40."])
    for question in ("Which ferry arrives before noon?", "Book it."):
        with StateStore.open(url) as store:
            chats = StateStoreChatStore(store, user_id="alice", project_id="islands")
            memory = ChatMemoryBuffer.from_defaults(chat_store=chats, chat_store_key="trip", token_limit=3000)
            memory.put(ChatMessage(role="user", content=question))
            answer = model.chat(memory.get()).message
            memory.put(answer)
            print("agent:", answer.content)
            print("keys:", chats.get_keys())


async def archive(url: str) -> None:
    """The same session as a queue: what no longer fits is archived, and stays readable."""
    chats = StateStoreDBChatStore(url, user_id="alice")
    archived = await chats.archive_oldest_messages("trip", 2)
    print("archived:", [message.content for message in archived])
    print("active:", [message.content for message in await chats.get_messages("trip")])
    await chats.aclose()


def main(url: str) -> None:
    """Chat, archive, and look at what was kept."""
    chat(url)
    asyncio.run(archive(url))
    with StateStore.open(url) as store:
        print([entry.kind for entry in store.timeline("trip")])


if __name__ == "__main__":
    with TemporaryDirectory() as directory:
        main(sys.argv[1] if len(sys.argv) > 1 else str(Path(directory) / "state.db"))
