"""LangGraph's table: the disk that a thread takes as it grows, and a turn in a long one."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.peers.figures import Result


def columns(growth: Result) -> list[str]:
    """The heads."""
    turns, (length,) = growth.effort.kept_turns, growth.effort.lengths
    return ["saver", f"disk after {turns:,} turns (x the text)", f"a turn at {2 * length:,} messages (ms)"]


def rows(growth: Result) -> Iterator[list[str]]:
    """The savers, and at last ours to theirs."""
    (length,) = growth.effort.lengths
    disks = {store.name: store.times_the_text for store in growth.stores}
    turns = {store.name: store.append.get(length) for store in growth.stores}
    for name, disk in disks.items():
        turn = turns[name]
        yield [name, f"{disk:,.1f}" if disk else "-", f"{turn * 1e3:,.1f}" if turn else "-"]
    yield ["ours / theirs", *(_ratio(found["langgraph"], found["statestore"]) for found in (disks, turns))]


def _ratio(theirs: float | None, ours: float | None) -> str:
    return f"{ours / theirs:.3f}" if theirs and ours else "-"
