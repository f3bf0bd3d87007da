"""Places for a store, and stores in a directory that are closed when the test ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from statestore import StateStore


@pytest.fixture(params=["files", "sqlite"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Where a store is to be, of either kind: a directory, or a database."""
    return tmp_path / ("state" if request.param == "files" else "state.db")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where the store is to be."""
    return tmp_path / "state"


@pytest.fixture
def opened(root: Path) -> Iterator[Callable[..., StateStore]]:
    """Opens the store, as often as one likes."""
    with ExitStack() as stack:

        def open_store(**options: Any) -> StateStore:
            return stack.enter_context(StateStore.open(root, **options))

        yield open_store


@pytest.fixture
def store(opened: Callable[..., StateStore]) -> StateStore:
    """An open store."""
    return opened()
