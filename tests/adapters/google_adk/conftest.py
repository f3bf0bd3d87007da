"""Session services to be tested: ADK's own three, and ours on each engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google.adk.sessions")

from google.adk.sessions import InMemorySessionService
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.sqlite_session_service import SqliteSessionService

from adapters.conftest import ENGINES, new_url
from statestore.adapters.google_adk import StateStoreSessionService
from statestore.adapters.requirements import REQUIREMENTS

OURS = ("memory", *ENGINES)
PERSISTENT = ("theirs on sqlite", "theirs on a database")
Opened = Callable[[], AbstractAsyncContextManager[Any]]
"""Opens a service for the length of a block; all that are opened in a test share one place (if it outlives them)."""


@pytest.fixture(params=["theirs in memory", *PERSISTENT, *OURS])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """A service: ADK's own three, and ours on four engines."""
    yield from _opened(request.param, tmp_path)


@pytest.fixture(params=[*PERSISTENT, *OURS])
def opened_persistent(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """A service that outlives its objects: for what ADK asks of persistent ones alone."""
    yield from _opened(request.param, tmp_path)


@pytest.fixture(params=OURS)
def opened_ours(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """Our service, on four engines."""
    yield from _opened(request.param, tmp_path)


def _opened(name: str, directory: Path) -> Iterator[Opened]:
    if name in OURS:
        for url in ["memory:"] if name == "memory" else new_url(name, directory):
            yield lambda **options: StateStoreSessionService(url, **options)  # noqa: B023 - one URL a test
        return

    @asynccontextmanager
    async def theirs() -> AsyncIterator[BaseSessionService]:
        service: Any = _theirs(name, directory)
        yield service
        if hasattr(service, "close"):
            await service.close()

    yield theirs


def _theirs(name: str, directory: Path) -> BaseSessionService:
    if not version("google-adk").startswith(f"{REQUIREMENTS['google-adk'].newest}."):
        pytest.skip("what the contract is, the newest release of ADK tells; older ones had faults that it mended")
    if name == "theirs in memory":
        return InMemorySessionService()
    if name == "theirs on sqlite":
        return SqliteSessionService(str(directory / "theirs.db"))
    pytest.importorskip("sqlalchemy.ext.asyncio")
    from google.adk.sessions import DatabaseSessionService

    return DatabaseSessionService(f"sqlite+aiosqlite:///{directory / 'database.db'}")
