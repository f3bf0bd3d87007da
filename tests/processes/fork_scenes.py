"""Scenes around ``os.fork``, each run by an interpreter of its own; prints what came of it as JSON.

python fork_scenes.py SCENE DIRECTORY
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import threading
from collections.abc import Callable
from typing import Any

from scenes import PATIENCE, in_child, play
from statestore import AsyncStateStore, StateStore, UserMessage


class Held:
    """A thread that stops before its n-th ``os`` call of a kind until it is let go."""

    def __init__(self, call: str, work: Callable[[], object], *, nth: int = 1) -> None:
        self._is_there, self._may_go = threading.Event(), threading.Event()
        self._original = getattr(os, call)
        self._thread = threading.Thread(target=work)
        self._left = nth

        def stop(*arguments: Any, **options: Any) -> Any:
            if threading.current_thread() is self._thread:
                self._left -= 1
            if threading.current_thread() is self._thread and self._left == 0:
                self._is_there.set()
                self._may_go.wait(PATIENCE)
            return self._original(*arguments, **options)

        setattr(os, call, stop)
        self._thread.start()
        self._is_there.wait(PATIENCE)

    def let_go(self) -> None:
        """Let it come to its end."""
        self._may_go.set()
        self._thread.join(PATIENCE)


def locked_stripes(root: str) -> list[str]:
    """The locks that somebody holds, as a process sees it that takes none."""
    directory = os.path.join(root, ".statestore", "locks")
    held: list[str] = []
    for name in sorted(os.listdir(directory)):
        fd = os.open(os.path.join(directory, name), os.O_RDWR)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.append(name)
        os.close(fd)
    return held


def both_go_on(root: str) -> Any:
    """Parent and child write through the store that the parent opened."""
    store = StateStore.open(root)
    store.get_or_create_session("alice", "shared")
    store.list_sessions()

    def write(writer: str) -> list[int]:
        return [store.append("shared", UserMessage(f"{writer}:{turn}"))[0] for turn in range(50)]

    def write_and_close() -> list[int]:
        told = write("child")
        assert len(store.list_sessions()) == 1
        store.close()
        return told

    told = in_child(write_and_close)
    mine = write("parent")
    return {"parent": mine, "child": told()}


def child_ends_while_the_parent_holds_a_lock(root: str) -> Any:
    """A child comes and goes while a thread of the parent is writing."""
    store = StateStore.open(root)
    store.get_or_create_session("alice", "shared")
    held = Held("fsync", lambda: store.append("shared", UserMessage("slow")))
    during = locked_stripes(root)
    in_child(store.close)()
    after = locked_stripes(root)
    held.let_go()
    return {"during": during, "after": after}


def child_lives_on_after_the_parent_let_go(root: str) -> Any:
    """A child that was forked while a thread of the parent was writing, and stays when that is done."""
    store = StateStore.open(root)
    store.get_or_create_session("alice", "shared")
    held = Held("fsync", lambda: store.append("shared", UserMessage("slow")))
    reading, writing = os.pipe()

    def wait_then_write() -> list[int]:
        os.close(writing)
        os.read(reading, 1)
        return store.append("shared", UserMessage("from the child"))

    told = in_child(wait_then_write)
    held.let_go()
    free = locked_stripes(root)
    os.close(writing)
    return {"held": free, "child": told()}


def parent_is_killed_while_a_child_lives(root: str) -> Any:
    """A writer is killed in the middle of a write; its child, forked meanwhile, lives on."""
    ready, tell = os.pipe()
    stay, leave = os.pipe()

    def write_until_killed() -> None:
        store = StateStore.open(root)
        store.get_or_create_session("alice", "shared")
        Held("fsync", lambda: store.append("shared", UserMessage("slow")))
        if os.fork() == 0:
            os.close(leave)
            os.write(tell, b"x")
            os.read(stay, 1)
            os._exit(0)
        os.read(stay, 1)

    pid = os.fork()
    if pid == 0:
        write_until_killed()
        os._exit(0)
    os.read(ready, 1)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    held = locked_stripes(root)
    os.close(leave)
    return held


def fork_beside_a_listing(root: str) -> Any:
    """A child lists while, at the moment of the fork, a thread of the parent was listing."""
    store = StateStore.open(root)
    store.get_or_create_session("alice", "shared")
    held = Held("fstat", store.list_sessions, nth=2)  # the first is of a lock; this one is of a session's file
    told = in_child(lambda: [summary.id for summary in store.list_sessions()])
    listed = told()
    held.let_go()
    return listed


def fork_beside_a_save(root: str) -> Any:
    """A child saves the very session that a thread of the parent was saving at the moment of the fork."""
    store = StateStore.open(root)
    session = store.get_or_create_session("alice", "shared")
    session.add_user_message("from the parent")
    held = Held("fsync", lambda: store.save_session(session))

    def save_in_child() -> list[str]:
        mine = store.load_session("shared")
        assert mine is not None
        mine.add_user_message("from the child")
        store.save_session(mine)
        return [message.content for message in mine.user_messages]

    told = in_child(save_in_child)
    held.let_go()
    told()
    loaded = store.load_session("shared")
    assert loaded is not None
    return sorted(message.content for message in loaded.user_messages)


def async_store_in_a_child(root: str) -> Any:
    """An asynchronous store that the parent opened, used in a child."""

    async def opened() -> AsyncStateStore:
        store = await AsyncStateStore.open(root)
        await store.get_or_create_session("alice", "shared")
        return store

    store = asyncio.run(opened())

    async def loaded() -> None:
        await store.load_session("shared")

    async def saved() -> None:
        await store.append("shared", UserMessage("from the child"))

    told = [in_child(lambda: asyncio.run(loaded()))(), in_child(lambda: asyncio.run(saved()))()]
    with StateStore.open(root) as other:
        session = other.load_session("shared")
        assert session is not None
        return [*told, len(session.user_messages)]


if __name__ == "__main__":
    play(globals())
