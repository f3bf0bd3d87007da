"""Loading a session of 1,000 exchanges."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from benchmarks.sqlite.filling import lengthen
from benchmarks.timing import Result, compare, timed
from statestore import AgentResponse, StateStore, UserMessage


def run(place: Path) -> Iterator[Result]:
    path = place / "state.db"
    decoders = msgspec.json.Decoder(UserMessage), msgspec.json.Decoder(AgentResponse)
    with StateStore.open(path) as store, closing(sqlite3.connect(path)) as connection:
        lengthen(store, "long", 1000)

        def load() -> None:
            session = store.load_session("long")
            assert session is not None
            assert len(session.user_messages) == 1000

        def row_by_row() -> None:
            (number,) = connection.execute("SELECT number FROM sessions WHERE id = 'long'").fetchone()
            lists: tuple[list[object], list[object]] = ([], [])
            query = "SELECT kind, body FROM records WHERE place BETWEEN ? AND ? ORDER BY place"
            for kind, body in connection.execute(query, (number << 32, (number + 1) << 32)):
                lists[kind].append(decoders[kind].decode(body))
            assert len(lists[0]) == 1000

        floor = "fetch row by row, decode each with msgspec"
        yield compare("load 1,000 exchanges", 0.9, timed(load), floor, timed(row_by_row), turns=200)
