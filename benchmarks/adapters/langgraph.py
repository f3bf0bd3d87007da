"""LangGraph's own SQLite saver beside ours: a turn, a load and a listing in threads of several lengths, and the disk.

    python -m benchmarks.adapters.langgraph [--quick]

The graph has one node that answers at once. "graph alone" is the same graph on a saver that keeps the last state in
memory and copies nothing: what is left to a saver is the difference. A turn is one `invoke`: a read, three checkpoints
and two sets of writes. Turns alternate between the savers, so that a busy machine is busy for all; medians are shown.
"""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph

from statestore.adapters.langgraph import StateStoreSaver

LENGTHS = (10, 1000, 2000, 4000)
TURNS = 400
THREAD: Any = {"configurable": {"thread_id": "t"}}
Opened = Callable[[Path], Any]


class NoSaver(InMemorySaver):
    """Keeps the last state as it is."""

    _last: CheckpointTuple | None = None

    def get_tuple(self, config: Any) -> CheckpointTuple | None:
        return self._last

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        found = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": checkpoint["id"]}}
        kept = {**checkpoint, "channel_values": dict(checkpoint["channel_values"])}
        self._last = CheckpointTuple(found, kept, metadata, None, [])  # type: ignore[arg-type]
        return found

    def put_writes(self, *_: Any) -> None:
        pass


@contextmanager
def theirs(directory: Path) -> Iterator[BaseCheckpointSaver[Any]]:
    with closing(sqlite3.connect(directory / "theirs.db", check_same_thread=False)) as connection:
        yield SqliteSaver(connection)


@contextmanager
def ours(directory: Path) -> Iterator[BaseCheckpointSaver[Any]]:
    with StateStoreSaver(directory / "ours.db") as saver:
        yield saver


@contextmanager
def nobody(_: Path) -> Iterator[BaseCheckpointSaver[Any]]:
    yield NoSaver()


def graph_of(saver: BaseCheckpointSaver[Any], length: int) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("agent", lambda _: {"messages": [AIMessage("a" * length)]})
    builder.add_edge(START, "agent")
    builder.add_edge("agent", END)
    return builder.compile(checkpointer=saver)


def filled(saver: BaseCheckpointSaver[Any], exchanges: int) -> Any:
    graph = graph_of(saver, 200)
    kinds = (HumanMessage, AIMessage)
    graph.update_state(
        THREAD, {"messages": [kind("x" * 200) for _ in range(exchanges) for kind in kinds]}, as_node="agent"
    )
    say(graph)
    return graph


def say(graph: Any, length: int = 200) -> None:
    graph.invoke({"messages": [HumanMessage("u" * length)]}, THREAD)


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def at_length(exchanges: int, repeats: int) -> dict[str, dict[str, float]]:
    """Milliseconds: by saver, a turn, a load, and a listing of the newest ten checkpoints."""
    makers: dict[str, Opened] = {"theirs": theirs, "ours": ours, "graph alone": nobody}
    with TemporaryDirectory() as directory, ExitStack() as stack:
        savers = {name: stack.enter_context(make(Path(directory))) for name, make in makers.items()}
        graphs = {name: filled(saver, exchanges) for name, saver in savers.items()}
        times: dict[str, dict[str, list[float]]] = {name: {"turn": [], "load": [], "list": []} for name in makers}
        for _ in range(repeats):
            for name, graph in graphs.items():
                times[name]["turn"].append(timed(lambda graph=graph: say(graph)))
        for _ in range(repeats):
            for name in ("theirs", "ours"):
                saver = savers[name]
                times[name]["load"].append(timed(lambda saver=saver: saver.get_tuple(THREAD)))
                times[name]["list"].append(timed(lambda saver=saver: list(islice(saver.list(THREAD, limit=10), 10))))
        found = {name: {what: median(values) for what, values in own.items() if values} for name, own in times.items()}
        fresh = [ours_anew(Path(directory)) for _ in range(max(repeats // 3, 3))]
        found["ours"]["first load"] = median(fresh)
        return found


def ours_anew(directory: Path) -> float:
    """A load by a saver that knows nothing yet."""
    with ours(directory) as saver:
        saver.get_tuple({"configurable": {"thread_id": "none"}})  # open the store
        return timed(lambda: saver.get_tuple(THREAD))


def on_disk(make: Opened, turns: int, length: int) -> tuple[float, float]:
    """How many times its text a conversation takes on the disk, and the milliseconds of its last turns."""
    with TemporaryDirectory() as directory:
        with make(Path(directory)) as saver:
            graph = graph_of(saver, length)
            spent = [timed(lambda: say(graph, length)) for _ in range(turns)]
        size = sum(path.stat().st_size for path in Path(directory).iterdir())
        return size / (2 * turns * length), median(spent[-20:])


def main() -> None:
    quick = "--quick" in sys.argv
    repeats = 7 if quick else 15
    print("| exchanges | turn: theirs | ours | graph alone | load: theirs | ours | ours, first | list: theirs | ours |")
    print("|---|---|---|---|---|---|---|---|---|")
    for exchanges in LENGTHS:
        found = at_length(exchanges, repeats)
        their, our = found["theirs"], found["ours"]
        cells = [their["turn"], our["turn"], found["graph alone"]["turn"]]
        cells += [their["load"], our["load"], our["first load"], their["list"], our["list"]]
        print(f"| {exchanges} | " + " | ".join(f"{cell:.1f}" for cell in cells) + " |", flush=True)
    turns = 100 if quick else TURNS
    for length in (200, 500, 2000):
        times_ours, last_ours = on_disk(ours, turns, length)
        times_theirs, last_theirs = on_disk(theirs, turns, length) if length == 500 else (0.0, 0.0)
        beside = f"; theirs {times_theirs:.0f} x, last turns {last_theirs:.1f} ms" if times_theirs else ""
        print(
            f"{turns} turns of {length} characters: {times_ours:.1f} x the text on the disk, last turns "
            f"{last_ours:.1f} ms{beside}",
            flush=True,
        )


if __name__ == "__main__":
    main()
