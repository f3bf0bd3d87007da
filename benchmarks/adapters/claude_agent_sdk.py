"""claude-agent-sdk: the files that the CLI leaves on the disk, read by the SDK, beside ``StateStoreSessions``.

The SDK ships no durable store. The files are appended to here as the CLI does, and flushed, as we flush.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid4, uuid5

from claude_agent_sdk import (
    SessionKey,
    get_session_messages,
    get_session_messages_from_store,
    list_sessions,
    list_sessions_from_store,
    project_key_for_directory,
)

from benchmarks.adapters.opened import OnSqlite
from statestore.adapters.claude_agent_sdk import StateStoreSessions

_PLACE = "/home/alice/island"


class _Transcripts:
    """Entries in a chain, each with the one before it as its parent."""

    _last: dict[str, str]

    def _entries(self, session: str, exchanges: int, user_text: str, agent_text: str) -> list[Any]:
        entries: list[Any] = []
        for _ in range(exchanges):
            for role, content in (("user", user_text), ("assistant", [{"type": "text", "text": agent_text}])):
                entry = {"type": role, "uuid": str(uuid4()), "parentUuid": self._last.get(session), "cwd": _PLACE}
                entry |= {"sessionId": _id(session), "timestamp": "2026-05-01T09:00:00.000Z"}
                entries.append(entry | {"message": {"role": role, "content": content}})
                self._last[session] = entry["uuid"]
        return entries


def _id(session: str) -> str:
    """The SDK wants UUIDs."""
    return str(uuid5(NAMESPACE_URL, session))


def _key(session: str) -> SessionKey:
    return {"project_key": project_key_for_directory(_PLACE), "session_id": _id(session)}


class Files(_Transcripts):
    """A file of lines for each session."""

    name = "claude-agent-sdk"
    package = "claude-agent-sdk"
    used = (
        "It ships no durable store; the nearest is what the CLI leaves on the disk. An exchange is two lines, appended"
        " to the session's .jsonl file and flushed; get_session_messages; list_sessions without worktrees."
    )

    def open(self, directory: Path) -> None:
        os.environ["CLAUDE_CONFIG_DIR"] = str(directory)
        self._files = directory / "projects" / project_key_for_directory(_PLACE)
        self._files.mkdir(parents=True)
        self._last = {}

    def append(self, session: str, user_text: str, agent_text: str) -> None:
        with self._file(session).open("a") as file:
            file.writelines(json.dumps(entry) + "\n" for entry in self._entries(session, 1, user_text, agent_text))
            file.flush()
            os.fsync(file.fileno())

    def fill(self, session: str, exchanges: int, user_text: str, agent_text: str) -> None:
        entries = self._entries(session, exchanges, user_text, agent_text)
        self._file(session).write_text("".join(json.dumps(entry) + "\n" for entry in entries))

    def _file(self, session: str) -> Path:
        return self._files / f"{_id(session)}.jsonl"

    def load(self, session: str) -> int:
        return len(get_session_messages(_id(session), _PLACE))

    def list_newest(self, count: int) -> int:
        return len(list_sessions(_PLACE, limit=count, include_worktrees=False))

    def durability(self) -> str:
        return "appended, flushed"

    def close(self) -> None:
        os.environ.pop("CLAUDE_CONFIG_DIR", None)


class Ours(OnSqlite, _Transcripts):
    """One store of sessions."""

    used = "StateStoreSessions(store); append; get_session_messages_from_store; list_sessions_from_store."

    async def open(self, directory: Path) -> None:
        self._sessions = StateStoreSessions(await self._store_in(directory))
        self._unflushed = StateStoreSessions(await self._unflushed_in(directory))
        self._last = {}

    async def append(self, session: str, user_text: str, agent_text: str) -> None:
        await self._sessions.append(_key(session), self._entries(session, 1, user_text, agent_text))

    async def fill(self, session: str, exchanges: int, user_text: str, agent_text: str) -> None:
        await self._unflushed.append(_key(session), self._entries(session, exchanges, user_text, agent_text))

    async def load(self, session: str) -> int:
        return len(await get_session_messages_from_store(self._sessions, _id(session), _PLACE))

    async def list_newest(self, count: int) -> int:
        return len(await list_sessions_from_store(self._sessions, _PLACE, limit=count))
