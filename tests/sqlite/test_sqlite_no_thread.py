"""Whoever waits for another process needs a thread: that none can be had is told as an error of ours."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

import pytest

from statestore import StateStore, StoreUnavailable, UserMessage


def test_a_write_that_finds_no_thread_to_wait_in_is_refused(
    database: Path, store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    store.get_or_create_session("alice", "one")
    turn = os.open(f"{database}-turn", os.O_RDWR)
    try:
        fcntl.flock(turn, fcntl.LOCK_EX)  # as if another process were writing
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            with pytest.raises(StoreUnavailable, match="needs a thread"):
                store.append("one", UserMessage("x"))
    finally:
        os.close(turn)
    assert store.append("one", UserMessage("x")) == [1]
