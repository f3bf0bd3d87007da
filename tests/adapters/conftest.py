"""Where adapters are tested: an empty store on each engine that people run them on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

ENGINES = ("sqlite", "postgres", "valkey")


@pytest.fixture(params=ENGINES)
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a store that is not there yet, on SQLite, PostgreSQL and Valkey."""
    yield from new_url(request.param, tmp_path)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of an SQLite store that is not there yet."""
    return f"sqlite:{tmp_path / 'state.db'}"


def new_url(engine: str, directory: Path) -> Iterator[str]:
    """The URL of an empty store on an engine; what it leaves on a server is removed in the end."""
    if engine == "postgres":
        from servers.postgres import shared_url, sql

        schema = f"test_{uuid4().hex[:20]}"
        yield f"{shared_url()}?schema={schema}&timeout=20"
        sql(shared_url(), f"DROP SCHEMA IF EXISTS {schema} CASCADE")
    elif engine == "valkey":
        from servers.valkey import shared_url

        yield f"{shared_url()}?prefix=t{uuid4().hex[:16]}"
    else:
        yield f"sqlite:{directory / 'state.db'}"
