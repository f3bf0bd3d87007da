"""A save that was interrupted before its flush: whoever sees what it left has it flushed first."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from statestore import StateStore, StoreUnavailable, UserMessage


class Flushes:
    """Notes which directories are flushed, and fails once for one of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.failing: str | None = None
        self._noted: list[str] = []
        self._flush = os.fsync
        monkeypatch.setattr(os, "fsync", self._flushed)

    def _flushed(self, fd: int) -> None:
        name = os.path.basename(os.readlink(f"/proc/self/fd/{fd}"))
        if name == self.failing:
            self.failing = None
            raise OSError(5, "Input/output error")
        self._noted.append(name)
        self._flush(fd)

    def take(self) -> list[str]:
        noted, self._noted = self._noted, []
        return noted


@pytest.fixture
def flushes(monkeypatch: pytest.MonkeyPatch) -> Flushes:
    return Flushes(monkeypatch)


def _watched(store: StateStore, cursor: str) -> str:
    with closing(store.watch(after=cursor)) as notices:
        return next(notices).session_id


@pytest.mark.parametrize(
    ("read", "found"),
    [
        pytest.param(lambda store: store.list_category("notes"), ["first", "second"], id="list_category"),
        pytest.param(lambda store: store.list_categories(), ["notes"], id="list_categories"),
        pytest.param(lambda store: store.load_json("notes", "second"), 2, id="load_json"),
        pytest.param(lambda store: len(store.check()), 0, id="check"),
    ],
)
def test_a_document_whose_save_failed_is_flushed_by_whoever_sees_it(
    files_store: StateStore, flushes: Flushes, read: Callable[[StateStore], Any], found: Any
) -> None:
    files_store.save_json("notes", "first", 1)
    flushes.failing = "notes"
    with pytest.raises(StoreUnavailable):
        files_store.save_json("notes", "second", 2)
    flushes.take()
    assert read(files_store) == found
    assert flushes.take().count("notes") == 1
    assert read(files_store) == found
    assert "notes" not in flushes.take()


@pytest.mark.parametrize(
    ("read", "found"),
    [
        pytest.param(lambda store, _: [s.message_count for s in store.list_sessions()], [1], id="list_sessions"),
        pytest.param(lambda store, _: store.count_sessions(), 1, id="count_sessions"),
        pytest.param(lambda store, _: len(store.search_sessions("word")), 1, id="search_sessions"),
        pytest.param(lambda store, cursor: store.change_cursor() != cursor, True, id="change_cursor"),
        pytest.param(_watched, "s", id="watch"),
        pytest.param(lambda store, _: store.session_exists("s"), True, id="session_exists"),
    ],
)
def test_a_session_whose_change_failed_is_flushed_by_whoever_sees_it(
    files_store: StateStore, flushes: Flushes, read: Callable[[StateStore, str], Any], found: Any
) -> None:
    files_store.get_or_create_session("alice", "s")
    cursor = files_store.change_cursor()
    flushes.failing = "sessions"
    with pytest.raises(StoreUnavailable):
        files_store.append("s", UserMessage("word"))
    flushes.take()
    assert read(files_store, cursor) == found
    assert flushes.take().count("sessions") == 1
    assert read(files_store, cursor) == found
    assert "sessions" not in flushes.take()
