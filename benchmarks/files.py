"""The files engine beside what the bare system needs for the same bytes."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from benchmarks.timing import Result, Timed, compare, timed
from statestore import AgentResponse, StateStore, UserMessage

EXCHANGES = 1000
SESSIONS = 5000
TEXT = "The quick brown fox jumps over the lazy dog. " * 5
MESSAGE = TEXT[:200]


def run() -> Iterator[Result]:
    """All benchmarks of the files engine."""
    with tempfile.TemporaryDirectory(prefix="statestore-bench-") as place:
        yield from _one_long_session(Path(place, "one"))
        yield from _many_sessions(Path(place, "many"))


def _one_long_session(place: Path) -> Iterator[Result]:
    store = StateStore.open(place)
    session = store.get_or_create_session("user", "long")
    for _ in range(EXCHANGES):
        session.add_user_message(MESSAGE)
        session.add_agent_response(MESSAGE)
    store.save_session(session)
    file = place / "sessions" / "long.json"
    original = file.read_bytes()
    bare = "the same bytes: temp file, fsync, rename, fsync of the directory"

    def save() -> float:
        loaded = store.load_session("long")
        assert loaded is not None
        loaded.add_user_message(MESSAGE)
        loaded.add_agent_response(MESSAGE)
        start = time.perf_counter()
        store.save_session(loaded)
        return time.perf_counter() - start

    def append_warm() -> float:
        start = time.perf_counter()
        store.append("long", UserMessage(MESSAGE), AgentResponse(MESSAGE))
        return time.perf_counter() - start

    def append_cold() -> float:
        with StateStore.open(place) as fresh:
            start = time.perf_counter()
            fresh.append("long", UserMessage(MESSAGE), AgentResponse(MESSAGE))
            return time.perf_counter() - start

    def load() -> None:
        assert store.load_session("long") is not None

    def decode() -> None:
        msgspec.json.decode(file.read_bytes())

    write = _bare_write(file)
    yield compare("save one more exchange after a load", 1.5, save, bare, write, turns=60)
    yield compare("append one more exchange, first in its process", 2.3, append_cold, bare, write, turns=60)
    yield compare("append one more exchange, again", 2.3, append_warm, bare, write, turns=60)
    file.write_bytes(original)
    yield compare("load 1,000 exchanges", 1.2, timed(load), "read, msgspec.json.decode", timed(decode), turns=60)
    file.write_bytes(
        original.replace(b'"timestamp"', b'"attachments": [\n        "a.png"\n      ],\n      "timestamp"')
    )
    name = "load 1,000 exchanges, unknown fields in each record"
    yield compare(name, 2.0, timed(load), "read, msgspec.json.decode", timed(decode), turns=60)


def _bare_write(file: Path) -> Timed:
    """Writes what the file holds now to another one, as durably as it can be done with the fewest calls."""
    place = file.parent.parent / "bare"
    place.mkdir()
    temporary, target = str(place / "temporary"), str(place / "target")

    def write() -> float:
        content = file.read_bytes()
        start = time.perf_counter()
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        os.write(fd, content)
        os.fsync(fd)
        os.close(fd)
        os.rename(temporary, target)
        directory = os.open(place, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)
        return time.perf_counter() - start

    return write


def _many_sessions(place: Path) -> Iterator[Result]:
    with StateStore.open(place, durability="relaxed") as filling:
        for number in range(SESSIONS):
            session = filling.get_or_create_session(f"user-{number % 50}", f"session-{number:05}")
            session.add_user_message(MESSAGE)
            session.add_agent_response(MESSAGE)
            filling.save_session(session)
        filling.list_sessions()
    store = StateStore.open(place)

    def scan() -> None:
        with os.scandir(place / "sessions") as entries:
            assert sum(1 for entry in entries if entry.stat(follow_symlinks=False)) == SESSIONS

    def list_in_fresh_store() -> float:
        with StateStore.open(place) as fresh:
            start = time.perf_counter()
            assert len(fresh.list_sessions()) == SESSIONS
            return time.perf_counter() - start

    def list_all() -> None:
        assert len(store.list_sessions()) == SESSIONS

    def list_newest() -> None:
        assert len(store.list_sessions(limit=50)) == 50

    def newest_in_fresh_store() -> float:
        with StateStore.open(place) as fresh:
            start = time.perf_counter()
            assert len(fresh.list_sessions(limit=50)) == 50
            return time.perf_counter() - start

    floor = "scandir and stat"
    yield compare("list 5,000 sessions", 3.0, timed(list_all), floor, timed(scan), turns=30)
    yield compare("newest 50 of 5,000", 2.0, timed(list_newest), floor, timed(scan), turns=30)
    yield compare("list 5,000 sessions, first in its process", 3.0, list_in_fresh_store, floor, timed(scan), turns=30)
    yield compare("newest 50 of 5,000, first in its process", 2.0, newest_in_fresh_store, floor, timed(scan), turns=30)
