"""``postgresql:`` keeps the engine contract."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from servers.postgres import Schemas, shared_url
from statestore.conformance import EngineContract
from statestore.engine import Engine
from statestore.opening import engine_for


class TestPostgresEngine(EngineContract):
    """Every promise."""

    offers = frozenset({"group", "several", "search", "watch", "wake"})
    examples = 15  # each takes a second
    schemas: ClassVar[Schemas]

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def kept_schemas(cls) -> Iterator[None]:
        """What all cases take their schemas from."""
        cls.schemas = Schemas(shared_url())
        yield
        cls.schemas.drop()

    def make_engine(self, place: Path) -> Engine:
        return engine_for(f"{shared_url()}?schema={self.schemas.name_for(place)}")
