"""What is tested: the framework's own implementations, and ours on each engine."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agent_framework")

with warnings.catch_warnings():  # what is experimental says so once, when it is first used
    warnings.simplefilter("ignore")
    from agent_framework import (
        FileCheckpointStorage,
        FileHistoryProvider,
        FileSessionStore,
        InMemoryCheckpointStorage,
        SessionStore,
    )

    from statestore.adapters.agent_framework import (
        StateStoreCheckpointStorage,
        StateStoreHistoryProvider,
        StateStoreSessionStore,
    )

from adapters.conftest import ENGINES, new_url


class Scene:
    """Runs one asynchronous scene, and closes what was made for it."""

    def __init__(self, made: Any) -> None:
        self.made = made

    def run(self, scene: Any) -> Any:
        async def whole() -> Any:
            try:
                return await scene(self.made)
            finally:
                if hasattr(self.made, "close"):
                    await self.made.close()

        return asyncio.run(whole())


def _scenes(request: pytest.FixtureRequest, directory: Path, theirs: dict[str, Any], ours: Any) -> Iterator[Scene]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if request.param in theirs:
            yield Scene(theirs[request.param]())
            return
    for url in new_url(request.param, directory):
        yield Scene(ours(url))


@pytest.fixture(params=["theirs on files", *ENGINES])
def history(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    theirs = {"theirs on files": lambda: FileHistoryProvider(tmp_path)}
    yield from _scenes(request, tmp_path, theirs, StateStoreHistoryProvider)


@pytest.fixture(params=["theirs in memory", "theirs on files", *ENGINES])
def snapshots(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    theirs = {"theirs in memory": SessionStore, "theirs on files": lambda: FileSessionStore(tmp_path)}
    yield from _scenes(request, tmp_path, theirs, StateStoreSessionStore)


@pytest.fixture(params=["theirs in memory", "theirs on files", *ENGINES])
def checkpoints(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    theirs = {
        "theirs in memory": InMemoryCheckpointStorage,
        "theirs on files": lambda: FileCheckpointStorage(tmp_path / "checkpoints"),
    }
    yield from _scenes(request, tmp_path, theirs, StateStoreCheckpointStorage)
