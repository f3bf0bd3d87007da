"""Places for stores on the server that all tests share, on the shared cluster, and servers of a test's own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest

from servers.valkey import ValkeyCluster, ValkeyServer, cluster, forget, server, shared_cluster, shared_url
from statestore.engines.valkey.pool import ConnectionPool


@pytest.fixture(scope="session", autouse=True)
def _tidy() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    yield
    forget(shared_url())


@pytest.fixture
def prefix(request: pytest.FixtureRequest) -> str:
    """A prefix that no other test has."""
    return "t" + hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:16]


@pytest.fixture
def url(prefix: str) -> str:
    """The URL of an empty store."""
    return f"{shared_url()}?prefix={prefix}"


@pytest.fixture
def cluster_url(prefix: str) -> str:
    """The URL of an empty store on the shared cluster."""
    return f"{shared_cluster().url}&prefix={prefix}"


@pytest.fixture
def own_server() -> Iterator[ValkeyServer]:
    """A server that the test may ill-treat."""
    with server() as found:
        yield found


@pytest.fixture
def own_cluster() -> Iterator[ValkeyCluster]:
    """A cluster that the test may ill-treat."""
    with cluster() as found:
        yield found


@pytest.fixture
def exchanges(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """A list that grows with each round trip to a server."""
    noted: list[object] = []
    exchange = ConnectionPool.exchange

    async def note_and_exchange(pool: ConnectionPool, commands: Any) -> Any:
        noted.append(commands)
        return await exchange(pool, commands)

    monkeypatch.setattr(ConnectionPool, "exchange", note_and_exchange)
    return noted
