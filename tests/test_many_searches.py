"""Many searches at once, when there is something that the index has not seen: others do not wait for them."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from statestore import AsyncStateStore, Session, UserMessage
from statestore.engines.files import engine as files
from statestore.engines.sqlite import engine as sqlite

SEARCHES = 12


@pytest.mark.parametrize(
    ("name", "module", "step"),
    [pytest.param("state.db", sqlite, "has_seen", id="sqlite"), pytest.param("dir", files, "index_words", id="files")],
)
def test_one_search_lets_the_index_catch_up_while_others_load_and_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, module: ModuleType, step: str
) -> None:
    catching_up = getattr(module, step)
    has_begun, may_go_on = threading.Event(), threading.Event()
    at_it: list[int] = []

    def catch_up_later(*args: Any) -> Any:
        at_it.append(threading.get_ident())
        has_begun.set()
        assert may_go_on.wait(60)
        return catching_up(*args)

    async def scene() -> None:
        async with AsyncStateStore.open(tmp_path / name) as store:
            await store.save_session(Session("alice", "s"))
            await store.append("s", UserMessage("a word"))
            monkeypatch.setattr(module, step, catch_up_later)
            searches = [asyncio.ensure_future(store.search_sessions("word")) for _ in range(SEARCHES)]
            try:
                assert await asyncio.to_thread(has_begun.wait, 60)
                for number in range(2, 20):
                    assert await store.append("s", UserMessage("another")) == [number]
                    assert len(await store.timeline("s")) == number
                assert len(at_it) == 1, "one is at it, and the others wait for it"
            finally:
                may_go_on.set()
            assert [[hit.seq for hit in hits] for hits in await asyncio.gather(*searches)] == [[1]] * SEARCHES

    asyncio.run(scene())
