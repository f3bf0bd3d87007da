"""A session that takes long to decode holds up its own caller, and not the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from statestore import AsyncStateStore, UserMessage, records, stored

Deed = Callable[[AsyncStateStore], Coroutine[Any, Any, object]]

DEEDS: dict[str, Deed] = {
    "load_session": lambda store: store.load_session("a"),
    "get_or_create_session": lambda store: store.get_or_create_session("alice", "a"),
    "timeline": lambda store: store.timeline("a"),
    "fork_session": lambda store: store.fork_session("a"),
    "rewind_session": lambda store: store.rewind_session("a", to=1),
    "delete_session": lambda store: store.delete_session("a", trash_hours=1),
    "restore_session": lambda store: store.restore_session("thrown"),
}


@pytest.mark.parametrize("deed", DEEDS.values(), ids=DEEDS)
@pytest.mark.parametrize("where", ["sqlite:{}/state.db", "file:{}/state"])
def test_records_are_decoded_beside_the_event_loop(
    where: str, deed: Deed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoding: list[threading.Thread] = []

    def noted(decode: Callable[..., Any]) -> Callable[..., Any]:
        def note_and_decode(*arguments: Any) -> Any:
            decoding.append(threading.current_thread())
            return decode(*arguments)

        return note_and_decode

    async def work() -> None:
        async with AsyncStateStore.open(where.format(tmp_path)) as store:
            for name in ("a", "thrown"):
                await store.get_or_create_session("alice", name)
                await store.append(name, *map(UserMessage, "xyz"))
            await store.delete_session("thrown", trash_hours=1)
            for name in ("decode_arrays", "decode_pieces"):
                monkeypatch.setattr(stored, name, noted(getattr(records, name)))
            assert await deed(store)

    asyncio.run(work())
    assert decoding
    assert threading.main_thread() not in decoding
