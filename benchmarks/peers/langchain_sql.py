"""langchain: what its message histories share, and langchain-community's ``SQLChatMessageHistory`` on SQLite."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Generic, TypeVar

from langchain_community.chat_message_histories import SQLChatMessageHistory
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import AIMessage, HumanMessage
from sqlalchemy import create_engine, text

from benchmarks.peers.peer import pragmas

H = TypeVar("H", bound=BaseChatMessageHistory)


class Histories(Generic[H]):
    """One history for each session, kept."""

    _histories: dict[str, H]

    def append(self, session: str, user_text: str, agent_text: str) -> None:
        self.fill(session, 1, user_text, agent_text)

    def fill(self, session: str, exchanges: int, user_text: str, agent_text: str) -> None:
        if session not in self._histories:
            self._histories[session] = self._made(session)
        self._histories[session].add_messages([HumanMessage(user_text), AIMessage(agent_text)] * exchanges)

    def load(self, session: str) -> int:
        return len(self._histories[session].messages)

    def list_newest(self, count: int) -> None:
        return None

    @abstractmethod
    def _made(self, session: str) -> H: ...


class LangChain(Histories[SQLChatMessageHistory]):
    """One engine for all histories."""

    name = "langchain-community"
    package = "langchain-community"
    used = (
        "SQLChatMessageHistory(session_id, connection=engine), a history for a session, kept, all on one engine;"
        " add_messages with both; messages. It does not list sessions."
    )

    def open(self, directory: Path) -> None:
        self._engine = create_engine(f"sqlite:///{directory / 'history.db'}")
        self._histories = {}

    def _made(self, session: str) -> SQLChatMessageHistory:
        return SQLChatMessageHistory(session, connection=self._engine)

    def durability(self) -> str:
        with self._engine.connect() as connection:
            return pragmas(lambda statement: tuple(connection.execute(text(statement)).one()))

    def close(self) -> None:
        self._engine.dispose()
