"""Where the stores of a contest live: in directories, or in databases of a server that is started for the run."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple


class Ground(NamedTuple):
    """What the stores of one contest share."""

    engine: str
    """What the server calls itself; empty where there is none."""
    about: str
    """A few words for the page."""
    fresh: Callable[[], Any]
    """An empty place for one store: a directory, or the URL of a database."""


@contextmanager
def directories() -> Iterator[Ground]:
    """A directory for each store, all on one file system."""
    with tempfile.TemporaryDirectory(prefix="statestore-peers-") as root:
        numbers = count()

        def fresh() -> Path:
            place = Path(root, str(next(numbers)))
            place.mkdir()
            return place

        about = (
            "Durability is the journal mode and `synchronous` of the connection as the store opens it: with FULL or"
            " EXTRA a commit is flushed before it returns."
        )
        yield Ground("", about, fresh)


@contextmanager
def postgres() -> Iterator[Ground]:
    """A server that flushes every commit, with a database for each store."""
    from tests.servers.postgres import ROLE, running_server

    with running_server() as server:
        numbers = count()
        ((version,),) = server.sql("SHOW server_version")

        def fresh() -> str:
            name = f"peers_{next(numbers)}"
            server.sql(f"CREATE DATABASE {name} OWNER {ROLE}")
            return server.url(database=name)

        about = (
            "One server for all, on the same machine, with a database for each store. Durability is what the store's"
            " own connection says: with both on, a commit is flushed before it returns. A pool is as large as the store"
            " makes it: SQLAlchemy's keeps 5 connections, and for more tasks opens 10 more, which it closes after use."
        )
        yield Ground(f"PostgreSQL {version}", about, fresh)


@contextmanager
def valkey() -> Iterator[Ground]:
    """A server that flushes every write, with a numbered database for each store."""
    from tests.servers.valkey import server

    with server() as found:
        numbers = count()
        version = found.client.info("server")["valkey_version"]
        about = (
            "One server for all, on the same machine, with a numbered database for each store. It is told to flush its"
            " log before it answers a write, for all of them; as Valkey ships it does not, and any of these stores"
            " could lose writes in a crash."
        )
        yield Ground(f"Valkey {version}", about, lambda: f"{found.url}/{next(numbers)}")
