"""The disk that one session takes, after as many exchanges as it was asked to keep."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.peers.entries import TEXTS, Entry, Tell, replied
from benchmarks.peers.figures import Effort


async def measure_disk(entries: list[Entry], effort: Effort, fresh: Callable[[], Path], tell: Tell) -> None:
    """How many times its text, once the store is closed. The session grows an exchange at a time, as in life."""
    for entry in entries:
        tell(f"{effort.kept_turns} turns of {entry.figures.name}")
        work = partial(_times_the_text, entry, fresh(), effort.kept_turns)
        entry.figures.times_the_text = await entry.attempt("disk", work)


async def _times_the_text(entry: Entry, place: Path, turns: int) -> float:
    await replied(entry.peer.open(place))
    for _ in range(turns):
        await replied(entry.peer.append("kept", *TEXTS))
    await replied(entry.peer.close())
    return _size(place) / (turns * len("".join(TEXTS).encode()))


def _size(place: Path) -> int:
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
