"""Sessions that are too long for one answer: read in pieces, and still as they were at one moment."""

from __future__ import annotations

import asyncio

import pytest

from statestore import AsyncStateStore, Session, StateStore, UserMessage
from statestore.engines.valkey import reading

LENGTH = 700


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(reading, "PAGE", 50)


@pytest.fixture(params=["url", "cluster_url"])
def long(request: pytest.FixtureRequest) -> str:
    """A store with a long session."""
    url: str = request.getfixturevalue(request.param)
    with StateStore.open(url) as store:
        session = Session.with_id("alice", "long")
        for number in range(LENGTH):
            session.add_user_message(str(number))
        store.save_session(session)
    return url


def test_a_long_session_is_read_whole(long: str) -> None:
    with StateStore.open(long) as store:
        session = store.load_session("long")
        assert session is not None
        assert [message.content for message in session.user_messages] == [str(number) for number in range(LENGTH)]
        entries = store.timeline("long")
        assert [entry.seq for entry in entries] == list(range(1, LENGTH + 1))


def test_a_batch_of_many_records_is_stored_whole(url: str) -> None:
    with StateStore.open(url) as store:
        store.save_session(Session.with_id("alice", "s"))
        numbers = store.append("s", *(UserMessage(str(number)) for number in range(12_345)))
        assert numbers == list(range(1, 12_346))
        session = store.load_session("s")
        assert session is not None
        assert [message.content for message in session.user_messages] == [str(number) for number in range(12_345)]
        assert store.check() == []


def test_a_session_that_is_rewritten_while_it_is_read_is_read_as_it_was_at_one_moment(long: str) -> None:
    """All messages of a rewrite begin alike, and there are always as many: a mixture would show."""

    async def run() -> None:
        async with AsyncStateStore.open(long) as store, AsyncStateStore.open(long) as other:
            is_over = False

            async def rewrite() -> None:
                nonlocal is_over
                for turn in range(8):
                    await other.rewind_session("long", to=0)
                    await other.append("long", *(UserMessage(f"{turn}") for _ in range(LENGTH)))
                is_over = True

            async def read() -> None:
                while not is_over:
                    session = await store.load_session("long")
                    assert session is not None
                    said = {message.content for message in session.user_messages}
                    assert (len(said), len(session.user_messages)) in ((0, 0), (1, LENGTH), (LENGTH, LENGTH))

            await asyncio.gather(rewrite(), read(), read())

    asyncio.run(run())
