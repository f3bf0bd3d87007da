"""The Rust program writes into the directory while we do, and knows nothing of us: nothing of either is lost."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import rust_program
from contents import snapshot

from statestore import (
    AgentResponse,
    DocumentConflict,
    Event,
    Session,
    SessionConflict,
    SessionNotFound,
    StateStore,
    UserMessage,
)
from words import user_words


def _loaded(store: StateStore, session_id: str = "shared") -> Session:
    session = store.load_session(session_id)
    assert session is not None
    return session


@pytest.fixture
def shared(store: StateStore) -> Session:
    session = store.get_or_create_session("alice", "shared")
    session.add_user_message("first")
    store.save_session(session)
    return session


def test_a_message_that_came_in_behind_our_back_is_seen_at_the_next_read(
    root: Path, store: StateStore, shared: Session
) -> None:
    assert user_words(store, "shared") == ["first"]
    rust_program.say(root, "shared", "theirs")
    assert user_words(store, "shared") == ["first", "theirs"]
    assert store.list_sessions()[0].message_count == 2
    assert [entry.seq for entry in store.timeline("shared")] == [1, 2]


def test_a_message_that_came_in_between_our_load_and_our_save_is_merged(
    root: Path, store: StateStore, shared: Session
) -> None:
    shared.add_user_message("ours")
    rust_program.say(root, "shared", "theirs")
    store.save_session(shared)
    assert sorted(user_words(store, "shared")) == ["first", "ours", "theirs"]
    rust_program.say(root, "shared", "theirs again")
    store.append("shared", UserMessage("ours again"))
    assert sorted(user_words(store, "shared")) == ["first", "ours", "ours again", "theirs", "theirs again"]


def test_a_rewrite_of_history_is_refused_when_the_other_program_wrote_meanwhile(
    root: Path, store: StateStore, shared: Session
) -> None:
    del shared.user_messages[0]
    rust_program.say(root, "shared", "theirs")
    with pytest.raises(SessionConflict):
        store.save_session(shared)
    assert user_words(store, "shared") == ["first", "theirs"]


def _ours(store: StateStore, session: Session) -> dict[str, Callable[[], object]]:
    def batch() -> None:
        with store.batch() as batch:
            batch.save_session(session)
            batch.save_markdown("notes", "today", "ours")

    session.add_user_message("ours")
    return {
        "a save": lambda: store.save_session(session),
        "an append": lambda: store.append("shared", UserMessage("ours")),
        "a batch": batch,
    }


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("way", ["a save", "an append", "a batch"])
def test_a_message_that_came_in_between_our_look_and_our_rename_is_merged(
    way: str, times: int, root: Path, store: StateStore, shared: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = [f"theirs {number}" for number in range(times)]
    waiting = list(theirs)
    flush = os.fsync

    def flush_while_they_write(fd: int) -> None:
        flush(fd)
        if waiting:  # our temporary file is written; the old one was read before that
            rust_program.say(root, "shared", waiting.pop(0))

    write = _ours(store, shared)[way]
    monkeypatch.setattr(os, "fsync", flush_while_they_write)
    write()
    monkeypatch.undo()
    assert not waiting
    assert sorted(user_words(store, "shared")) == sorted(["first", "ours", *theirs])
    seqs = [entry.seq for entry in store.timeline("shared")]
    assert seqs == sorted(set(seqs))
    assert os.listdir(root / ".statestore" / "tmp") == []


def test_a_session_that_the_other_program_created_while_we_did_is_one_session(
    root: Path, store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.get_or_create_session("alice", "another")
    theirs = rust_program.new_session("shared")
    rust_program.push(theirs, "theirs")
    flush = os.fsync

    def flush_while_they_write(fd: int) -> None:
        flush(fd)
        if not rust_program.session_path(root, "shared").exists():
            rust_program.save(root, theirs)

    monkeypatch.setattr(os, "fsync", flush_while_they_write)
    session = store.get_or_create_session("alice", "shared")
    monkeypatch.undo()
    assert session.created_text == theirs["created_at"]
    assert user_words(store, "shared") == ["theirs"]


def test_a_session_that_the_other_program_deleted_while_we_wrote_is_not_brought_back(
    root: Path, store: StateStore, shared: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush = os.fsync

    def flush_while_they_delete(fd: int) -> None:
        flush(fd)
        rust_program.session_path(root, "shared").unlink(missing_ok=True)

    monkeypatch.setattr(os, "fsync", flush_while_they_delete)
    with pytest.raises(SessionNotFound):
        store.append("shared", UserMessage("ours"))
    monkeypatch.undo()
    assert not store.session_exists("shared")


def _rich(store: StateStore) -> None:
    """A session with all that the seed has no field for."""
    session = Session("alice", "rich")
    session.add_user_message("first", key="key-1")
    session.add_event("tool", {"z": [1, {"y": 2, "b": 3}], "a": 1.5}, key="key-2")
    session.add_agent_response("answer")
    session.set_metadata("zeta", 1)
    session.set_metadata("alpha", {"b": 1, "a": 2})
    store.save_session(session)
    store.append("rich", Event("thought", "hm"), UserMessage("second"))
    store.rewind_session("rich", to=4)
    store.append("rich", UserMessage("third"), keys=["key-3"])


def _shown(store: StateStore) -> list[tuple[int, str, object]]:
    return [
        (entry.seq, entry.kind, entry.record.data if isinstance(entry.record, Event) else entry.record.content)
        for entry in store.timeline("rich")
    ]


RICH = [
    (1, "user", "first"),
    (2, "tool", {"z": [1, {"y": 2, "b": 3}], "a": 1.5}),
    (3, "agent", "answer"),
    (4, "thought", "hm"),
    (6, "user", "third"),
]


def test_events_keys_and_numbers_survive_a_rewrite_by_a_program_that_does_not_know_them(
    root: Path, store: StateStore
) -> None:
    _rich(store)
    assert _shown(store) == RICH
    before = _loaded(store, "rich").metadata
    rust_program.change(root, "rich", lambda session: None)
    assert _shown(store) == RICH
    assert _loaded(store, "rich").metadata == before
    keys = ["key-1", "key-2", "key-3"]
    again = store.append("rich", UserMessage("first"), Event("tool"), UserMessage("third"), keys=keys)
    assert again == [1, 2, 6]
    assert _shown(store) == RICH


def test_messages_that_the_other_program_appends_get_the_next_numbers(root: Path, store: StateStore) -> None:
    _rich(store)
    rust_program.say(root, "rich", "theirs")
    assert _shown(store) == [*RICH, (7, "user", "theirs")]
    assert store.append("rich", AgentResponse("ours"), keys=["key-4"]) == [8]
    rust_program.say(root, "rich", "theirs again")
    expected = [*RICH, (7, "user", "theirs"), (8, "agent", "ours"), (9, "user", "theirs again")]
    assert _shown(store) == expected
    assert store.append("rich", AgentResponse("ours"), keys=["key-4"]) == [8]
    assert _shown(store) == expected


def test_what_the_other_program_reads_of_us_it_can_write_back(root: Path, store: StateStore) -> None:
    _rich(store)
    for turn in range(5):
        rust_program.say(root, "rich", f"theirs {turn}")
        store.append("rich", UserMessage(f"ours {turn}"), Event("tool", turn))
    assert [number for number, *_ in _shown(store)] == [1, 2, 3, 4, *range(6, 22)]
    said = [content for _, kind, content in _shown(store) if kind == "user"]
    assert said == ["first", "third", *(f"{who} {turn}" for turn in range(5) for who in ("theirs", "ours"))]
    assert store.check() == []


def test_a_key_whose_record_the_other_program_dropped_is_not_claimed(root: Path, store: StateStore) -> None:
    _rich(store)

    def drop_the_last(session: dict[str, Any]) -> None:
        session["user_messages"].pop()

    rust_program.change(root, "rich", drop_the_last)
    (number,) = store.append("rich", UserMessage("third"), keys=["key-3"])
    assert [content for _, kind, content in _shown(store) if kind == "user"] == ["first", "third"]
    assert store.append("rich", UserMessage("third"), keys=["key-3"]) == [number]


def test_a_key_is_not_claimed_for_another_record_that_took_its_place(root: Path, store: StateStore) -> None:
    _rich(store)

    def replace_the_last(session: dict[str, Any]) -> None:
        session["user_messages"][-1] = {"content": "theirs", "timestamp": rust_program.now()}

    rust_program.change(root, "rich", replace_the_last)
    store.append("rich", UserMessage("third"), keys=["key-3"])
    assert [content for _, kind, content in _shown(store) if kind == "user"] == ["first", "theirs", "third"]


def test_a_program_that_drops_our_notes_costs_what_they_held_and_nothing_else(root: Path, store: StateStore) -> None:
    _rich(store)

    def forget(session: dict[str, Any]) -> None:
        del session["metadata"]["statestore"]

    rust_program.change(root, "rich", forget)
    assert [content for _, _, content in _shown(store)] == ["first", "answer", "third"]
    assert store.append("rich", UserMessage("fourth"), keys=["key-3"])
    assert [content for _, _, content in _shown(store)] == ["first", "answer", "third", "fourth"]


def test_its_temporary_files_are_reported_and_left_alone(root: Path, store: StateStore, shared: Session) -> None:
    store.save_markdown("notes", "today", "hello")
    live = [
        root / "sessions" / f"shared.{os.getpid()}.3f0c.tmp",
        root / "notes" / "today.123.abc.tmp",
    ]
    for path in live:
        path.write_bytes(b'{"half": ')
    before = {path: snapshot(root)[os.fsencode(path)] for path in live}
    assert [problem.where for problem in store.check()] == [f"notes/{live[1].name}", f"sessions/{live[0].name}"]
    assert [summary.id for summary in store.list_sessions()] == ["shared"]
    assert store.list_category("notes") == ["today"]
    store.delete_session("shared")
    store.delete_category("notes")
    StateStore.open(root).close()
    assert {path: snapshot(root)[os.fsencode(path)] for path in live} == before


def test_both_write_at_once_and_our_words_that_it_saw_are_all_there(root: Path, store: StateStore) -> None:
    """It may overwrite what we wrote since its own load: that is its nature. All else is kept by both."""
    store.get_or_create_session("alice", "shared")
    for turn in range(30):
        store.append("shared", UserMessage(f"ours {turn}"))
        rust_program.say(root, "shared", f"theirs {turn}")
    expected = [f"{who} {turn}" for turn in range(30) for who in ("ours", "theirs")]
    assert user_words(store, "shared") == expected
    found = json.loads(rust_program.session_path(root, "shared").read_bytes())
    assert [message["content"] for message in found["user_messages"]] == expected


def test_a_document_that_the_other_program_replaced_is_not_at_our_version_any_more(
    root: Path, store: StateStore
) -> None:
    version = store.save_json("agents", "one", {"turn": 1})
    rust_program.write(root / "agents" / "one.json", b'{\n  "turn": 2\n}')
    with pytest.raises(DocumentConflict):
        store.save_json("agents", "one", {"turn": 3}, if_version=version)
    assert store.load_json("agents", "one") == {"turn": 2}
