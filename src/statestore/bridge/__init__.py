"""Where the store's coroutines run in an event loop. The only package that mixes threads and loops.

Engines that do I/O without being asynchronous (files, SQLite) are handed to threads: a few `workers` for whatever
blocks, and one `writer` for engines that commit in groups. A call that is cancelled before a thread took it never
happens; one that a thread has begun is waited for, so that whoever cancelled it meets it either wholly done or not at
all. Engines that are asynchronous themselves are handed to a loop in a thread for plain code, call by call.
"""

from __future__ import annotations

from statestore.bridge.loop_host import LoopHost, WorkerEngine
from statestore.bridge.loop_thread import LoopThreadEngine

__all__ = ["LoopHost", "LoopThreadEngine", "WorkerEngine"]
