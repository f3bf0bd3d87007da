"""strands-agents: what its repositories share, and ``FileSessionManager``, a JSON file for each message."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Generic, TypeVar

from strands.session.file_session_manager import FileSessionManager
from strands.session.session_repository import SessionRepository
from strands.types.session import SessionAgent, SessionMessage

_AGENT = "agent"
R = TypeVar("R", bound=SessionRepository)


class Repositories(Generic[R]):
    """Messages are numbered by whoever adds them, here as a session manager does."""

    _sessions: dict[str, R]
    _lengths: dict[str, int]

    def append(self, session: str, user_text: str, agent_text: str) -> None:
        self._say(self._repository(session), session, user_text, agent_text)

    def _repository(self, session: str) -> R:
        if session not in self._sessions:
            self._sessions[session] = self._made(session)
            agent = SessionAgent(agent_id=_AGENT, state={}, conversation_manager_state={})
            self._sessions[session].create_agent(session, agent)
        return self._sessions[session]

    def _say(self, repository: SessionRepository, session: str, user_text: str, agent_text: str) -> None:
        length = self._lengths.get(session, 0)
        self._lengths[session] = length + 2
        user = SessionMessage.from_message({"role": "user", "content": [{"text": user_text}]}, length)
        reply = SessionMessage.from_message({"role": "assistant", "content": [{"text": agent_text}]}, length + 1)
        repository.create_message(session, _AGENT, user)
        repository.create_message(session, _AGENT, reply)

    def load(self, session: str) -> int:
        return len(self._sessions[session].list_messages(session, _AGENT))

    def list_newest(self, count: int) -> None:
        return None

    @abstractmethod
    def _made(self, session: str) -> R: ...


class Strands(Repositories[FileSessionManager]):
    """The manager is its own repository of all sessions."""

    name = "strands-agents"
    package = "strands-agents"
    used = (
        "FileSessionManager(session_id, storage_dir), an object for a session; create_message for each of the two"
        " messages, as its append_message does, without the writes of the agent's state around it; list_messages."
        " By its source it flushes nothing: what it stored need not survive a power cut. It does not list sessions."
    )

    def open(self, directory: Path) -> None:
        self._directory = directory / "sessions"
        self._lengths, self._sessions = {}, {}

    def _made(self, session: str) -> FileSessionManager:
        return FileSessionManager(session, storage_dir=str(self._directory))

    def durability(self) -> str:
        return "renamed, never flushed"

    def close(self) -> None:
        self._sessions.clear()
