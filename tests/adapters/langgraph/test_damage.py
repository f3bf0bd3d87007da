"""Records that cannot be understood: they name themselves, and hide nothing else."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from adapters.langgraph.graphs import chat, say, texts, thread
from statestore import CorruptData, CorruptSession, Event, StateStore, UserMessage
from statestore.adapters.langgraph import StateStoreSaver


def test_a_message_that_cannot_be_read_names_itself(sqlite_url: str, tmp_path: Path) -> None:
    with StateStoreSaver(sqlite_url) as saver:
        graph = chat(saver)
        say(graph, "one", "bad")
        say(graph, "one", "good")
        connection = sqlite3.connect(tmp_path / "state.db")
        changed = connection.execute(
            'UPDATE records SET body = replace(body, \'"langgraph":{\', \'"langgraph":{"type":"martian"\' || '
            "CASE WHEN body LIKE '%\"langgraph\":{}%' THEN '' ELSE ',' END) "
            "WHERE place = (SELECT min(place) FROM records WHERE kind = 0)"
        )
        assert changed.rowcount == 1
        connection.commit()
        connection.close()
        saver._threads.clear()
        with pytest.raises(CorruptData, match=r"thread bad: .*record \d+"):
            texts(graph, "bad")
        assert texts(graph, "good") == ["one", "You said: one"]


def test_a_record_that_is_damaged_names_its_session(sqlite_url: str, tmp_path: Path) -> None:
    with StateStoreSaver(sqlite_url) as saver:
        graph = chat(saver)
        say(graph, "one")
        connection = sqlite3.connect(tmp_path / "state.db")
        connection.execute("UPDATE records SET body = '{' WHERE place = (SELECT max(place) FROM records)")
        connection.commit()
        connection.close()
        saver._threads.clear()
        with pytest.raises(CorruptSession, match="session t cannot be read"):
            texts(graph)


def test_a_record_that_cannot_be_read_hides_no_older_ones(our_saver: StateStoreSaver) -> None:
    store = our_saver._access._opened_plainly()
    assert isinstance(store, StateStore)
    graph = chat(our_saver)
    for number in range(30):
        say(graph, f"question {number}")
    checkpoints = list(our_saver.list(thread()))
    store.append("t", Event("odd", 1, extra={"content": ["not", "a", "text"]}))
    our_saver._threads.clear()
    assert our_saver.get_tuple(checkpoints[-1].config) == checkpoints[-1]
    our_saver._threads.clear()
    assert len(list(our_saver.list(thread()))) == len(checkpoints)


def test_records_of_others_are_left_alone(our_saver: StateStoreSaver) -> None:
    store = our_saver._access._opened_plainly()
    assert isinstance(store, StateStore)
    graph = chat(our_saver)
    say(graph, "one")
    store.append("t", UserMessage("said by hand"), Event("checkpoint", {"not": "ours"}), Event("writes", [1]))
    store.append(
        "t", Event("odd", 1, extra={"langgraph": False}), Event("newer", 1, extra={"langgraph": {"kind": "x"}})
    )
    assert say(graph, "two") == ["one", "You said: one", "two", "You said: two"]
    our_saver._threads.clear()
    assert texts(graph) == ["one", "You said: one", "two", "You said: two"]
    assert len(list(our_saver.list(thread()))) == 6
    session = store.load_session("t")
    assert session is not None
    assert "said by hand" in [message.content for message in session.user_messages]
