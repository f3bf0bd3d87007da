"""Which stores are measured beside each other: for each framework its own, and ours under its adapter."""

from __future__ import annotations

from msgspec.structs import replace

from benchmarks.peers import grounds
from benchmarks.peers.contests import Contest
from benchmarks.peers.figures import Effort

LENGTHS = (10, 1000, 4000)
EFFORT = Effort(lengths=LENGTHS, loaded=LENGTHS, listed=LENGTHS, newest=None, appends=20, loads=5, listings=7, warm=1)


def _pair(framework: str, module: str, *stores: str) -> Contest:
    return Contest(framework, grounds.directories, EFFORT, {f"benchmarks.adapters.{module}": stores})


PAIRS = {
    pair.engine: pair
    for pair in (
        _pair("openai-agents", "openai_agents", "OpenAIAgents", "Ours"),
        _pair("langgraph", "langgraph", "LangGraphSqlite", "Ours"),
        _pair("google-adk", "google_adk", "AdkSqlite", "Ours"),
        _pair("pydantic-ai", "pydantic_ai", "InMemory", "OneRow", "Ours"),
        _pair("claude-agent-sdk", "claude_agent_sdk", "Files", "Ours"),
        _pair("strands-agents", "strands", "Strands", "Ours", "Relaxed"),
        _pair("agent-framework", "agent_framework", "Theirs", "Ours", "Relaxed"),
        _pair("agent-framework-checkpoints", "agent_framework_checkpoints", "Theirs", "Ours", "Relaxed"),
        _pair("llama-index", "llama_index", "Theirs", "Ours"),
        _pair("langchain", "langchain", "LangChain", "Ours"),
    )
}
"""By the name of the framework."""

GROWTH = Contest(
    "langgraph, one thread",
    grounds.directories,
    replace(EFFORT, lengths=(2000,), loaded=(), listed=(), kept_turns=400),
    {"benchmarks.adapters.langgraph": ("LangGraphSqlite", "Ours", "GraphAlone")},
)
"""A thread of LangGraph: its own saver keeps the whole state with each checkpoint."""
