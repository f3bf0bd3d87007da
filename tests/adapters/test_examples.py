"""The examples run, without a network and without a key, and show what they promise."""

from __future__ import annotations

import pytest

from adapters.reading import statestore
from adapters.running import output_of


def test_the_chat_backend_answers_streams_prunes_and_is_backed_up() -> None:
    lines = output_of("chat_backend")
    assert lines[0] == lines[1] == "agent: Booked: the 10:40."
    assert lines[2:5] == [
        "history: Which ferry arrives before noon? The 10:40. Book it. Booked: the 10:40.",
        "chats: A day on the island (2) Minutes (0) Dinner (0)",
        "mallory: SessionNotFound",
    ]
    assert lines[5:] == [
        'streamed: data: "Book it." data: "Booked: the 10:40."',
        "pruned: old",
        "exported: # A day on the island",
        "backed up: 3 chats",
    ]


def test_the_agent_of_openai_agents_remembers(sqlite_url: str) -> None:
    pytest.importorskip("agents")
    lines = output_of("openai_agents", sqlite_url)
    assert lines[:3] == [
        "agent: The 10:40 arrives before noon.",
        "agent: Booked: the 10:40.",
        "the model was given 5 items",
    ]
    assert "found in #1: Which ferry arrives before noon?" in lines
    assert "A day on the island" in statestore(sqlite_url, "ls")


def test_the_chat_of_langchain_goes_on_elsewhere() -> None:
    pytest.importorskip("langchain_core")
    lines = output_of("langchain_chat")
    assert lines[2] == "trip - Which ferry arrives before noon? - 2 messages"
    assert lines[-1] == "for another framework: {'role': 'assistant', 'content': 'Booked: the 10:40.'}"


def test_the_memory_of_llama_index_is_archived() -> None:
    pytest.importorskip("llama_index.core")
    lines = output_of("llama_index_chat")
    assert lines[1] == "keys: ['trip']"
    assert lines[-2:] == ["active: ['Book it.', 'Booked: the 10:40.']", "['user', 'agent', 'user', 'agent']"]
