"""Who is measured beside whom: a contest for each engine, among the stores that have it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple

from msgspec.structs import replace

from benchmarks.peers import grounds
from benchmarks.peers.figures import Effort

ON_FILES = Effort(
    lengths=(10, 30, 100, 300, 1000),
    loaded=(1000,),
    listed=(1000,),
    newest=50,
    appends=40,
    loads=10,
    listings=15,
    rounds=3,
)
ON_SERVERS = replace(ON_FILES, lengths=(10, 1000))


class Contest(NamedTuple):
    """Stores on one engine. Those of different contests are not measured in turn with each other."""

    engine: str
    ground: Callable[[], AbstractContextManager[grounds.Ground]]
    effort: Effort
    modules: dict[str, tuple[str, ...]]
    """The classes of the stores, by module: one that cannot be imported does not keep the others from running."""


def _here(modules: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {f"benchmarks.peers.{module}": names for module, names in modules.items()}


CONTESTS = {
    "sqlite": Contest(
        "SQLite and files",
        grounds.directories,
        ON_FILES,
        _here(
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
            }
        ),
    ),
    "postgresql": Contest(
        "PostgreSQL",
        grounds.postgres,
        ON_SERVERS,
        _here(
            {
                "ours_on_servers": ("OursOnPostgres",),
                "openai_agents_sqlalchemy": ("OpenAIAgentsSQLAlchemy",),
                "google_adk": ("AdkPostgres",),
                "langgraph_postgres": ("LangGraphPostgres",),
            }
        ),
    ),
    "valkey": Contest(
        "Valkey",
        grounds.valkey,
        ON_SERVERS,
        _here(
            {
                "ours_on_servers": ("OursOnValkey",),
                "openai_agents_redis": ("OpenAIAgentsRedis",),
            }
        ),
    ),
}


def in_brief(contest: Contest) -> Contest:
    """The same with short sessions and few turns: it shows that everything runs, and no figure to go by."""
    effort = contest.effort
    brief = replace(
        effort,
        lengths=_at_most(20, effort.lengths),
        loaded=_at_most(20, effort.loaded),
        listed=_at_most(60, effort.listed),
        appends=3,
        loads=1,
        listings=1,
        rounds=min(effort.rounds, 1),
        kept_turns=min(effort.kept_turns, 20),
        warm=1,
    )
    return contest._replace(effort=brief)


def _at_most(limit: int, numbers: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(min(number, limit) for number in numbers))
