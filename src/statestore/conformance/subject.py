"""The test class behind ``python -m statestore.conformance URL``."""

from __future__ import annotations

from typing import ClassVar

import pytest

from statestore.conformance import EngineContract
from statestore.conformance.report import SUBJECT
from statestore.conformance.storage import empty
from statestore.engine import Engine


class TestEngine(EngineContract):
    """The engine that the command line names."""

    is_shared: ClassVar[bool] = False

    async def prepare(self, engine: Engine) -> None:
        """Where all cases share one storage, each finds it empty."""
        if self.is_shared:
            await empty(engine)

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Take over what the command line says, before the first case."""
        subject = metafunc.config.stash[SUBJECT]
        cls = type(self)
        cls.url, cls.is_shared = subject.url, subject.is_shared
        cls.offers = subject.offers
        cls.reopens = subject.url != "memory:"
        if subject.examples is not None:
            cls.examples = subject.examples
        super().pytest_generate_tests(metafunc)
