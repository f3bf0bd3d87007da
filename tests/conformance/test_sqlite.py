"""``sqlite:`` keeps the engine contract."""

from __future__ import annotations

from statestore.conformance import EngineContract


class TestSqliteEngine(EngineContract):
    """Every promise."""

    url = "sqlite:{place}.db"
    offers = frozenset({"search", "watch", "point", "group", "backup", "compact"})
