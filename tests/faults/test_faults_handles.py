"""No file handles are left: an error of ours, nothing is lost, none leaks, and all goes on when there are some."""

from __future__ import annotations

import errno
import fcntl
import gc
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from children import Tell, in_child
from faults.handles import handles_in_use, handles_left
from soak.grounds import Ground, fresh
from statestore import NotSupported, StateStore, StateStoreError, StoreUnavailable, UserMessage, copy_store

ENGINES = ("files", "sqlite", "postgres", "valkey")
MOST = 40
"""More handles than any call needs."""


def _furnished(target: str) -> None:
    with StateStore.open(target) as store:
        store.get_or_create_session("alice", "one")
        store.append("one", UserMessage("hello"))
        try:
            store.search_sessions("hello")
        except NotSupported:
            return


def _nothing(_: object) -> None:
    pass


def _child(engine: str, work: Callable[[Ground], None]) -> None:
    """Run something in a process of its own, on a store that a process before it has furnished."""
    with fresh(engine) as ground:
        in_child(lambda _: _furnished(ground.target))
        in_child(lambda _: work(ground))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_store_that_cannot_be_opened_leaves_no_handle(engine: str) -> None:
    def work(ground: Ground) -> None:
        sys.unraisablehook = _nothing  # pytest's keeps what it was told of: loops that Python could not make
        StateStore.open(ground.target).close()  # so that all modules are loaded
        before = handles_in_use()
        for count in range(MOST):
            error: StateStoreError | None = None
            with handles_left(count):
                try:
                    StateStore.open(ground.target).close()
                except StoreUnavailable as unavailable:
                    error = unavailable
            if error is None:
                assert count, "that takes no handle at all"
                gc.collect()
                assert handles_in_use() <= before  # what came along from the parent may go meanwhile
                return
            assert error.__cause__ is not None
            if engine in ("files", "sqlite"):
                assert handles_in_use() <= before, f"with {count} handles left, some leak"
        raise AssertionError("it can never be opened")

    _child(engine, work)


def _batch(store: StateStore, _: Path) -> None:
    with store.batch() as batch:
        batch.save_markdown("notes", "one", "x")
        batch.save_markdown("notes", "two", "x")


def _watch(store: StateStore, _: Path) -> None:
    cursor = store.change_cursor()
    store.save_markdown("notes", "one", "not watched")
    store.append("one", UserMessage(f"watched {len(store.timeline('one'))}"))
    next(store.watch(after=cursor))


DEEDS: dict[str, Callable[[StateStore, Path], object]] = {
    "append": lambda store, _: store.append("one", UserMessage("more"), keys=["more"]),
    "load": lambda store, _: store.load_session("one"),
    "list": lambda store, _: store.list_sessions(),
    "batch": _batch,
    "search": lambda store, _: store.search_sessions("hello"),
    "watch": _watch,
    "check": lambda store, _: store.check(),
    "throw away": lambda store, _: store.delete_session("two", trash_hours=1),
    "backup": lambda store, directory: store.backup(directory / "backup.db"),
    "compact": lambda store, _: store.compact(),
    "copy": lambda store, directory: copy_store(store, directory / "copy"),
}


@pytest.mark.parametrize("engine", ENGINES)
def test_without_handles_a_call_fails_or_is_done_and_later_all_is_as_it_should_be(engine: str) -> None:
    def work(ground: Ground) -> None:
        tried = 0
        for name in DEEDS:
            if name == "copy" and engine not in ("files", "sqlite"):
                continue  # what it needs handles for is the directory that it writes
            for count in range(MOST):
                with StateStore.open(ground.target, durability="relaxed") as store:
                    tried += 1
                    if _is_done(store, name, count, ground.directory):
                        break
        assert tried > 5

    _child(engine, work)


def _is_done(store: StateStore, name: str, count: int, directory: Path) -> bool:
    """Whether something can be done with so many handles; if not, it can be done with more, and nothing is lost."""
    deed = DEEDS[name]
    store.get_or_create_session("alice", "two")
    before = handles_in_use()
    is_done = True
    with handles_left(count):
        try:
            deed(store, directory)
        except NotSupported:
            return True
        except StateStoreError:
            is_done = False
    if not is_done:
        kept = len(handles_in_use() - before)
        assert kept <= 5, f"{name} keeps {kept} handles"  # a connection may be kept to be used again
        assert not (directory / "backup.db").exists()
        deed(store, directory)
        assert store.check() == []
    said = [entry.record.content for entry in store.timeline("one")]  # type: ignore[union-attr]
    assert said[0] == "hello"
    assert len(said) == len(set(said)), "something is there twice"
    store.rewind_session("one", to=1)
    for left in directory.glob("backup.db*"):
        left.unlink()
    shutil.rmtree(directory / "copy", ignore_errors=True)
    return is_done


def test_the_last_handle_is_told_by_its_name(tmp_path: Path) -> None:
    def work(_: Tell) -> None:
        for target in (tmp_path / "state", tmp_path / "state.db"):
            StateStore.open(target).close()
            with handles_left(1), pytest.raises(StoreUnavailable, match=r"state.*(Too many open files|file handles)"):
                StateStore.open(target)

    in_child(work)


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS], ids=errno.errorcode.get)
def test_a_file_system_without_locks_is_named_and_no_handle_is_left(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    before = handles_in_use()
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(fcntl, "flock", refuse)
        with pytest.raises(StoreUnavailable, match="no locks"):
            StateStore.open(f"file:{tmp_path / 'state'}")
    gc.collect()
    assert handles_in_use() <= before
