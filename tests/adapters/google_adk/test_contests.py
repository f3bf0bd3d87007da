"""Two processes at once: every event is there, every counter is exact."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from adapters.contests import WRITES, two_processes
from adapters.google_adk.events import TRIP
from adapters.google_adk.writers import count_shared, count_up, write_messages
from statestore.adapters.google_adk import StateStoreSessionService


def left_by(write: Any, url: str, *arguments: str) -> Any:
    """The session that two processes wrote to."""

    async def made() -> None:
        async with StateStoreSessionService(url) as service:
            await service.create_session(**TRIP)

    async def found() -> Any:
        async with StateStoreSessionService(url) as service:
            return await service.get_session(**TRIP)

    asyncio.run(made())
    two_processes(write, url, *arguments)
    return asyncio.run(found())


@pytest.mark.parametrize("stale_when", ["superseded", "overwriting"])
def test_two_processes_keep_every_event(store_url: str, stale_when: str) -> None:
    session = left_by(write_messages, store_url, stale_when)
    texts = [event.content.parts[0].text for event in session.events]
    assert len(texts) == len(set(texts)) == 2 * WRITES
    for name in ("a", "b"):
        assert [text for text in texts if text.startswith(name)] == [f"{name} {number}" for number in range(WRITES)]


@pytest.mark.parametrize("stale_when", ["superseded", "overwriting"])
def test_two_processes_count_exactly_in_one_session(store_url: str, stale_when: str) -> None:
    session = left_by(count_up, store_url, stale_when, "trip")
    assert session.state == {"count": 2 * WRITES, "user:count": 2 * WRITES, "app:count": 2 * WRITES}
    assert len(session.events) == 2 * WRITES


def test_two_processes_count_exactly_in_two_sessions(store_url: str) -> None:
    session = left_by(count_up, store_url, "overwriting", "")
    assert session.state == {"user:count": 2 * WRITES, "app:count": 2 * WRITES}


def test_two_processes_count_exactly_without_a_session(store_url: str) -> None:
    session = left_by(count_shared, store_url)
    expected = {"count": 2 * WRITES, "a": WRITES, "b": WRITES}
    assert session.state == {f"{scope}:{key}": value for scope in ("user", "app") for key, value in expected.items()}
