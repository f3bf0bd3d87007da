"""Savers and stores of memory to be tested: the framework's own, and ours on each engine."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.checkpoint.sqlite")

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from adapters.conftest import new_url
from statestore.adapters.langgraph import StateStoreSaver, StateStoreStore

OURS = ("memory", "sqlite", "postgres", "valkey")


@pytest.fixture(params=["theirs in memory", "theirs on sqlite", *OURS])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseCheckpointSaver[Any]]:
    """A saver: the framework's own two, and ours on four engines."""
    if request.param == "theirs in memory":
        yield InMemorySaver()
    elif request.param == "theirs on sqlite":
        connection = sqlite3.connect(tmp_path / "theirs.db", check_same_thread=False)
        yield SqliteSaver(connection)
        connection.close()
    else:
        with ExitStack() as stack:
            yield stack.enter_context(StateStoreSaver(_url(request.param, tmp_path, stack)))


@pytest.fixture(params=OURS)
def our_saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StateStoreSaver]:
    """Our saver, on four engines."""
    with ExitStack() as stack:
        yield stack.enter_context(StateStoreSaver(_url(request.param, tmp_path, stack)))


@pytest.fixture(params=["theirs in memory", *OURS])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseStore]:
    """A store of long-term memory: the framework's own, and ours on four engines."""
    if request.param == "theirs in memory":
        yield InMemoryStore()
    else:
        with ExitStack() as stack:
            yield stack.enter_context(StateStoreStore(_url(request.param, tmp_path, stack)))


def _url(engine: str, directory: Path, stack: ExitStack) -> str:
    if engine == "memory":
        return "memory:"
    urls = new_url(engine, directory)
    stack.callback(lambda: next(urls, None))
    return next(urls)
