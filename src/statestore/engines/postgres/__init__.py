"""``postgresql://…`` - where one machine is not enough: many writers on many machines, fail-over between servers.

``servers`` finds the one that takes writes, ``pool`` keeps connections to it, ``persisting`` tries again when one is
lost. ``batches`` lays changes out in arrays, ``writing`` has a group of them made by one statement, ``reading`` and
``listing`` answer with one statement each. The driver is loaded when an engine is made.
"""

from __future__ import annotations

from statestore.engines.postgres.engine import PostgresEngine
from statestore.engines.postgres.url import open_url

__all__ = ["PostgresEngine", "open_url"]
