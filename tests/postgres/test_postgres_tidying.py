"""Now and then, beside the work, old outcomes and old changes are forgotten. Closing waits for it."""

from __future__ import annotations

import asyncio

import pytest
from postgres_hooks import run_in

from statestore import AsyncStateStore, CursorExpired, StateStore, UserMessage
from statestore.engines.postgres import tidying


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tidying, "BATCHES", 10)


def test_what_was_written_long_ago_is_forgotten_while_others_write(url: str) -> None:
    async def work() -> str:
        async with AsyncStateStore.open(url) as store:
            await store.get_or_create_session("alice", "s")
            old = await store.change_cursor()
            run_in(url, "UPDATE tokens SET made = made - interval '2 hours'")
            run_in(url, "SELECT setval('change_numbers', 200000)")  # as if there had been more changes than are kept
            for number in range(10):
                await store.append("s", UserMessage(str(number)))
            return old

    old = asyncio.run(work())
    assert run_in(url, "SELECT count(*) FROM tokens WHERE made < now() - interval '1 hour'") == [(0,)]
    with StateStore.open(url) as store, pytest.raises(CursorExpired):
        next(store.watch(after=old))


def test_what_cannot_be_forgotten_is_no_trouble_for_who_writes(url: str, caplog: pytest.LogCaptureFixture) -> None:
    with StateStore.open(url) as store:
        store.get_or_create_session("alice", "s")
        run_in(url, "DROP FUNCTION tidy_up")
        for number in range(20):
            store.append("s", UserMessage(str(number)))
    assert "old changes and outcomes were not removed" in caplog.text
    with StateStore.open(url) as store:
        assert len(store.timeline("s")) == 20
