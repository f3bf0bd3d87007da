"""Conversation stores to be tested: the framework's own, which is in memory, and ours on each engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai.conversation_store")

from pydantic_ai.conversation_store import ConversationStore, InMemoryConversationStore

from adapters.conftest import ENGINES, new_url
from statestore.adapters.pydantic_ai import StateStoreConversations

OURS = ("memory", *ENGINES)
Opened = Callable[[], AbstractAsyncContextManager[Any]]
"""Opens a store for the length of a block; all that are opened in a test share one place (if it outlives them)."""


@pytest.fixture(params=["theirs", *OURS])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """A store: the framework's own, and ours on four engines."""
    if request.param == "theirs":
        yield _theirs
    else:
        yield from _ours(request.param, tmp_path)


@pytest.fixture(params=OURS)
def opened_ours(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """Our store, on four engines."""
    yield from _ours(request.param, tmp_path)


@pytest.fixture(params=ENGINES)
def opened_durable(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """Our store where it outlives its objects."""
    yield from _ours(request.param, tmp_path)


@asynccontextmanager
async def _theirs() -> AsyncIterator[ConversationStore]:
    yield InMemoryConversationStore()


def _ours(name: str, directory: Path) -> Iterator[Opened]:
    for url in ["memory:"] if name == "memory" else new_url(name, directory):
        yield lambda: StateStoreConversations(url)  # noqa: B023 - one URL a test
