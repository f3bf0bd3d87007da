"""Copies that are killed on their way: whoever copies again ends with all of it."""

from __future__ import annotations

import time
from random import Random

from children import Child, Tell, in_child
from soak.grounds import Ground
from soak.kills.writers import Manner
from statestore import StateStore, copy_store


def killed_copies(manner: Manner, ground: Ground, chance: Random) -> int:
    """Copy a store that nobody writes, be killed, and copy again; how many copies were killed."""
    target = f"file:{ground.directory / 'copy'}" if ground.engine == "sqlite" else f"{ground.directory / 'copy.db'}"
    kills = 0
    for _ in range(2):
        copier = Child(lambda _: copy_store(manner.target, target))
        time.sleep(10 ** chance.uniform(-3, -1))
        copier.kill()
        ended = copier.ended()
        assert not ended.error, ended.error
        kills += ended.was_killed
    in_child(lambda tell: _copy_whole(manner, target, tell))
    return kills


def _copy_whole(manner: Manner, target: str, tell: Tell) -> None:
    report = copy_store(manner.target, target)  # which reads both stores at the end, and compares them
    with StateStore.open(target, create=False) as copy, StateStore.open(manner.target, create=False) as original:
        assert copy.count_sessions() == original.count_sessions() == report.sessions
        assert copy.list_categories() == original.list_categories()
        assert copy.check() == []
    tell(str(report.sessions))
