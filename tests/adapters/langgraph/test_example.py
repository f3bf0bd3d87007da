"""The example runs, without a network and without a key, and shows what it promises."""

from __future__ import annotations

from adapters.reading import statestore
from adapters.running import output_of


def test_the_graph_remembers_and_is_pruned(sqlite_url: str) -> None:
    lines = output_of("langgraph_chat", sqlite_url)
    assert lines[:5] == [
        "agent: The 10:40 arrives before noon.",
        "agent: Booked: the 10:40, a window seat.",
        "messages in the state: 6",
        "checkpoints: 8",
        "remembered: ['likes a window seat']",
    ]
    assert lines[5:8] == [
        "checkpoints after pruning: 1",
        "messages in the state: 6",
        "trip - Which ferry arrives before noon? - 2 messages",
    ]
    assert lines[8].startswith("found in #")
    assert "Booked: the 10:40, a window seat." in statestore(sqlite_url, "export", "trip", "--format", "markdown")
