"""A database file for a store, and stores in it that are closed when the test ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from statestore import StateStore


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Where the store is to be."""
    return tmp_path / "state.db"


@pytest.fixture
def opened(database: Path) -> Iterator[Callable[..., StateStore]]:
    """Opens the store, as often as one likes."""
    with ExitStack() as stack:

        def open_store(target: str | Path | None = None, **options: Any) -> StateStore:
            return stack.enter_context(StateStore.open(database if target is None else target, **options))

        yield open_store


@pytest.fixture
def store(opened: Callable[..., StateStore]) -> StateStore:
    """An open store."""
    return opened()
