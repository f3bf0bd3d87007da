"""``valkey://`` keeps the engine contract: on one server, and on a cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from servers.valkey import forget, shared_cluster, shared_url
from statestore.conformance import EngineContract
from statestore.engine import Engine
from statestore.opening import engine_for


@pytest.fixture(autouse=True, scope="module")
def _tidy() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """What the cases leave on the server is removed when they are over."""
    yield
    forget(shared_url())


def prefix_of(place: Path) -> str:
    return "t" + hashlib.sha256(str(place).encode()).hexdigest()[:16]


class TestValkeyEngine(EngineContract):
    """Every promise, on one server."""

    offers = frozenset({"watch", "group", "several", "repair"})

    def make_engine(self, place: Path) -> Engine:
        return engine_for(f"{shared_url()}?prefix={prefix_of(place)}")


class TestValkeyClusterEngine(EngineContract):
    """Every promise that a cluster can keep: items change one by one, and nobody is told."""

    offers = frozenset({"group", "several", "repair"})
    examples = 10

    def make_engine(self, place: Path) -> Engine:
        return engine_for(f"{shared_cluster().url}&prefix={prefix_of(place)}")
