"""Long-term memory: what a store of it promises, tried on the framework's own first; then what ours adds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from hooked import HookedEngine
from statestore import AsyncStateStore, StateStore
from statestore.adapters.langgraph import StateStoreStore
from statestore.engines.memory import MemoryEngine

USERS = ("users", "alice")


def test_an_item_comes_back_and_goes(memory: BaseStore) -> None:
    value = {"text": "likes tea", "nested": {"list": [1, 2.5, None, True, "東京"]}}
    memory.put(USERS, "drink", value)
    item = memory.get(USERS, "drink")
    assert item is not None
    assert (item.value, item.key, item.namespace) == (value, "drink", USERS)
    assert item.created_at.tzinfo is not None
    memory.delete(USERS, "drink")
    assert memory.get(USERS, "drink") is None
    memory.delete(USERS, "drink")


def test_names_may_be_anything(memory: BaseStore) -> None:
    names = ["a/b", "a%2Fb", "..", " ", "x" * 300, "x" * 301, "ünï", "a\nb", "json"]
    for number, name in enumerate(names):
        memory.put(("ns", name.replace(".", "_") or "_"), name, {"number": number})
    for number, name in enumerate(names):
        item = memory.get(("ns", name.replace(".", "_") or "_"), name)
        assert item is not None
        assert item.value == {"number": number}
    assert len(memory.list_namespaces(limit=100)) == len(names)


def test_namespaces_are_kept_apart(memory: BaseStore) -> None:
    memory.put(("a",), "k", {"at": "a"})
    memory.put(("a", "b"), "k", {"at": "ab"})
    memory.put(("ab",), "k", {"at": "other"})
    assert {item.value["at"] for item in memory.search(("a",))} == {"a", "ab"}
    assert [item.value["at"] for item in memory.search(("a", "b"))] == ["ab"]
    assert memory.get(("a", "c"), "k") is None


@pytest.mark.parametrize(
    ("wanted", "keys"),
    [
        ({"color": "red"}, {"a", "c"}),
        ({"color": {"$ne": "red"}}, {"b"}),
        ({"size": {"$gte": 2}}, {"b", "c"}),
        ({"size": {"$gt": 1, "$lt": 3}}, {"b"}),
        ({"size": {"$lte": 1}, "color": "red"}, {"a"}),
        ({"where": {"city": "Rome"}}, {"c"}),
        ({"tags": ["x", "y"]}, {"a"}),
        ({"size": {"$eq": 3}}, {"c"}),
        ({}, {"a", "b", "c"}),
    ],
)
def test_a_search_filters(memory: BaseStore, wanted: dict[str, Any], keys: set[str]) -> None:
    memory.put(("things",), "a", {"color": "red", "size": 1, "tags": ["x", "y"]})
    memory.put(("things",), "b", {"color": "blue", "size": 2, "where": {"city": "Oslo"}})
    memory.put(("things",), "c", {"color": "red", "size": 3, "where": {"city": "Rome", "zip": 1}})
    assert {item.key for item in memory.search(("things",), filter=wanted)} == keys


def test_a_search_is_paged(memory: BaseStore) -> None:
    for number in range(25):
        memory.put(("many",), f"{number:02}", {"number": number})
    pages = [memory.search(("many",), limit=10, offset=offset) for offset in (0, 10, 20)]
    assert [len(page) for page in pages] == [10, 10, 5]
    assert {item.key for page in pages for item in page} == {f"{number:02}" for number in range(25)}


def test_namespaces_are_listed_by_prefix_suffix_and_depth(memory: BaseStore) -> None:
    for namespace in (("a", "b", "c"), ("a", "b", "d"), ("a", "x", "c"), ("z",)):
        memory.put(namespace, "k", {})
    assert memory.list_namespaces(prefix=("a", "b")) == [("a", "b", "c"), ("a", "b", "d")]
    assert memory.list_namespaces(suffix=("c",)) == [("a", "b", "c"), ("a", "x", "c")]
    assert memory.list_namespaces(prefix=("a", "*", "c")) == [("a", "b", "c"), ("a", "x", "c")]
    assert memory.list_namespaces(max_depth=2) == [("a", "b"), ("a", "x"), ("z",)]
    assert memory.list_namespaces(limit=2, offset=1) == [("a", "b", "d"), ("a", "x", "c")]
    memory.delete(("z",), "k")


def test_a_batch_reads_before_it_writes_and_the_last_write_counts(memory: BaseStore) -> None:
    memory.put(USERS, "a", {"n": 0})
    results = memory.batch(
        [
            PutOp(USERS, "a", {"n": 1}),
            GetOp(USERS, "a"),
            PutOp(USERS, "a", {"n": 2}),
            PutOp(USERS, "b", {"n": 3}),
            PutOp(USERS, "b", None),
            SearchOp(USERS),
            ListNamespacesOp((MatchCondition("prefix", ("users",)),)),
        ]
    )
    assert [results[0], results[2], results[3]] == [None, None, None]
    assert results[1].value == {"n": 0}  # type: ignore[union-attr]
    assert [item.value for item in results[5]] == [{"n": 0}]  # type: ignore[union-attr]
    assert results[6] == [USERS]
    assert [item.value for item in memory.search(USERS)] == [{"n": 2}]


def test_a_namespace_that_is_none_is_refused(memory: BaseStore) -> None:
    for namespace in ((), ("a.b",), ("",), ("langgraph", "x")):
        with pytest.raises(InvalidNamespaceError):
            memory.put(namespace, "k", {})


def test_the_asynchronous_twins_do_the_same(memory: BaseStore) -> None:
    async def run() -> None:
        await memory.aput(USERS, "k", {"n": 1})
        item = await memory.aget(USERS, "k")
        assert item is not None
        assert item.value == {"n": 1}
        assert [found.key for found in await memory.asearch(USERS)] == ["k"]
        assert await memory.alist_namespaces() == [USERS]
        await memory.adelete(USERS, "k")
        assert await memory.aget(USERS, "k") is None

    asyncio.run(run())


def embed(texts: Sequence[str]) -> list[list[float]]:
    """Two dimensions: how much of a text is about tea, and how much about coffee."""
    return [[float(text.count("tea")) + 0.01, float(text.count("coffee")) + 0.01] for text in texts]


@pytest.mark.parametrize("make", [InMemoryStore, lambda index: StateStoreStore("memory:", index=index)])
def test_a_search_by_meaning_gives_the_closest_first(make: Callable[..., BaseStore]) -> None:
    memory = make(index={"dims": 2, "embed": embed, "fields": ["text", "more[*].text"]})
    memory.put(USERS, "1", {"text": "coffee coffee"})
    memory.put(USERS, "2", {"text": "tea"})
    memory.put(USERS, "3", {"text": "coffee tea", "more": [{"text": "nothing"}]})
    memory.put(USERS, "4", {"text": "tea tea tea"}, index=False)
    memory.put(USERS, "5", {"other": "tea", "text": "coffee"}, index=["other"])
    found = memory.search(USERS, query="tea", limit=10)
    assert {item.key for item in found[:2]} == {"2", "5"}
    assert [item.key for item in found[2:]] == ["3", "1", "4"]
    assert found[0].score == pytest.approx(1.0, abs=0.01)
    assert found[-1].score is None
    assert [item.key for item in memory.search(USERS, query="coffee", limit=1)] == ["1"]


def test_without_an_embedding_a_search_goes_by_words(sqlite_url: str) -> None:
    with StateStoreStore(sqlite_url) as memory:
        memory.put(USERS, "1", {"text": "likes green tea", "deep": {"er": ["in 東京都"]}})
        memory.put(USERS, "2", {"text": "likes coffee"})
        memory.put(USERS, "3", {"text": "plays chess"})
        found = memory.search(USERS, query="LIKES Tea")
        assert [(item.key, item.score) for item in found] == [("1", 1.0), ("2", 0.5), ("3", None)]
        assert memory.search(USERS, query="東京")[0].key == "1"


def test_an_item_is_made_once_and_updated(sqlite_url: str) -> None:
    with StateStoreStore(sqlite_url) as memory:
        memory.put(USERS, "k", {"n": 1})
        first = memory.get(USERS, "k")
        memory.put(USERS, "k", {"n": 2})
        second = memory.get(USERS, "k")
        assert first is not None
        assert second is not None
        assert second.created_at == first.created_at
        assert second.updated_at > first.updated_at


def test_items_live_as_long_as_they_are_read(store_url: str) -> None:
    minute = 0.2 / 60
    with StateStoreStore(store_url, ttl={"default_ttl": minute, "omit_expired": True}) as memory:
        memory.put(USERS, "short", {})
        memory.put(USERS, "read", {})
        memory.put(USERS, "long", {}, ttl=10)
        memory.put(USERS, "ever", {}, ttl=None)
        deadline = time.monotonic() + 30
        while memory.get(USERS, "short", refresh_ttl=False) is not None:
            memory.get(USERS, "read")
            assert time.monotonic() < deadline
        assert memory.list_namespaces() == [USERS]
        left = {item.key for item in memory.search(USERS, refresh_ttl=False)} - {"read"}
        assert left == {"long", "ever"}
        assert memory.sweep_ttl() >= 1
    with StateStoreStore(store_url) as memory:
        assert {item.key for item in memory.search(USERS)} - {"read"} == {"long", "ever"}


def test_a_sweeper_removes_what_is_over_until_it_is_stopped(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store, StateStoreStore(store) as memory:
        memory.put(USERS, "k", {}, ttl=0.0001)
        memory.start_ttl_sweeper(0.001)
        deadline = time.monotonic() + 30
        while store.list_categories():
            assert time.monotonic() < deadline
        assert memory.stop_ttl_sweeper(30)


def test_what_somebody_wrote_meanwhile_is_neither_swept_nor_renewed() -> None:
    engine = HookedEngine(under := MemoryEngine())
    with StateStore.open(engine) as store, StateStore.open(under) as other:
        memory, others = StateStoreStore(store), StateStoreStore(other)

        def come_between(_: object) -> None:
            engine.before = None
            others.put(USERS, "2", {"by": "somebody"}, ttl=10)
            others.delete(USERS, "3")

        for ttl, left in ((-1, ["2"]), (1, ["1", "2", "4", "5"])):
            for key in ("1", "2", "3", "4", "5"):
                memory.put(USERS, key, {"by": "us"}, ttl=ttl)
            engine.before = come_between
            if ttl < 0:
                assert memory.sweep_ttl() == 3
            else:
                assert len(memory.search(USERS)) == 5
            assert [item.key for item in memory.search(USERS)] == left
            item = memory.get(USERS, "2")
            assert item is not None
            assert item.value == {"by": "somebody"}


def test_an_item_that_cannot_be_read_hides_no_other(sqlite_url: str, caplog: pytest.LogCaptureFixture) -> None:
    with StateStore.open(sqlite_url) as store, StateStoreStore(store) as memory:
        memory.put(USERS, "good", {"n": 1})
        store.save_json("memories/users/alice", "bad", {"not": "an item"})
        assert [item.key for item in memory.search(USERS)] == ["good"]
        assert "memories/users/alice/bad.json" in caplog.text


def test_memory_is_readable_as_documents(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store:
        StateStoreStore(store).put(("users", "a/b"), "drink", {"text": "tea"})
        assert store.list_categories() == ["memories/users/a%2Fb"]
        assert store.load_json("memories/users/a%2Fb", "drink")["value"] == {"text": "tea"}


def test_values_that_are_not_json_are_refused_before_anything_is_written(sqlite_url: str) -> None:
    with StateStore.open(sqlite_url) as store:
        memory = StateStoreStore(store)
        with pytest.raises(ValueError, match="bytes"):
            memory.batch([PutOp(USERS, "good", {}), PutOp(USERS, "bad", {"x": b"bytes"})])
        assert store.list_categories() == []


def test_an_asynchronous_store_serves_tasks_and_threads(store_url: str) -> None:
    async def run() -> None:
        async with AsyncStateStore.open(store_url) as store:
            memory = StateStoreStore(store)
            await asyncio.gather(*(memory.aput(USERS, str(n), {"n": n}) for n in range(20)))
            assert len(await memory.asearch(USERS, limit=50)) == 20
            item = await asyncio.to_thread(memory.get, USERS, "7")
            assert item is not None
            assert item.value == {"n": 7}

    asyncio.run(run())
