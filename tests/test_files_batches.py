"""Batches of several files: what is done while others wait for them, and what becomes of what others do meanwhile."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from statestore import PruneConfig, Session, SessionConflict, StateStore, UserMessage
from statestore.engine import Batch
from statestore.engines.files.batches import BatchMaker
from statestore.engines.files.locks import Locks
from statestore.engines.files.temporary import TemporaryFiles
from words import user_words


class Held:
    """What is asked of the system while the locks of a batch are held."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: Counter[str] = Counter()
        self._is_held = False
        for name in ("read", "writev", "fsync", "unlink"):
            monkeypatch.setattr(os, name, self._counted(name, getattr(os, name)))
        all_held = Locks.all_held

        @contextmanager
        def noted(locks: Locks, names: Any) -> Generator[None]:
            with all_held(locks, names):
                self._is_held = True
                try:
                    yield
                finally:
                    self._is_held = False

        monkeypatch.setattr(Locks, "all_held", noted)

    def _counted(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            if self._is_held:
                self.calls[name] += 1
            return call(*arguments, **options)

        return counted


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Have something done once, after a batch was prepared, and before its locks are held."""
    alone = BatchMaker._alone  # pyright: ignore[reportPrivateUsage]
    acts = [act]

    @contextmanager
    def interrupted(maker: BatchMaker, batch: Batch) -> Generator[None]:
        if acts:
            acts.pop()()
        with alone(maker, batch):
            yield

    monkeypatch.setattr(BatchMaker, "_alone", interrupted)


def fill(store: StateStore, count: int) -> None:
    for number in range(count):
        session = Session("alice", f"s{number}")
        session.add_user_message("hello")
        store.save_session(session)


@pytest.fixture
def rival(directory: Path, files_store: StateStore) -> Generator[StateStore]:
    """Another store in the same directory, which is there already."""
    fill(files_store, 4)
    with StateStore.open(directory) as rival:
        yield rival


def left(directory: Path) -> list[str]:
    return os.listdir(directory / ".statestore" / "tmp")


@pytest.mark.parametrize("trash_hours", [0, 1])
def test_while_others_wait_nothing_is_read_written_or_freed_but_the_journal(
    trash_hours: int, files_store: StateStore, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(files_store, 20)
    categories = 1 + bool(trash_hours)
    held = Held(monkeypatch)
    assert files_store.prune_sessions(PruneConfig(max_sessions=1, ttl_hours=0, trash_hours=trash_hours)) == 19
    assert held.calls == {"fsync": 2 + categories, "unlink": 1}, "the journal comes, the directories change, it goes"
    assert left(directory) == []


def test_where_times_do_not_tell_one_state_from_another_all_is_done_with_the_locks_held(
    files_store: StateStore, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(files_store, 4)
    prepare = TemporaryFiles.prepare

    def on_a_coarse_disk(files: TemporaryFiles, *arguments: Any) -> Any:
        files.keeps_nanoseconds = False
        return prepare(files, *arguments)

    monkeypatch.setattr(TemporaryFiles, "prepare", on_a_coarse_disk)
    held = Held(monkeypatch)
    assert files_store.prune_sessions(PruneConfig(max_sessions=1, ttl_hours=0)) == 3
    assert held.calls["read"] >= 3
    assert held.calls["writev"] == 1, "the journal"
    assert left(directory) == []


def test_a_prune_spares_what_was_said_while_it_was_prepared(
    files_store: StateStore, rival: StateStore, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile(monkeypatch, lambda: rival.append("s1", UserMessage("still here")))
    assert files_store.prune_sessions(PruneConfig(max_sessions=1, ttl_hours=0)) == 2
    assert user_words(rival, "s1") == ["hello", "still here"]
    assert left(directory) == []


def test_a_batch_is_merged_with_what_was_said_while_it_was_prepared(
    files_store: StateStore, rival: StateStore, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = files_store.load_session("s0")
    assert session is not None
    session.add_user_message("ours")
    meanwhile(monkeypatch, lambda: rival.append("s0", UserMessage("theirs")))
    with files_store.batch() as batch:
        batch.save_session(session)
        batch.save_markdown("notes", "new", "ours")
    assert user_words(rival, "s0") == ["hello", "theirs", "ours"]
    assert rival.load_markdown("notes", "new") == "ours"
    assert left(directory) == []


def test_a_batch_is_judged_by_what_is_there_when_its_locks_are_held(
    files_store: StateStore, rival: StateStore, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = files_store.load_session("s0")
    assert session is not None
    session.user_messages[0] = UserMessage("rewritten")
    meanwhile(monkeypatch, lambda: rival.append("s0", UserMessage("theirs")))
    with pytest.raises(SessionConflict), files_store.batch() as batch:
        batch.save_session(session)
        batch.save_markdown("notes", "new", "ours")
    assert user_words(rival, "s0") == ["hello", "theirs"]
    assert rival.load_markdown("notes", "new") is None
    assert left(directory) == []


def test_a_document_that_came_while_its_category_was_to_be_deleted_goes_too(
    files_store: StateStore, rival: StateStore, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rival.save_markdown("notes", "first", "text")
    meanwhile(monkeypatch, lambda: rival.save_markdown("notes", "second", "text"))
    assert files_store.delete_category("notes") == 2
    assert rival.list_documents("notes") == []
    assert left(directory) == []


def test_a_directory_that_was_removed_while_a_batch_was_prepared_is_made_again(
    files_store: StateStore, rival: StateStore, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile(monkeypatch, (directory / "notes").rmdir)
    with files_store.batch() as batch:
        batch.save_markdown("notes", "one", "text")
        batch.delete_session("s0")
    assert rival.load_markdown("notes", "one") == "text"
    assert not rival.session_exists("s0")


def test_what_is_being_prepared_is_no_leftover_to_whoever_opens_the_store(
    files_store: StateStore, rival: StateStore, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile(monkeypatch, lambda: StateStore.open(directory).close())
    with files_store.batch() as batch:
        batch.save_markdown("notes", "one", "text")
        batch.save_markdown("notes", "two", "text")
    assert [info.name for info in rival.list_documents("notes")] == ["one", "two"]
