"""A few seconds of the mixed load on every engine, and how it would be seen that something grows or slows down."""

from __future__ import annotations

import gc
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from soak.load.gauges import WINDOWS, Window, check_handles, check_memory, check_speed
from soak.load.shift import PROOF
from soak.proof import shortly
from statestore import Session, StateStore, UserMessage
from statestore.engines.files import image

SECONDS = 2.0
MEGABYTE = 1024 * 1024


@pytest.mark.parametrize("engine", PROOF.engines)
def test_a_mixed_load_of_many_processes_loses_nothing_and_leaves_nothing_behind(engine: str) -> None:
    counts = shortly(PROOF, engine, seconds=SECONDS)
    assert counts["calls"] > 0
    assert counts["notices"] > 0


def _windows(
    *, cost: float = 0.0, wait: float = 0.0, rss: float = 0.0, handles: float = 0.0, noise: float = 0.0
) -> list[Window]:
    """What would be measured if things grew by so much from the beginning to the end, each in units of itself."""
    chance = random.Random(1)
    windows: list[Window] = []
    for number in range(WINDOWS):
        part = number / WINDOWS
        busy = 1 + noise * chance.random()  # other programs slow down the yardstick as they do everything else
        windows.append(
            Window(
                calls=100,
                seconds=busy * (1 + wait * part) * chance.uniform(0.8, 1.25),
                cpu=busy * 0.5 * (1 + cost * part) * chance.uniform(0.9, 1.1),
                yards=5,
                yard_seconds=0.05 * busy,
                yard_cpu=0.02 * busy,
                rss=int(40 * MEGABYTE * (1 + rss * part)),
                handles=int(12 * (1 + handles * part)),
            )
        )
    return windows


def test_what_stays_as_it_is_passes_however_busy_the_machine_is() -> None:
    for check in (check_handles, check_memory, check_speed):
        check(_windows(noise=4.0))


@pytest.mark.parametrize(
    ("check", "growth"),
    [
        (check_speed, {"cost": 1.5}),
        (check_speed, {"wait": 4.0}),
        (check_memory, {"rss": 0.6}),
        (check_handles, {"handles": 0.6}),
    ],
)
def test_what_grows_in_proportion_to_time_is_noticed(check: object, growth: dict[str, float]) -> None:
    assert callable(check)
    with pytest.raises(AssertionError, match=r"\["):
        check(_windows(**growth))


def _bytes_a_turn(work: Callable[[int], None]) -> float:
    """How much memory is kept of each of many turns."""
    turns = 150
    for turn in range(20):
        work(turn)
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for turn in range(20, 20 + turns):
            work(turn)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return (after - before) / turns


@pytest.mark.parametrize("target", ["state", "state.db"])
def test_nothing_is_kept_in_memory_of_sessions_that_were_deleted(target: str, tmp_path: Path) -> None:
    with StateStore.open(tmp_path / target, durability="relaxed") as store:

        def come_and_go(turn: int) -> None:
            session = Session("alice", f"s{turn}")
            store.save_session(session)
            for _ in range(3):
                store.append(session.id, UserMessage("hello"))
            store.delete_session(session.id)

        assert _bytes_a_turn(come_and_go) < 300


def test_what_is_kept_in_memory_of_many_small_session_files_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image, "KEPT_BYTES", 50_000)
    with StateStore.open(tmp_path / "state", durability="relaxed") as store:

        def come_and_stay(turn: int) -> None:
            store.save_session(Session("alice", f"s{turn}"))

        assert _bytes_a_turn(come_and_stay) < 1000
