"""Those who are killed: processes that follow strands without end, in one thread, in several, or in many tasks."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from children import Child, Tell
from soak.kills.pictures import SHARED, SPREAD
from soak.kills.strands import Strand
from statestore import AsyncStateStore, StateStore
from statestore.engines.sqlite import upkeep
from statestore.opening import Durability


@dataclass(frozen=True)
class Manner:
    """How writers open their store."""

    target: str
    durability: Durability
    is_log_short: bool
    """Whether SQLite's log is written back after every few commits."""

    def open(self) -> StateStore:
        self._settle()
        return StateStore.open(self.target, durability=self.durability)

    def open_async(self) -> AsyncStateStore:
        self._settle()
        return AsyncStateStore.open(self.target, durability=self.durability)  # type: ignore[return-value]

    def _settle(self) -> None:
        if self.is_log_short:  # in a process that will not live long
            upkeep.PAGES_BETWEEN_CHECKPOINTS = 10
            upkeep.COMMITS_BETWEEN_CHECKPOINTS = 1


class Writer(Child):
    """A process that follows strands until it is killed, and tells of each deed that was acknowledged."""

    def __init__(self, manner: Manner, strands: Sequence[Strand], follow: Callable[..., None]) -> None:
        self.strands = strands
        super().__init__(lambda tell: follow(manner, strands, tell))

    def heard(self) -> int:
        """How much it has told by now."""
        while self._read(0):
            pass
        return self._seen.count(b"\n")

    def stand_still(self) -> None:
        """Stop it, wherever it is, and wait until it does nothing more; one that ended by itself is left as it is."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def go_on_from(self, told: Sequence[str]) -> None:
        """Bring the strands to where the process was, as far as it told."""
        by_name = {strand.name: strand for strand in self.strands}
        for word in told:
            name, position = word.split()
            strand = by_name[name]
            assert strand.position == int(position), f"{name} told of a deed before another one"
            strand.done(strand.deed())


def follow_one(manner: Manner, strands: Sequence[Strand], tell: Tell) -> None:
    """One strand, in this thread."""
    (strand,) = strands
    store = _furnished(manner)
    _follow(store, strand, tell)


def follow_in_threads(manner: Manner, strands: Sequence[Strand], tell: Tell) -> None:
    """A thread for each strand, through one store."""
    store = _furnished(manner)

    def follow(strand: Strand) -> None:
        try:
            _follow(store, strand, tell)
        except BaseException:  # noqa: BLE001 - told to the test, and the end of the process
            tell(f"!{json.dumps(traceback.format_exc())}")
            os._exit(1)

    for strand in strands:
        threading.Thread(target=follow, args=(strand,), daemon=True).start()
    threading.Event().wait()


def follow_in_tasks(manner: Manner, strands: Sequence[Strand], tell: Tell) -> None:
    """A task for each strand, through one asynchronous store: many batches in one commit."""

    async def follow_all() -> None:
        async with manner.open_async() as store, asyncio.TaskGroup() as tasks:
            await store.get_or_create_session("all", SHARED)
            for strand in strands:
                tasks.create_task(follow(store, strand))

    async def follow(store: AsyncStateStore, strand: Strand) -> None:
        while True:
            deed = strand.deed()
            told = await deed.act(store)
            assert deed.expects(told), f"{strand.name} {strand.position}: {told}"
            tell(f"{strand.name} {strand.position}")
            strand.done(deed)

    asyncio.run(follow_all())


def _furnished(manner: Manner) -> StateStore:
    """A store, with what all strands share."""
    store = manner.open()
    for name in (SHARED, *SPREAD):
        store.get_or_create_session("all", name)
    return store


def _follow(store: StateStore, strand: Strand, tell: Tell) -> None:
    while True:
        deed = strand.deed()
        told = deed.act(store)
        assert deed.expects(told), f"{strand.name} {strand.position}: {told}"
        tell(f"{strand.name} {strand.position}")
        strand.done(deed)
