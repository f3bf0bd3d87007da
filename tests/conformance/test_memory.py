"""``memory:`` keeps the engine contract."""

from __future__ import annotations

from statestore.conformance import EngineContract


class TestMemoryEngine(EngineContract):
    """Every promise but durability."""

    url = "memory:"
    reopens = False
