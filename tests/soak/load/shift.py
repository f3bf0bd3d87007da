"""One round: some processes work side by side until the time is over, one watches; then everything is gone over."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from children import Child, Tell, in_child
from soak.grounds import Ground
from soak.load.gauges import MEGABYTE, Gauge, check_few_handles, check_handles, check_memory, check_speed
from soak.load.watchers import Seen, watch_all
from soak.load.workers import COUNTER, END, SURE, Known, Worker
from soak.proof import Proof, Round
from statestore import Session, StateStore
from words import user_words

T = TypeVar("T")

WORKERS = 4
LONG_ENOUGH = 120.0
"""Seconds from which on the first and the last third of a round can be compared."""
LARGEST_LOG = 80 * MEGABYTE
"""What SQLite's write-ahead log may grow to: it is cut when it is larger than 64 MB and readers let go."""
MOST_TEMPORARY_FILES = 3 * WORKERS
BETWEEN_LOOKS = 0.05


class _Crew:
    """Processes of which none outlives a round."""

    def __init__(self) -> None:
        self._living: list[Child] = []

    def __enter__(self) -> _Crew:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._living:
            child.kill()
            child.ended()

    def start(self, work: Callable[[Tell], object]) -> Child:
        self._living.append(child := Child(work))
        return child

    def told(self, child: Child, kind: type[T]) -> T:
        """What a process tells at its end."""
        self._living.remove(child)
        ended = child.ended()
        assert not ended.error, ended.error
        return msgspec.json.decode(ended.told[0], type=kind)


def _round(this: Round) -> Mapping[str, int]:
    ground, names = this.ground, [f"u{number}" for number in range(WORKERS)]
    cursor = in_child(lambda tell: tell(_furnish(ground)))[0]
    start = time.monotonic()
    with _Crew() as crew:
        watcher = crew.start(lambda tell: _watch(ground, cursor, Gauge(start, this.seconds), tell))
        workers = [crew.start(lambda tell, name=name: _work(this, name, names, start, tell)) for name in names]
        _look_at_files(ground, start + this.seconds)
        known = [crew.told(worker, Known) for worker in workers]
        in_child(lambda _: _announce_end(ground))
        seen = crew.told(watcher, Seen)
    in_child(lambda _: _go_over(ground, dict(zip(names, known, strict=True)), seen))
    _judge(known, seen, this.seconds)
    return _counted(known, seen)


def _furnish(ground: Ground) -> str:
    with StateStore.open(ground.target) as store:
        store.save_session(Session("all", COUNTER))
        return store.change_cursor()


def _work(this: Round, name: str, names: list[str], start: float, tell: Tell) -> None:
    neighbour = names[(names.index(name) + 1) % len(names)]
    with StateStore.open(this.ground.target) as store:
        searches = this.ground.engine != "valkey"
        worker = Worker(store, name, neighbour, this.random("load", name), searches=searches)
        tell(msgspec.json.encode(worker.work(Gauge(start, this.seconds, this.ground.directory))).decode())


def _watch(ground: Ground, cursor: str, gauge: Gauge, tell: Tell) -> None:
    with StateStore.open(ground.target) as store:
        tell(msgspec.json.encode(watch_all(store, cursor, gauge)).decode())


def _announce_end(ground: Ground) -> None:
    with StateStore.open(ground.target) as store:
        store.save_session(Session("all", END))


def _look_at_files(ground: Ground, until: float) -> None:
    """While the others work: what lies beside the store stays small."""
    temporary = Path(ground.target.removeprefix("file:")) / ".statestore" / "tmp"
    log = Path(f"{ground.target.removeprefix('sqlite:')}-wal")
    while time.monotonic() < until:
        if ground.engine == "files":
            assert len(os.listdir(temporary)) <= MOST_TEMPORARY_FILES
        elif ground.engine == "sqlite" and log.exists():
            assert log.stat().st_size < LARGEST_LOG
        time.sleep(BETWEEN_LOOKS)


def _go_over(ground: Ground, known: dict[str, Known], seen: Seen) -> None:
    """In a process that took no part: everything that was acknowledged is there, and nothing is wrong."""
    with StateStore.open(ground.target) as store:
        for name, own in known.items():
            there = {summary.id for summary in store.list_sessions(user_id=name)}
            assert there <= own.sessions.keys(), "a session that was deleted is there"
            assert set(list(own.sessions)[-SURE:]) <= there, "a session that nobody pruned is gone"
            for session_id in there:
                assert user_words(store, session_id) == own.sessions[session_id]
            for session_id, words in own.ledgers.items():
                assert user_words(store, session_id) == words
                assert seen.last.get(session_id, 0) == len(words), f"{session_id} was not watched to its end"
        counter = store.load_session(COUNTER)
        assert counter is not None
        counted, told = counter.get_metadata("count") or 0, sum(own.counted for own in known.values())
        assert counted == told, f"the counter is at {counted}, and {told} were told that they counted"
        assert store.check() == []


def _judge(known: Sequence[Known], seen: Seen, seconds: float) -> None:
    """Compare the first and the last part of the time, if it was long enough."""
    for windows in (seen.windows, *(own.windows for own in known)):
        check_few_handles(windows)
        if seconds >= LONG_ENOUGH:
            check_handles(windows)
            check_memory(windows)
    if seconds >= LONG_ENOUGH:
        for own in known:
            check_speed(own.windows)


def _counted(known: Sequence[Known], seen: Seen) -> Mapping[str, int]:
    counts: Counter[str] = Counter()
    for own in known:
        counts += Counter(own.calls)
    return Counter(calls=sum(counts.values()), notices=seen.notices) + counts


PROOF = Proof(
    name="load",
    promise="under a mixed load of many processes nothing is lost, and nothing grows or slows down",
    engines=("files", "sqlite", "postgres", "valkey"),
    round=_round,
    lasts=True,
)
