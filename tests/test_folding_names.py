"""On a file system that takes ``Name`` and ``name`` for one, two names never share a file.

No such file system can be mounted everywhere, so the system's own calls are made to fold names here.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from statestore import NameTaken, Session, StateStore


def _folded(name: Any, directory: int | None) -> Any:
    """The name under which a folding file system would find this one."""
    if not isinstance(name, str) or directory is None or "/" in name:
        return name
    names = os.listdir(directory)
    return name if name in names else next((other for other in names if other.casefold() == name.casefold()), name)


def _folding(call: Callable[..., Any]) -> Callable[..., Any]:
    def fold(path: Any, *rest: Any, **options: Any) -> Any:
        directory = options.get("dir_fd", options.get("src_dir_fd"))
        if "dst_dir_fd" in options:
            rest = (_folded(rest[0], options["dst_dir_fd"]), *rest[1:])
        return call(_folded(path, directory), *rest, **options)

    return fold


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StateStore:
    for name in ("open", "stat", "rename", "unlink", "mkdir"):
        monkeypatch.setattr(os, name, _folding(getattr(os, name)))
    return StateStore.open(tmp_path)


def test_a_second_document_that_would_share_a_file_is_refused(store: StateStore) -> None:
    store.save_json("notes", "Plan", 1)
    with pytest.raises(NameTaken, match="plan"):
        store.save_json("notes", "plan", 2)
    with pytest.raises(NameTaken), store.batch() as batch:
        batch.save_json("notes", "other", 3)
        batch.save_json("notes", "plan", 3)
    assert store.load_json("notes", "Plan") == 1
    assert store.load_json("notes", "plan") is None
    assert store.list_category("notes") == ["Plan"]
    store.save_json("notes", "Plan", 4)
    assert store.load_json("notes", "Plan") == 4
    store.close()


def test_a_second_category_that_would_share_a_directory_is_refused(store: StateStore) -> None:
    store.save_json("notes/a", "n", 1)
    for category in ("Notes", "Notes/a", "notes/A"):
        with pytest.raises(NameTaken):
            store.save_json(category, "m", 2)
        assert store.load_json(category, "n") is None
        assert store.list_category(category) == []
    assert store.list_categories() == ["notes/a"]
    store.close()


def test_a_second_session_that_would_share_a_file_is_refused(store: StateStore) -> None:
    session = store.get_or_create_session("alice", "S1")
    with pytest.raises(NameTaken):
        store.save_session(Session("bob", "s1"))
    assert store.load_session("s1") is None
    assert not store.delete_session("s1")
    session.add_user_message("hello")
    store.save_session(session)
    assert [summary.id for summary in store.list_sessions()] == ["S1"]
    store.close()
