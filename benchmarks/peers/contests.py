"""Who is measured beside whom: a contest for each engine, among the stores that have it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple

from benchmarks.peers import grounds

LENGTHS = (10, 30, 100, 300, 1000)


class Contest(NamedTuple):
    """Stores on one engine. Those of different contests are not measured in turn with each other."""

    engine: str
    ground: Callable[[], AbstractContextManager[grounds.Ground]]
    lengths: tuple[int, ...]
    """So many exchanges are in a session before one more is appended; the table shows the first and the last."""
    modules: dict[str, tuple[str, ...]]
    """The classes of the stores, by module: one that cannot be imported does not keep the others from running."""


CONTESTS = {
    "sqlite": Contest(
        "SQLite and files",
        grounds.directories,
        LENGTHS,
        {
            "bare": ("Bare",),
            "ours": ("AsyncOurs", "PlainOurs"),
            "openai_agents": ("OpenAIAgents",),
            "google_adk": ("AdkSqlite", "AdkDatabase"),
            "langgraph_sqlite": ("LangGraphSqlite",),
            "strands_files": ("Strands",),
            "langchain_sql": ("LangChain",),
            "agno_sqlite": ("Agno",),
            "llama_index_sql": ("LlamaIndex",),
        },
    ),
    "postgresql": Contest(
        "PostgreSQL",
        grounds.postgres,
        (LENGTHS[0], LENGTHS[-1]),
        {
            "ours_on_servers": ("OursOnPostgres",),
            "openai_agents_sqlalchemy": ("OpenAIAgentsSQLAlchemy",),
            "google_adk": ("AdkPostgres",),
            "langgraph_postgres": ("LangGraphPostgres",),
        },
    ),
    "valkey": Contest(
        "Valkey",
        grounds.valkey,
        (LENGTHS[0], LENGTHS[-1]),
        {
            "ours_on_servers": ("OursOnValkey",),
            "openai_agents_redis": ("OpenAIAgentsRedis",),
        },
    ),
}
