"""One round: a few lives of some writers that end by ``kill -9``, and what others find after each death."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from random import Random

from children import Child, in_child
from soak.grounds import LOCAL, SERVERS, Ground
from soak.kills.connections import Connection, connections_of, wait_until_closed
from soak.kills.copiers import killed_copies
from soak.kills.openers import THERE, look, look_alone, recover_only
from soak.kills.strands import Strand
from soak.kills.writers import Manner, Writer, follow_in_tasks, follow_in_threads, follow_one
from soak.proof import Proof, Round

LIVES = 4
THREADS = 3
TASKS = 64


class _Story:
    """What happens to one store."""

    def __init__(self, this: Round) -> None:
        self._ground = this.ground
        self._seed = this.seed
        self._chance = this.random("kills")
        self._strands: list[Strand] = []
        self.counts: Counter[str] = Counter()
        is_rollback = this.ground.engine == "sqlite" and self._chance.random() < 0.25
        self._manner = Manner(
            f"{this.ground.target}?journal=rollback" if is_rollback else this.ground.target,
            self._chance.choice(("full", "relaxed")) if this.ground.engine in LOCAL else "full",
            is_log_short=self._chance.random() < 0.5,
        )

    def live(self, life: int) -> None:
        """Let some writers live together, kill one after the other, and look after each death."""
        living = [self._writer(f"{life}{'abc'[number]}") for number in range(self._chance.choice((1, 1, 2, 3)))]
        try:
            while living:
                victim = living.pop(self._chance.randrange(len(living)))
                self._kill(victim, living)
        finally:
            for writer in living:
                writer.kill()
                writer.ended()
        in_child(lambda tell: look_alone(self._manner, self._ground, self._strands, tell))

    def copy(self) -> None:
        """Let what is there at the end be copied by somebody who is killed, and by somebody who is not."""
        self.counts["kills"] += killed_copies(self._manner, self._ground, self._chance)

    def _writer(self, name: str) -> Writer:
        kind = self._chance.choices(("one", "threads", "tasks"), (5, 3, 1))[0]
        match kind:
            case "one":
                return Writer(self._manner, self._new_strands(f"p{name}", 1, is_plain=True), follow_one)
            case "threads":
                return Writer(self._manner, self._new_strands(f"t{name}", THREADS, is_plain=True), follow_in_threads)
            case _:
                return Writer(self._manner, self._new_strands(f"a{name}", TASKS, is_plain=False), follow_in_tasks)

    def _new_strands(self, prefix: str, count: int, *, is_plain: bool) -> list[Strand]:
        engine = self._ground.engine
        strands = [Strand(f"{prefix}n{n}", self._seed, engine=engine, is_plain=is_plain) for n in range(count)]
        self._strands += strands
        return strands

    def _kill(self, victim: Writer, living: list[Writer]) -> None:
        _wait_for_moment(victim, self._ground, self._chance)
        connections: set[Connection] = set()
        if self._ground.engine in SERVERS:
            victim.stand_still()
            connections = connections_of(victim.pid)
        victim.kill()
        heard = [writer.heard() for writer in living]
        ended = victim.ended()
        assert ended.was_killed, ended.error
        assert not ended.error, ended.error
        victim.go_on_from(ended.told)
        wait_until_closed(connections)
        self._die_while_recovering()
        found = in_child(lambda tell: look(self._manner, victim.strands, tell))
        for strand, word in zip(victim.strands, found, strict=True):
            if word.endswith("|done"):
                strand.done(strand.deed())
        for writer, before in zip(living, heard, strict=True):
            writer.wait_for_words(before + 1)  # whatever the dead one held is free
        self.counts["kills"] += 1
        self.counts["acknowledged"] += len(ended.told)
        self.counts["interrupted"] += len(found)
        self.counts["found done"] += sum(f"|{THERE}|" in word for word in found)

    def _die_while_recovering(self) -> None:
        if self._ground.engine in LOCAL and self._chance.random() < 0.3:
            opener = Child(lambda _: recover_only(self._manner))
            time.sleep(self._chance.uniform(0, 0.01))
            opener.kill()
            self.counts["kills"] += opener.ended().was_killed


def _wait_for_moment(victim: Writer, ground: Ground, chance: Random) -> None:
    """Soon after its birth, after so many deeds, a short while after the first, or in the middle of a batch."""
    match chance.choice(("birth", "deeds", "deeds", "time", "time", "batch", "batch")):
        case "birth":
            time.sleep(chance.uniform(0, 0.04))
        case "deeds":
            victim.wait_for_words(int(10 ** chance.uniform(0, 1.7)))
        case "time":
            victim.wait_for_words()
            time.sleep(10 ** chance.uniform(-5, -1))
        case _:
            victim.wait_for_words()
            _wait_for_journal(ground)


def _wait_for_journal(ground: Ground) -> None:
    """Until there is a journal: a batch is being made. Not for long, because there may never be one."""
    root = ground.directory / "state"
    journal = root / ".statestore" / "journal" if ground.engine == "files" else ground.directory / "state.db-journal"
    deadline = time.monotonic() + 0.1
    while time.monotonic() < deadline and not journal.exists():
        pass


def _round(this: Round) -> Mapping[str, int]:
    story = _Story(this)
    for life in range(LIVES):
        story.live(life)
    story.copy()
    return story.counts


PROOF = Proof(
    name="kills",
    promise="what was acknowledged survives kill -9, what was not is there wholly or not at all, and others go on",
    engines=(*LOCAL, *SERVERS),
    round=_round,
    goal={"kills": 2000},
)
