"""Scenes around ``os.fork``, each run by an interpreter of its own; prints what came of it as JSON.

python sqlite_fork_scenes.py SCENE DATABASE
"""

from __future__ import annotations

import asyncio
import errno
import multiprocessing
import os
import shutil
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from sqlite_hooks import hooked

from scenes import PATIENCE, in_child, play
from statestore import AsyncStateStore, StateStore, UserMessage
from statestore.engines.forking import forget_after_fork
from statestore.engines.sqlite import pool
from statestore.engines.versions import new_version


def _append(store: StateStore, writer: str, count: int = 50) -> list[int]:
    return [store.append("shared", UserMessage(f"{writer}:{turn}"))[0] for turn in range(count)]


def both_go_on(path: str) -> Any:
    """Parent, child and grandchild write through the store that the parent opened, and each closes it."""
    store = StateStore.open(path)
    store.get_or_create_session("alice", "shared")

    def child() -> Any:
        told = in_child(lambda: [_append(store, "grandchild"), store.close()][0])
        mine = _append(store, "child")
        return [mine, told(), len(store.list_sessions()), store.close()][:3]

    told = in_child(child)
    mine = _append(store, "parent")
    child_told, grandchild_told, listed = told()
    after = _append(store, "after")
    store.close()
    return {"parent": mine, "child": child_told, "grandchild": grandchild_told, "after": after, "listed": listed}


def versions_of_both(_: str) -> Any:
    """Parent and child give out versions, after the parent has given out one."""
    before = new_version()
    told = in_child(lambda: [new_version() for _ in range(100)])
    return [before, *(new_version() for _ in range(100)), *told()]


class _Cache:
    """Has something to forget after a fork, or fails at it."""

    def __init__(self, *, is_broken: bool) -> None:
        self.is_broken = is_broken
        self.is_empty = False
        forget_after_fork(self)

    def forget(self) -> None:
        self.is_empty = not self.is_broken
        if self.is_broken:
            raise OSError(errno.EBADF, "closed already")


def one_fails_to_forget(_: str) -> Any:
    """Which of several caches have forgotten what they held, in a child; every other one cannot."""
    caches = [_Cache(is_broken=number % 2 == 1) for number in range(10)]
    return in_child(lambda: [cache.is_empty for cache in caches])()


def beside_busy_threads(path: str) -> Any:
    """Threads write, read and search without end while children are forked that write through the same store."""
    store = StateStore.open(path)
    store.get_or_create_session("alice", "shared")
    told: dict[str, Any] = {}
    is_over = threading.Event()

    def work(name: str) -> None:
        mine: list[int] = []
        while not is_over.is_set():
            mine += store.append("shared", UserMessage(f"{name}:{len(mine)}"))
            store.list_sessions()
            store.timeline("shared", limit=2)
            if len(mine) % 10 == 0:
                store.search_sessions("thread")
        told[name] = mine

    threads = [threading.Thread(target=work, args=(f"thread{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    children = {}
    for number in range(12):
        store.append("shared", UserMessage(f"main:{number}"))
        children[f"child{number}"] = in_child(lambda number=number: _append(store, f"child{number}", 10))
    told |= {name: child() for name, child in children.items()}
    is_over.set()
    for thread in threads:
        thread.join()
    store.close()
    return told


def the_parent_closes_and_opens_again(path: str) -> Any:
    """A child goes on with the store when its parent has closed it, taking turns with one that is opened anew.

    A connection that crossed the fork has no lock that others could see: whoever closes next removes the log under it.
    """
    store = StateStore.open(path)
    store.get_or_create_session("alice", "shared")
    store.append("shared", UserMessage("before"))
    to_child, from_parent = os.pipe()
    to_parent, from_child = os.pipe()

    def child() -> list[int]:
        mine: list[int] = []
        for turn in range(4):
            os.read(to_child, 1)
            mine += store.append("shared", UserMessage(f"child:{turn}"))
            os.write(from_child, b"x")
        return mine

    told = in_child(child)
    store.close()
    parents: list[int] = []
    for turn in range(4):
        os.write(from_parent, b"x")
        os.read(to_parent, 1)
        with StateStore.open(path) as again:
            parents += again.append("shared", UserMessage(f"parent:{turn}"))
    return {"child": told(), "parent": parents}


def by_multiprocessing(path: str) -> Any:
    """The store goes to a pool of forked workers as it is."""
    store = StateStore.open(path)
    store.get_or_create_session("alice", "shared")
    context = multiprocessing.get_context("fork")
    queue: Any = context.SimpleQueue()
    workers = [
        context.Process(
            target=lambda number=number: queue.put((f"worker{number}", _append(store, f"worker{number}", 20)))
        )
        for number in range(4)
    ]
    for worker in workers:
        worker.start()
    mine = _append(store, "parent", 20)
    told = dict(queue.get() for _ in workers)
    for worker in workers:
        worker.join()
    store.close()
    return told | {"parent": mine}


def in_the_middle_of_a_transaction(path: str) -> Any:
    """A fork does not wait for ever for a thread: the child is refused, and does not disturb that thread."""
    pool.PATIENCE = 0.2
    is_there, may_go = threading.Event(), threading.Event()
    writing = threading.local()

    def hold(statement: str) -> None:
        if threading.current_thread().name == "held":
            if statement == "BEGIN IMMEDIATE":
                writing.now = True
            if statement == "COMMIT" and getattr(writing, "now", False) and not is_there.is_set():
                is_there.set()
                may_go.wait(PATIENCE)

    with hooked(before=hold):
        store = StateStore.open(f"sqlite:{path}?timeout=0.3")
        store.get_or_create_session("alice", "shared")
        store.append("shared", UserMessage("before"))
        thread = threading.Thread(name="held", target=lambda: store.append("shared", UserMessage("held")))
        thread.start()
        is_there.wait(PATIENCE)
        store.list_sessions()  # so that there are connections beside the one that is in use
        told = [
            in_child(lambda: _append(store, "child", 1))(),
            in_child(lambda: len(store.list_sessions()))(),
            in_child(store.close)(),
            in_child(lambda: "left", leave=sys.exit)(),
            in_child(lambda: _open_another(path))(),
        ]
        may_go.set()
        thread.join()
        store.append("shared", UserMessage("after"))
        store.close()
    return told


def _open_another(path: str) -> list[int]:
    """A store of the child's own: SQLite took over the parent's locks with the parent's memory, so it cannot work."""
    with StateStore.open(path) as own:
        return _append(own, "another", 1)


def beside_a_store_whose_directory_is_gone(path: str) -> Any:
    """Another store of the process cannot be reopened in the child: that is its own trouble."""
    doomed = os.path.join(os.path.dirname(path), "doomed")
    others = [StateStore.open(os.path.join(doomed, f"{number}.db")) for number in range(4)]
    store = StateStore.open(path)
    store.get_or_create_session("alice", "shared")
    shutil.rmtree(doomed)
    is_over = threading.Event()

    def work() -> None:
        while not is_over.is_set():
            store.append("shared", UserMessage("thread"))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    told = [in_child(lambda: len(_append(store, "child", 5)))() for _ in range(5)]
    is_over.set()
    for thread in threads:
        thread.join()
    store.close()
    for other in others:
        with suppress(OSError):
            other.close()
    return told


def async_store_in_a_child(path: str) -> Any:
    """An asynchronous store that the parent opened, used in a child, while the parent goes on with it."""
    told: list[Any] = []

    async def opened() -> None:
        async with AsyncStateStore.open(path) as store:
            await store.get_or_create_session("alice", "shared")
            await store.append("shared", UserMessage("parent:0"))
            for call in (
                lambda: store.load_session("shared"),
                lambda: store.append("shared", UserMessage("from the child")),
                lambda: store.list_sessions(),
                lambda: store.search_sessions("child"),
                lambda: store.close(),
            ):

                def in_another_loop(call: Callable[[], Any] = call) -> None:
                    async def run() -> None:
                        await call()

                    asyncio._set_running_loop(None)
                    asyncio.run(run())

                told.append(in_child(in_another_loop)())
            await store.append("shared", UserMessage("parent:1"))
            told.append(len(await store.timeline("shared")))

    asyncio.run(opened())
    return told


if __name__ == "__main__":
    play(globals())
