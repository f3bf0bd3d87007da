"""Opening a store: what is wrong is found before anything is open, and what was opened once is not opened twice."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from faults.handles import handles_in_use
from soak.grounds import fresh
from statestore import (
    AsyncStateStore,
    InvalidValue,
    Session,
    StateStore,
    StoreClosed,
    StoreNotFound,
    UserMessage,
)
from statestore.opening import engine_for

ALL = ("memory", "files", "sqlite", "postgres", "valkey", "valkey-cluster")


@pytest.mark.parametrize("name", ["state", "state.db"])
def test_a_cooldown_that_makes_no_sense_is_found_before_the_store_is_opened(name: str, tmp_path: Path) -> None:
    before = handles_in_use()
    with pytest.raises(InvalidValue, match="cooldown") as refused:
        StateStore.open(tmp_path / name, prune_cooldown_secs=-1)

    async def run() -> None:
        before = handles_in_use()
        with pytest.raises(InvalidValue, match="cooldown") as refused:
            await AsyncStateStore.open(tmp_path / name, prune_cooldown_secs=-1)
        assert handles_in_use() <= before
        assert refused.value is not None  # whoever keeps the error keeps what it came through

    assert handles_in_use() <= before
    assert refused.value is not None
    asyncio.run(run())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "target",
    [
        "sqlite::memory:?timeout=3",
        "sqlite://:memory:",
        "sqlite:///:memory:",
        "sqlite:////:memory:",
        "SQLITE:///:memory:",
        "sqlite:///:memory:?timeout=3",
        "sqlite:there/:memory:",
        "file::memory:?cache=shared",
    ],
)
def test_the_database_that_lives_in_memory_is_no_file(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    with pytest.raises(InvalidValue, match="memory: is the store that lives in memory"):
        StateStore.open(target)
    assert [path.name for path in tmp_path.rglob("*")] == ["there"]


async def _entered(opening: Awaitable[AsyncStateStore]) -> AsyncStateStore:
    assert hasattr(type(opening), "__aenter__")
    async with opening as store:  # type: ignore[attr-defined]
        return store


async def _awaited(opening: Awaitable[AsyncStateStore]) -> AsyncStateStore:
    return await opening


@pytest.mark.parametrize("again", [_awaited, _entered])
@pytest.mark.parametrize("engine", ["memory", "sqlite", "postgres"])
def test_one_opening_opens_one_store(
    engine: str, again: Callable[[Awaitable[AsyncStateStore]], Awaitable[AsyncStateStore]]
) -> None:
    async def run(target: str) -> None:
        opening = AsyncStateStore.open(target)
        store = await opening
        with pytest.raises(StoreClosed, match=r"opened a store already: AsyncStateStore\.open"):
            await again(opening)
        await store.get_or_create_session("alice", "one")
        await store.close()
        with pytest.raises(StoreClosed, match=r"opened a store already: AsyncStateStore\.open"):
            await again(opening)

    with fresh(engine) as ground:
        asyncio.run(run(ground.target))


def test_an_opening_that_two_await_at_once_opens_one_store(tmp_path: Path) -> None:
    async def run() -> None:
        opening = AsyncStateStore.open(tmp_path / "state.db")
        found = await asyncio.gather(_awaited(opening), _awaited(opening), return_exceptions=True)
        (store,) = (each for each in found if isinstance(each, AsyncStateStore))
        assert [type(each) for each in found if each is not store] == [StoreClosed]
        await store.get_or_create_session("alice", "one")
        await store.close()

    asyncio.run(run())


def test_an_opening_that_failed_can_be_tried_again(tmp_path: Path) -> None:
    async def run() -> None:
        opening = AsyncStateStore.open(tmp_path / "state.db", create=False)
        with pytest.raises(StoreNotFound):
            await opening
        StateStore.open(tmp_path / "state.db").close()
        async with opening as store:
            assert await store.list_sessions() == []

    asyncio.run(run())


@pytest.mark.parametrize("name", ALL)
def test_an_engine_that_was_closed_is_opened_again_in_another_loop(name: str) -> None:
    async def use(store: AsyncStateStore) -> None:
        """As much at once as there is no room for, so that some wait; and some are waited for by who closes."""
        await store.get_or_create_session("alice", "one")
        await asyncio.gather(*(store.append("one", UserMessage("x")) for _ in range(40)))
        await asyncio.gather(*(store.session_exists("one") for _ in range(40)))
        under_way = [asyncio.create_task(store.append("one", UserMessage("x"))) for _ in range(40)]
        await asyncio.sleep(0)
        await store.close()
        for outcome in await asyncio.gather(*under_way, return_exceptions=True):
            assert isinstance(outcome, (list, StoreClosed)), outcome

    async def run() -> None:
        await use(await AsyncStateStore.open(engine))

    with fresh(name) as ground:
        engine = engine_for(ground.target)
        for _ in range(3):
            asyncio.run(run())
        with StateStore.open(engine) as plain:
            assert plain.append("one", UserMessage("x"))[0] > (0 if name == "memory" else 3 * 40)


@pytest.mark.parametrize(
    "target", ["state.db?timeout=0.5", "state.sqlite?journal=wal", "state.db/", "agent.db3", "agent.sqlite4"]
)
def test_what_looks_like_a_database_is_not_made_a_directory(target: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=f"sqlite:{re.escape(str(tmp_path))}/{re.escape(target.rstrip('/'))} names"):
        StateStore.open(f"{tmp_path}/{target}")
    assert list(tmp_path.iterdir()) == []
    with StateStore.open(f"file:{tmp_path}/{target}") as store:
        store.save_session(Session.with_id("alice", "s"))
    assert (tmp_path / target.rstrip("/") / "sessions").is_dir()
    if not target.endswith("/"):
        with StateStore.open(tmp_path / target) as store:
            assert store.session_exists("s")


def test_a_class_of_ones_own_opens_stores_of_its_own(tmp_path: Path) -> None:
    class Mine(StateStore):
        pass

    class MyAsync(AsyncStateStore):
        pass

    async def opened() -> tuple[MyAsync, MyAsync]:
        async with MyAsync.open(tmp_path / "state.db") as one:
            other = await MyAsync.open(tmp_path / "state.db")
            await other.close()
            return one, other

    with Mine.open(tmp_path / "state.db") as store:
        assert type(store) is Mine
    assert [type(store) for store in asyncio.run(opened())] == [MyAsync, MyAsync]
