"""``file:`` keeps the engine contract."""

from __future__ import annotations

from statestore.conformance import EngineContract


class TestFilesEngine(EngineContract):
    """Every promise."""

    url = "file:{place}"
