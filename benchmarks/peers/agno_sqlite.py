"""agno: ``SqliteDb``, a row for the session and one for each run."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from agno.db.base import SessionType
from agno.db.sqlite import SqliteDb
from agno.models.message import Message
from agno.run.agent import RunOutput
from agno.run.base import RunStatus
from agno.session.agent import AgentSession
from sqlalchemy import text

from benchmarks.peers.peer import pragmas


class Agno:
    """An exchange is a run."""

    name = "agno"
    package = "agno"
    used = (
        "SqliteDb(db_file=…). An exchange is a run of two messages: upsert_session, then upsert_run, as its agents do;"
        " in this release runs have rows of their own. get_session, whose run objects it caches from one load to the"
        " next; get_sessions(limit=50) by update, without the runs."
    )

    def open(self, directory: Path) -> None:
        self._db = SqliteDb(db_file=str(directory / "agno.db"))
        self._sessions: dict[str, AgentSession] = {}

    def append(self, session: str, user_text: str, agent_text: str) -> None:
        if session not in self._sessions:
            self._sessions[session] = AgentSession(session, agent_id="agent", user_id="user", session_data={})
        held = self._sessions[session]
        run = RunOutput(
            run_id=str(uuid4()),
            agent_id="agent",
            session_id=session,
            content=agent_text,
            messages=[Message(role="user", content=user_text), Message(role="assistant", content=agent_text)],
            status=RunStatus.completed,
        )
        held.upsert_run(run)
        self._db.upsert_session(held)
        self._db.upsert_run(run, session, user_id="user", run_index=len(held.runs or ()) - 1)

    def load(self, session: str) -> int:
        loaded = self._db.get_session(session, SessionType.AGENT)
        assert isinstance(loaded, AgentSession)
        return sum(len(run.messages or ()) for run in loaded.runs or ())

    def list_newest(self, count: int) -> int:
        listed = self._db.get_sessions(
            SessionType.AGENT, limit=count, sort_by="updated_at", sort_order="desc", include_runs=False
        )
        return len(listed)

    def durability(self) -> str:
        with self._db.db_engine.connect() as connection:
            return pragmas(lambda statement: tuple(connection.execute(text(statement)).one()))

    def close(self) -> None:
        self._db.close()
