"""The framework's own conformance suite, on every engine and through both faces; nothing may be missing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

pytest.importorskip("langgraph.checkpoint.conformance")

from langgraph.checkpoint.conformance import checkpointer_test, validate

from adapters.conftest import new_url
from statestore import AsyncStateStore
from statestore.adapters.langgraph import StateStoreSaver

CASES = 81


@pytest.mark.parametrize("engine", ["memory", "files", "sqlite", "postgres", "valkey"])
@pytest.mark.parametrize("face", ["async", "plain"])
def test_every_case_of_every_capability_passes(engine: str, face: str, tmp_path: Path) -> None:
    async def run() -> None:
        @checkpointer_test(name=f"StateStoreSaver {uuid4()}")
        async def savers() -> AsyncGenerator[StateStoreSaver]:
            directory = tmp_path / uuid4().hex
            directory.mkdir()
            urls = {"memory": iter(["memory:"]), "files": iter([f"file:{directory}"])}.get(engine)
            with closing(new_url(engine, directory)) as remote:
                url = next(urls or remote)
                if face == "plain":
                    async with StateStoreSaver(url) as saver:
                        yield saver
                else:
                    async with AsyncStateStore.open(url) as store:
                        yield StateStoreSaver(store)

        report = await validate(savers)
        results = report.results.values()
        assert all(result.detected for result in results), report.results
        assert [failure for result in results for failure in result.failures] == []
        assert sum(result.tests_passed for result in results) >= CASES

    asyncio.run(run())
