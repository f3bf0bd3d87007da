"""langchain-community: ``SQLChatMessageHistory`` on SQLite."""

from __future__ import annotations

from pathlib import Path

from langchain_community.chat_message_histories import SQLChatMessageHistory
from langchain_core.messages import AIMessage, HumanMessage
from sqlalchemy import create_engine, text

from benchmarks.peers.peer import pragmas


class LangChain:
    """One engine for all histories, one history for each session."""

    name = "langchain-community"
    package = "langchain-community"
    used = (
        "SQLChatMessageHistory(session_id, connection=engine), a history for a session, kept, all on one engine;"
        " add_messages with both; messages. It does not list sessions."
    )

    def open(self, directory: Path) -> None:
        self._engine = create_engine(f"sqlite:///{directory / 'history.db'}")
        self._histories: dict[str, SQLChatMessageHistory] = {}

    def append(self, session: str, user_text: str, agent_text: str) -> None:
        if session not in self._histories:
            self._histories[session] = SQLChatMessageHistory(session, connection=self._engine)
        self._histories[session].add_messages([HumanMessage(user_text), AIMessage(agent_text)])

    def load(self, session: str) -> int:
        return len(self._histories[session].messages)

    def list_newest(self, count: int) -> None:
        return None

    def durability(self) -> str:
        with self._engine.connect() as connection:
            return pragmas(lambda statement: tuple(connection.execute(text(statement)).one()))

    def close(self) -> None:
        self._engine.dispose()
