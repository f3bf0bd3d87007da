"""The writers of the contests: each writes so many times, through a service of its own."""

from __future__ import annotations

import asyncio
from typing import Any

from adapters.google_adk.events import TRIP, changing, said
from statestore.adapters.google_adk import StateStoreSessionService
from statestore.adapters.google_adk.staleness import StaleSessionError


def write_messages(url: str, name: str, count: int, stale_when: Any) -> None:
    """One message a write, into one session; who is stale loads again."""

    async def write() -> None:
        async with StateStoreSessionService(url, stale_when=stale_when) as service:
            session: Any = await service.get_session(**TRIP)
            for number in range(count):
                message = said(f"{name} {number}")
                while True:
                    try:
                        await service.append_event(session, message)
                        break
                    except StaleSessionError:
                        assert stale_when == "superseded"
                        session = await service.get_session(**TRIP)

    asyncio.run(write())


def count_up(url: str, name: str, count: int, stale_when: Any, session_id: str) -> None:
    """Counters of the session, the user and the app, one more each write; who is stale loads again.

    Each writes into a session of its own if the id is empty: then they share the user's counter and the app's.
    """
    place = {**TRIP, "session_id": session_id or name}

    async def write() -> None:
        async with StateStoreSessionService(url, stale_when=stale_when) as service:
            if not session_id:
                await service.create_session(**place)
            for _ in range(count):
                while True:
                    session: Any = await service.get_session(**place)
                    keys = ("count", "user:count", "app:count")
                    delta = {key.replace(":", "__"): session.state.get(key, 0) + 1 for key in keys}
                    try:
                        await service.append_event(session, changing(**delta))
                        break
                    except StaleSessionError:
                        continue

    asyncio.run(write())


def count_shared(url: str, name: str, count: int) -> None:
    """Counters of a user and an app, without a session."""

    def one_more(state: dict[str, Any]) -> None:
        state["count"] = state.get("count", 0) + 1
        state[name] = state.get(name, 0) + 1

    async def write() -> None:
        async with StateStoreSessionService(url) as service:
            for _ in range(count):
                await service.update_user_state(app_name="ferries", user_id="alice", change=one_more)
                await service.update_app_state(app_name="ferries", change=one_more)

    asyncio.run(write())
