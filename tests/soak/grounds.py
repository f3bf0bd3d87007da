"""Where a round takes place: an empty store on one of the engines, and a directory that goes with it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from servers import postgres, valkey

LOCAL = ("files", "sqlite")
SERVERS = ("postgres", "valkey", "valkey-cluster")


@dataclass(frozen=True)
class Ground:
    """An empty store: what to open, and a directory to use."""

    engine: str
    target: str
    """What `StateStore.open` takes."""
    directory: Path


@contextmanager
def fresh(engine: str) -> Iterator[Ground]:
    """An empty store on an engine, for as long as the block lasts. Servers are started once, and shared."""
    with tempfile.TemporaryDirectory(prefix="statestore-soak-") as place:
        directory = Path(place)
        match engine:
            case "memory":
                yield Ground(engine, "memory:", directory)
            case "files":
                yield Ground(engine, f"file:{directory / 'state'}", directory)
            case "sqlite":
                yield Ground(engine, f"sqlite:{directory / 'state.db'}", directory)
            case "postgres":
                schema = f"soak_{uuid4().hex[:20]}"
                yield Ground(engine, f"{postgres.shared_url()}?schema={schema}&timeout=20", directory)
                postgres.sql(postgres.shared_url(), f"DROP SCHEMA IF EXISTS {schema} CASCADE")
            case "valkey":
                yield Ground(engine, f"{valkey.shared_url()}?prefix=t{uuid4().hex[:16]}", directory)
            case "valkey-cluster":
                yield Ground(engine, f"{valkey.shared_cluster().url}&prefix=t{uuid4().hex[:16]}", directory)
            case _:
                raise ValueError(f"there is no engine {engine!r} to try")
