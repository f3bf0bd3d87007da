"""Tasks that are cancelled wherever they wait: each call happened entirely or not at all, and the store goes on."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any

from faults.cancelling import MOMENTS, Cancelled, cancelled_at
from faults.deeds import Corner, Deed, Look, deeds_of
from soak.proof import Proof, Round
from statestore import AsyncStateStore, Session

POINTS = 3
"""At how many suspension points of one call a round cancels at most; another round chooses others."""
PATIENCE = 60.0
"""Seconds after which a call that follows on a cancelled one is taken for hanging."""


class _Trial:
    """Cancels what a store does, again and again."""

    def __init__(self, round: Round, store: AsyncStateStore) -> None:
        self._round = round
        self._store = store
        self._counts: Counter[str] = Counter()

    async def run(self) -> Counter[str]:
        looks, changes = deeds_of(self._round.ground.engine)
        corner = self._corner("looked at")
        await corner.furnish()
        before = await corner.look()
        for name, deed in looks.items():
            await self._look(name, deed, corner)
        assert await corner.look() == before, "who looked has changed something"
        await corner.clear()
        for name, deed in changes.items():
            await self._change(name, deed)
        return self._counts

    def _corner(self, tag: str) -> Corner:
        return Corner(self._store, tag, self._round.ground.directory)

    async def _look(self, name: str, deed: Deed, corner: Corner) -> None:
        expected = _plain(await deed.do(corner))
        for nth in self._points(name, await _suspensions(deed, corner)):
            await self._cancelled(name, deed, corner, nth)
            assert _plain(await _within(deed.do(corner))) == expected, f"{name} tells something else"

    async def _change(self, name: str, deed: Deed) -> None:
        example = self._corner(f"{name} example")
        await example.furnish()
        before = await example.look()
        suspensions = await _suspensions(deed, example)
        after = await example.look()
        await example.clear()
        for nth in self._points(name, suspensions):
            corner = self._corner(f"{name} {nth}")
            await corner.furnish()
            ended = await self._cancelled(name, deed, corner, nth)
            await _within(self._check(name, deed, corner, before, after, ended))
            await corner.clear()

    async def _check(self, name: str, deed: Deed, corner: Corner, before: Look, after: Look, ended: Cancelled) -> None:
        seen = await corner.look()
        if ended.error is None:
            assert seen == after, f"{name} was done, and cannot be seen"
        assert deed.in_steps or seen in (before, after), f"{name} is half done"
        if not (deed.once and seen == after):
            await deed.do(corner)
            assert await corner.look() == after, f"{name}, done again, is not what it is when it is done once"
        corner.session = Session(corner.user, corner.id("afterwards"))
        await self._store.save_session(corner.session)

    def _points(self, name: str, suspensions: int) -> list[int]:
        chance = self._chance(name)
        points = range(1, suspensions + 1)
        return sorted(chance.sample(points, POINTS)) if suspensions > POINTS else list(points)

    def _chance(self, *purpose: object) -> Random:
        return self._round.random("cancelled", *purpose)

    async def _cancelled(self, name: str, deed: Deed, corner: Corner, nth: int) -> Cancelled:
        moment = self._chance(name, nth).choice(MOMENTS)
        ended = await _within(cancelled_at(deed.do(corner), nth, moment))
        assert ended.error is None or isinstance(ended.error, asyncio.CancelledError), (
            f"{name}, cancelled at suspension point {nth} {moment}, raised {ended.error!r}"
        )
        self._counts["cancelled calls"] += ended.error is not None
        self._counts["calls done in spite of it"] += ended.error is None
        return ended


async def _suspensions(deed: Deed, corner: Corner) -> int:
    """How often a deed, which is done, suspends."""
    ended = await _within(cancelled_at(deed.do(corner), 0, MOMENTS[0]))
    if ended.error is not None:
        raise ended.error
    return ended.suspensions


async def _within(work: Any) -> Any:
    async with asyncio.timeout(PATIENCE):
        return await work


def _plain(result: Any) -> object:
    """What can be compared of what a call gives back: sessions by what they hold, cursors not at all."""
    if isinstance(result, Session):
        return [entry.seq for entry in result.timeline], dict(result.metadata)
    return type(result) if isinstance(result, str) and "." in result else result


def cancel_everything(round: Round) -> Mapping[str, int]:
    """Each method of a store is called and cancelled wherever it waits; what came of it is looked at."""
    complaints: list[str] = []

    async def run() -> Counter[str]:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(repr(context)))
        async with AsyncStateStore.open(round.ground.target, durability="relaxed") as store:
            counts = await _Trial(round, store).run()
        gc.collect()  # whoever was never asked for its exception complains now
        await asyncio.sleep(0)
        return counts

    counts = asyncio.run(run())
    assert not complaints, complaints
    return counts


PROOF = Proof(
    name="cancelled",
    promise="a cancelled call happened entirely or not at all, can be repeated, and keeps no lock",
    engines=("memory", "files", "sqlite", "postgres", "valkey"),
    round=cancel_everything,
    goal={"cancelled calls": 2_000},
)
