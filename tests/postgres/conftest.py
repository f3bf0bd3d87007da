"""A schema of its own for each test, and stores in it that are closed when the test ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from uuid import uuid4

import pytest

from servers.postgres import PostgresServer, running_server, shared_url, sql
from statestore import StateStore


@pytest.fixture
def url() -> Iterator[str]:
    """The URL of a schema that is not there yet, on the server that all tests share."""
    schema = f"test_{uuid4().hex[:20]}"
    yield f"{shared_url()}?schema={schema}&timeout=20"
    sql(shared_url(), f"DROP SCHEMA IF EXISTS {schema} CASCADE")


@pytest.fixture
def opened(url: str) -> Iterator[Callable[..., StateStore]]:
    """Opens a store in the schema, or at another URL."""
    with ExitStack() as stack:
        yield lambda target=url, **options: stack.enter_context(StateStore.open(target, **options))


@pytest.fixture
def store(opened: Callable[..., StateStore]) -> StateStore:
    return opened()


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    """A server that a test may stop, fill and kill; it flushes what it writes."""
    with running_server() as server:
        yield server
