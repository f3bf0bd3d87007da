"""Group commit under any schedule: each batch is made once, whoever waits is woken, who is interrupted may look."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pytest
from schedules import Lock, Schedule, interruptible

from statestore import waking
from statestore.engines.sqlite import gathering
from statestore.engines.sqlite.gathering import Gathering, Slot

SCHEDULES = 1500


@pytest.fixture(autouse=True)
def _locks_of_schedules(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (gathering, waking):
        monkeypatch.setattr(module, "threading", SimpleNamespace(Lock=Lock))


@pytest.mark.parametrize("start", range(0, SCHEDULES, SCHEDULES // 3))
def test_every_batch_is_made_once_and_nobody_has_to_look_up(start: int) -> None:
    for seed in range(start, start + SCHEDULES // 3):
        _Contest(seed, may_nap=False, interrupts=0).run()


@pytest.mark.parametrize("start", range(0, SCHEDULES, SCHEDULES // 3))
def test_whoever_is_interrupted_knows_whether_its_batch_was_made_and_holds_up_nobody(start: int) -> None:
    interrupted = 0
    for seed in range(start, start + SCHEDULES // 3):
        interrupted += _Contest(seed, may_nap=True, interrupts=1).run()
    assert interrupted > SCHEDULES // 30


class _Contest:
    """Some threads that commit a few times."""

    def __init__(self, seed: int, *, may_nap: bool, interrupts: int) -> None:
        files = (gathering.__file__, waking.__file__)
        self._seed = seed
        self._schedule = Schedule(seed, files, may_nap=may_nap, interrupts=interrupts)
        self._gathering = Gathering()
        self._made: Counter[object] = Counter()
        self._told: dict[object, int] = {}
        """How often a batch had been made when its thread was told that it is, or interrupted."""
        self._leaders = 0
        self._interrupted = 0

    def run(self) -> int:
        """How many commits were interrupted."""
        chance = self._schedule.random
        rounds = chance.randint(1, 3)
        works = [lambda number=number: self._commit_often(number, rounds) for number in range(chance.randint(2, 5))]
        try:
            self._schedule.run(*works)
            assert self._told == {batch: self._made[batch] for batch in self._told}, "made after its thread was told"
            assert all(count == 1 for count in self._made.values())
            if not self._interrupted:
                assert not self._gathering._waiting  # pyright: ignore[reportPrivateUsage]
                assert not self._gathering._leading.locked()  # pyright: ignore[reportPrivateUsage]
        except BaseException as error:
            error.add_note(f"seed {self._seed}")
            raise
        return self._interrupted

    def _commit_often(self, thread: int, rounds: int) -> None:
        for turn in range(rounds):
            batches = [(thread, turn, number) for number in range(self._schedule.random.choice((1, 1, 2)))]
            try:
                with interruptible():
                    results = self._gathering.commit(batches, self._make)  # type: ignore[arg-type]
            except KeyboardInterrupt:
                self._interrupted += 1
            else:
                assert results == [[batch] for batch in batches]
                assert all(self._made[batch] for batch in batches)
            self._told |= {batch: self._made[batch] for batch in batches}

    def _make(self, slots: list[Slot]) -> None:
        self._leaders += 1
        assert self._leaders == 1
        assert slots
        assert not any(slot.result for slot in slots)
        try:
            for _ in range(self._schedule.random.choice((0, 1, 3))):
                self._schedule.step()
            for slot in slots:
                self._made[slot.batch] += 1
                slot.result = [slot.batch]  # type: ignore[list-item]
                self._schedule.step()
        finally:
            self._leaders -= 1
