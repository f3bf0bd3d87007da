"""Who works on a history: processes with threads or with tasks, forked once for many histories, or to be killed."""

from __future__ import annotations

import multiprocessing
import random
import signal
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from children import PATIENCE, Child, Tell, together
from soak.races.history import Notes, Operation, noted_in
from soak.races.themes import look_at_everything, play
from soak.races.worker import Scene, Worker
from statestore import AsyncStateStore
from statestore.conformance.faces import Face, FaceName, face_named
from statestore.opening import engine_for

GIVES_UP: Final = 0.04
"""How often a task does not wait for its answer."""


@dataclass(frozen=True)
class Gang:
    """The workers of one process: so many threads, or tasks of one loop."""

    face: FaceName
    workers: int


@dataclass(frozen=True)
class Plan:
    """What is to be done, by whom, and from which seed."""

    target: str
    directory: Path
    """Where notes are taken."""
    gangs: tuple[Gang, ...]
    scenes: tuple[Scene, ...]
    operations: int
    """Of each worker, in each history."""
    seed: int

    def chance(self, *purpose: object) -> random.Random:
        """Chance for one purpose."""
        return random.Random(repr((self.seed, *purpose)))


def run(plan: Plan) -> dict[int, list[Operation]]:
    """Run all histories of a plan, one after the other, and give what was noted of each."""
    if len(plan.gangs) == 1:
        _run_gang(plan, 0, None)
    else:
        context: Any = multiprocessing.get_context("fork")
        barrier = context.Barrier(len(plan.gangs))
        together("fork", _run_gang, [(plan, number, barrier) for number in range(len(plan.gangs))])
    return noted_in(sorted(plan.directory.glob("*.notes")))


def run_with_deaths(plan: Plan) -> dict[int, list[Operation]]:
    """The same, but the last process of each history is killed at some moment; another one looks what is left."""
    context: Any = multiprocessing.get_context("fork")
    for scene in plan.scenes:
        barrier = context.Barrier(len(plan.gangs))
        children = [Child(partial(_run_once, plan, scene, number, barrier)) for number in range(len(plan.gangs))]
        ends = [child.ended() for child in children]
        for ended in ends:
            assert not ended.error, ended.error
        assert all(ended.signal == 0 for ended in ends[:-1])
        face = face_named("plain")
        face.run(_look(plan, scene, face))
    return noted_in(sorted(plan.directory.glob("*.notes")))


def _run_gang(plan: Plan, number: int, barrier: Any) -> None:
    """The part of one process in all histories, each begun by all processes at one moment."""
    face = face_named(plan.gangs[number].face)
    try:
        face.run(_work(plan, number, barrier, face))
    finally:
        face.close()


async def _work(plan: Plan, number: int, barrier: Any, face: Face) -> None:
    async with _opened(plan, face) as store:
        for scene in plan.scenes:
            with _workers(plan, scene, number, store) as workers:
                _wait(barrier)
                await _at_once(plan, face, workers)
                _wait(barrier)
                if number == 0:
                    await look_at_everything(workers[0])


def _run_once(plan: Plan, scene: Scene, number: int, barrier: Any, _: Tell) -> None:
    """The part of one process in one history; the last one's ends early."""
    face = face_named(plan.gangs[number].face)

    async def work() -> None:
        async with _opened(plan, face) as store:
            with _workers(plan, scene, number, store) as workers:
                _wait(barrier)
                if number == len(plan.gangs) - 1:
                    _die_after(plan.chance("death", scene.number).uniform(0.0005, 0.03))
                await _at_once(plan, face, workers)

    face.run(work())


def _die_after(seconds: float) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends the process, whatever it is doing
    signal.setitimer(signal.ITIMER_REAL, seconds)


async def _look(plan: Plan, scene: Scene, face: Face) -> None:
    async with _opened(plan, face) as store:
        with _workers(plan, scene, len(plan.gangs), store) as workers:
            await look_at_everything(workers[0])


@asynccontextmanager
async def _opened(plan: Plan, face: Face) -> AsyncGenerator[AsyncStateStore]:
    engine = face.fit(engine_for(plan.target, create=True, read_only=False, durability="relaxed"))
    await engine.open()
    try:
        yield face.store_on(engine)
    finally:
        await engine.close()


@contextmanager
def _workers(plan: Plan, scene: Scene, number: int, store: AsyncStateStore) -> Generator[list[Worker]]:
    """The workers of a process in one history; the one after the last has a worker who only looks."""
    gang = [*plan.gangs, Gang("plain", 1)][number]
    with ExitStack() as stack:
        workers: list[Worker] = []
        for place in range(gang.workers):
            lane = number * 10 + place + 1
            path = plan.directory / f"{scene.number}.{lane}.notes"
            notes = stack.enter_context(closing(Notes(path, f"{number}.{place}", scene.number * 100 + lane)))
            chance = plan.chance(scene.number, lane)
            workers.append(Worker(store, notes, scene, chance, lane, GIVES_UP if gang.face == "async" else 0.0))
        yield workers


async def _at_once(plan: Plan, face: Face, workers: list[Worker]) -> None:
    """Let workers go at one moment."""
    gate = threading.Barrier(len(workers)) if face.name == "plain" else None

    async def begin(worker: Worker) -> None:
        if gate is not None:
            gate.wait(PATIENCE)
        await play(worker, plan.operations)

    await face.together([partial(begin, worker) for worker in workers])


def _wait(barrier: Any) -> None:
    if barrier is not None:
        barrier.wait(PATIENCE)
