"""The storage contract of Strands: first the framework's own in memory and on files, then ours."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("strands.storage")

from strands.storage import InMemoryStorage, LocalFileStorage, Storage
from strands.types.exceptions import StorageError

from adapters.conftest import ENGINES, new_url
from statestore import StateStore
from statestore.adapters.strands import StateStoreStorage

HAS_SEARCH = hasattr(Storage, "search")
WITH_SEARCH = pytest.mark.skipif(not HAS_SEARCH, reason="Strands has a search from 1.54 on")
TAKES_BACKSLASHES = tuple(map(int, version("strands-agents").split(".")[:2])) < (1, 55)


@pytest.fixture(params=["theirs in memory", "theirs on files", *ENGINES])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    if request.param == "theirs in memory":
        yield InMemoryStorage()
    elif request.param == "theirs on files":
        yield LocalFileStorage(str(tmp_path))
    else:
        for url in new_url(request.param, tmp_path):
            yield StateStoreStorage(url)


def run(storage: Any, scene: Any) -> None:
    async def whole() -> None:
        try:
            await scene
        finally:
            with suppress(AttributeError):
                await storage.close()

    asyncio.run(whole())


def test_it_is_a_storage(storage: Any) -> None:
    assert isinstance(storage, Storage)


def test_bytes_come_back_exactly(storage: Any) -> None:
    async def scene() -> None:
        everything = bytes(range(256)) * 10
        for data in (everything, b"", b'{"messages": []}'):
            await storage.write("sessions/abc/state.json", data)
            assert await storage.read("sessions/abc/state.json") == data
        assert await storage.read("nothing") is None

    run(storage, scene())


def test_slashes_are_collapsed(storage: Any) -> None:
    async def scene() -> None:
        await storage.write("//a///b/", b"1")
        assert await storage.read("a/b") == b"1"
        assert await storage.list("") == ["a/b"]

    run(storage, scene())


@pytest.mark.parametrize("key", ["", "/", "a\\b", "..", "a/../b"])
def test_a_key_that_is_none_is_refused(storage: Any, key: str) -> None:
    if "\\" in key and TAKES_BACKSLASHES and not isinstance(storage, StateStoreStorage):
        pytest.skip("Strands' own storages refuse backslashes from 1.55 on")

    async def scene() -> None:
        for call, more in ((storage.write, [b""]), (storage.read, []), (storage.delete, [])):
            with pytest.raises(StorageError):
                await call(key, *more)

    run(storage, scene())


def test_what_is_deleted_is_gone_and_may_be_deleted_again(storage: Any) -> None:
    async def scene() -> None:
        await storage.write("a/b", b"1")
        await storage.write("a/c", b"2")
        for _ in range(2):
            await storage.delete("a/b")
            assert await storage.read("a/b") is None
        assert await storage.list("a/") == ["a/c"]

    run(storage, scene())


def test_keys_are_listed_by_how_they_begin(storage: Any) -> None:
    async def scene() -> None:
        keys = ["a", "ab/c", "ab/cd/e.json", "ab/ce", "b.md", "b/x.json", "z/東京.bin"]
        for key in reversed(keys):
            await storage.write(key, key.encode())
        for prefix in ("", "a", "ab", "ab/", "ab/c", "ab/cd/", "/ab//c", "b", "b.", "nothing", "ab/cd/e.json", "z/東"):
            begin = prefix.lstrip("/").replace("//", "/")
            assert await storage.list(prefix) == sorted(key for key in keys if key.startswith(begin)), prefix
        with pytest.raises(StorageError):
            await storage.list("../x")

    run(storage, scene())


@WITH_SEARCH
def test_words_are_found(storage: Any) -> None:
    async def scene() -> None:
        await storage.write("notes/ferry.md", b"The ferry arrives before noon.")
        await storage.write("notes/train.md", b"The train is late.")
        found = await storage.search("ferry noon")
        assert [one.key for one in found] == ["notes/ferry.md"]
        assert await storage.search("bicycle") == []

    run(storage, scene())


# -- Ours beyond the contract.


def test_a_key_that_could_not_be_listed_is_refused(sqlite_url: str) -> None:
    async def scene() -> None:
        storage = StateStoreStorage(sqlite_url)
        for key in ("x" * 300, "x" * 300 + "/a", "/".join(["y" * 150] * 5)):
            with pytest.raises(StorageError, match="Invalid storage key"):
                await storage.write(key, b"")
        assert await storage.list() == []
        await storage.close()

    asyncio.run(scene())


def test_what_is_stored_is_a_document(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store:
        asyncio.run(StateStoreStorage(store).write("sessions/abc/snapshot.json", b"{}"))
        assert store.load_bytes("strands/sessions/abc", "snapshot.json") == b"{}"


def test_where_strands_has_no_search_it_is_told_which_version_has_one(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "strands.storage.search", None)

    async def scene() -> None:
        storage = StateStoreStorage(sqlite_url)
        with pytest.raises(StorageError, match=r"needs strands-agents 1\.54 or newer"):
            await storage.search("ferry")

    asyncio.run(scene())


@WITH_SEARCH
def test_a_search_strategy_is_told_and_asked(sqlite_url: str) -> None:
    class Strategy:
        def __init__(self) -> None:
            self.indexed: list[Any] = []

        async def index(self, storage: Any, key: str, data: bytes) -> None:
            self.indexed.append((key, data))

        async def search(self, storage: Any, query: str) -> list[Any]:
            return [query]

    async def scene() -> None:
        strategy = Strategy()
        storage = StateStoreStorage(sqlite_url, search_strategy=strategy)
        await storage.write("/a//b", b"1")
        assert strategy.indexed == [("a/b", b"1")]
        assert await storage.search("?") == ["?"]
        await storage.close()

    asyncio.run(scene())
