"""The Claude Agent SDK on a statestore: transcripts in a file that everybody can read, and that any machine can resume.

    pip install 'statestore[claude-agent-sdk]'
    python examples/claude_agent_sdk_chat.py [URL]

No network and no key: in place of the Claude Code process stands a transport that says what is written below, and tells
the SDK what it wrote into its transcript, as the process does. Leave ``transport=`` out, and nothing else changes.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ResultMessage,
    TextBlock,
    Transport,
    get_session_messages_from_store,
    list_sessions_from_store,
    project_key_for_directory,
    query,
)

from statestore import AsyncStateStore
from statestore.adapters.claude_agent_sdk import StateStoreSessions

SESSION = "5f1c2a34-0d6b-4a8e-9c57-2f0e8b1d7a66"


class ScriptedClaude(Transport):
    """Answers one prompt from a script: texts, or a tool, its input and what it gave back."""

    def __init__(self, *script: str | tuple[str, dict[str, Any], str], parent: str | None = None) -> None:
        self._script = script
        self._parent = parent
        self._out: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    async def connect(self) -> None:
        pass

    async def write(self, data: str) -> None:
        told = json.loads(data)
        if told["type"] == "control_request":
            response = {"subtype": "success", "request_id": told["request_id"], "response": {}}
            await self._out.put({"type": "control_response", "response": response})
        elif told["type"] == "user":
            await self._answer(told["message"]["content"])

    async def _answer(self, prompt: str) -> None:
        await self._note("user", prompt)
        for line in self._script:
            if isinstance(line, str):
                await self._say([{"type": "text", "text": line}])
            else:
                name, arguments, output = line
                await self._say([{"type": "tool_use", "id": "toolu_1", "name": name, "input": arguments}])
                await self._note("user", [{"type": "tool_result", "tool_use_id": "toolu_1", "content": output}])
        await self._out.put(
            {
                "type": "result",
                "subtype": "success",
                "session_id": SESSION,
                "is_error": False,
                "num_turns": 1,
                "duration_ms": 1,
                "duration_api_ms": 1,
            }
        )
        await self._out.put(None)

    async def _say(self, content: list[dict[str, Any]]) -> None:
        await self._note("assistant", content)
        message = {"role": "assistant", "model": "scripted", "content": content}
        await self._out.put({"type": "assistant", "session_id": SESSION, "message": message})

    async def _note(self, role: str, content: Any) -> None:
        """Write a line into the transcript, and mirror it."""
        home = Path(os.environ.get("CLAUDE_CONFIG_DIR", Path.home() / ".claude"))
        entry = {"type": role, "uuid": str(uuid4()), "parentUuid": self._parent, "sessionId": SESSION}
        entry |= {"timestamp": "2026-05-01T09:00:00.000Z", "message": {"role": role, "content": content}}
        path = home / "projects" / project_key_for_directory() / f"{SESSION}.jsonl"
        self._parent = entry["uuid"]
        await self._out.put({"type": "transcript_mirror", "filePath": str(path), "entries": [entry]})

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:  # type: ignore[override]
        while (message := await self._out.get()) is not None:
            yield message

    async def close(self) -> None:
        pass

    def is_ready(self) -> bool:
        return True

    async def end_input(self) -> None:
        pass


async def ask(sessions: StateStoreSessions, prompt: str, claude: Transport, resume: str | None = None) -> str:
    """One turn; what Claude says is printed. The id of the session comes back, to resume it by."""
    session_id = ""
    options = ClaudeAgentOptions(session_store=sessions, resume=resume)
    async for message in query(prompt=prompt, options=options, transport=claude):
        if isinstance(message, AssistantMessage):
            for block in message.content:
                if isinstance(block, TextBlock):
                    print("claude:", block.text)
        elif isinstance(message, ResultMessage):
            session_id = message.session_id
    return session_id


async def main(url: str) -> None:
    """Talk, come back later, and look at what was kept."""
    async with StateStoreSessions(url, user_id="alice") as sessions:
        timetable = ("timetable", {"before": "12:00"}, "10:40, 11:15")
        trip = await ask(sessions, "Which ferry arrives before noon?", ScriptedClaude(timetable, "The 10:40."))

    async with StateStoreSessions(url, user_id="alice") as sessions:  # another day, another process
        said = await get_session_messages_from_store(sessions, trip)
        await ask(sessions, "Book it.", ScriptedClaude("Booked: the 10:40.", parent=said[-1].uuid), resume=trip)
        for info in await list_sessions_from_store(sessions):
            print("listed:", info.summary)
        print("messages:", len(await get_session_messages_from_store(sessions, trip)))

    async with AsyncStateStore.open(url) as store:
        (summary,) = await store.list_sessions(user_id="alice")
        for entry in await store.timeline(summary.id):
            print(f"  #{entry.seq} {entry.kind}")
        for hit in await store.search_sessions("noon", user_id="alice"):
            print(f"found in #{hit.seq}: {hit.snippet}")


if __name__ == "__main__":
    with TemporaryDirectory() as directory:
        asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else str(Path(directory) / "state.db")))
