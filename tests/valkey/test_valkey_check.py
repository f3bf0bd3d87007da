"""What check() finds, and what repair() puts right."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import redis
from redis.exceptions import ResponseError

from servers.valkey import ValkeyCluster, ValkeyServer, server, shared_cluster, shared_url
from statestore import AsyncStateStore, Session, StateStore, UserMessage
from statestore.engines.valkey import ValkeyClusterEngine, ValkeyEngine, cluster_listing, surveying_indexes
from statestore.engines.valkey.calling import ServerCaller
from statestore.engines.valkey.keys import PLACE_DIGITS, Keys
from statestore.engines.valkey.mending import Finding, mend
from statestore.engines.valkey.planning import Listed
from statestore.engines.valkey.pool import Command
from statestore.engines.valkey.surveying import survey
from statestore.engines.valkey.url import parse
from statestore.stored import Problem

Damage = Callable[[redis.Redis, str], object]


def client_of(url: str) -> redis.Redis:
    return redis.Redis.from_url(shared_url().replace("valkey", "redis", 1), protocol=2)


def filled(url: str) -> None:
    with StateStore.open(url) as store:
        session = Session.with_id("alice", "s")
        session.add_user_message("hello")
        session.add_agent_response("hi")
        session.set_metadata("title", "T")
        store.save_session(session)
        store.append("s", UserMessage("again"), keys=["k"])
        store.save_json("notes", "n", 1)
        assert store.check() == []


def repaired(url: str) -> list[Problem]:
    address = parse("valkey", url.removeprefix("valkey:"))

    async def run() -> list[Problem]:
        engine = (ValkeyClusterEngine if address.is_cluster else ValkeyEngine)(address)
        await engine.open()
        try:
            return await engine.repair()
        finally:
            await engine.close()

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (("--appendonly", "no"), ["keeps no log"]),
        (("--appendonly", "yes", "--appendfsync", "everysec"), ["everysec"]),
        (("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"), ["keeps no log", "allkeys-lru"]),
        (("--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "allkeys-lru"), []),
        (("--rename-command", "CONFIG", ""), ["cannot be seen"]),
    ],
)
def test_a_server_that_may_lose_what_it_acknowledged_is_told(options: tuple[str, ...], found: list[str]) -> None:
    with server(*options, durable=False) as relaxed:
        with StateStore.open(relaxed.url) as store:
            problems = store.check()
            assert len(problems) == len(found)
            assert all(part in problem.what for part, problem in zip(found, problems, strict=True))
        with StateStore.open(relaxed.url, durability="relaxed") as store:
            assert store.check() == []


INDEX_DAMAGES: dict[str, Damage] = {
    "newest": lambda client, prefix: client.delete(f"{prefix}:newest"),
    "newest of a user": lambda client, prefix: client.delete(f"{prefix}:newest:alice"),
    "ids": lambda client, prefix: client.delete(f"{prefix}:ids"),
    "categories": lambda client, prefix: client.delete(f"{prefix}:categories"),
    "category": lambda client, prefix: client.delete(f"{prefix}:d:{{notes}}"),
    "ghost": lambda client, prefix: client.zadd(f"{prefix}:ids", {"ghost": 0}),
    "ghost of a user": lambda client, prefix: client.zadd(f"{prefix}:newest:bob", {"0" * 21 + "s": 0}),
    "ghost of a document": lambda client, prefix: client.zadd(f"{prefix}:d:{{notes}}", {"m\0json": 0}),
}


@pytest.mark.parametrize("damage", INDEX_DAMAGES)
def test_indexes_are_mended(url: str, prefix: str, damage: str) -> None:
    filled(url)
    client = client_of(url)
    with StateStore.open(url) as store:
        before = (store.list_sessions(), store.list_category("notes"))
        INDEX_DAMAGES[damage](client, prefix)
        assert store.check()
        assert repaired(url)
        assert store.check() == repaired(url) == []
        assert (store.list_sessions(), store.list_category("notes")) == before
        assert store.list_sessions(user_id="alice") == store.list_sessions(order="id") == before[0]
        assert store.list_sessions(user_id="bob") == []
    client.close()


@pytest.mark.parametrize("where", ["url", "cluster_url"])
@pytest.mark.parametrize("index", ["newest", "newest:alice", "ids", "categories"])
def test_an_index_that_somebody_else_wrote_is_told_of_and_no_items_fault(
    request: pytest.FixtureRequest, prefix: str, where: str, index: str
) -> None:
    place = request.getfixturevalue(where)
    filled(place)
    key = f"{prefix}:{index}"
    if where == "url":
        with client_of(place) as client:
            client.delete(key)
            client.set(key, "somebody else's")
    else:
        _delete(shared_cluster(), key)
        for node in shared_cluster().nodes:
            with suppress(ResponseError):  # it is on another node
                node.client.set(key, "somebody else's")
    with StateStore.open(place) as store:
        assert [problem.where for problem in store.check()] == [key]
    assert repaired(place) == []


SESSION_DAMAGES: dict[str, tuple[Damage, str]] = {
    "body": (lambda client, key: client.lset(f"{key}:r", 0, "u0000000000000001{"), "it is not a record"),
    "head": (lambda client, key: client.lset(f"{key}:r", 0, "x0000000000000001{}"), "never write"),
    "order": (lambda client, key: client.lset(f"{key}:r", 0, "u0000000000000009{}"), "comes after 9"),
    "count": (lambda client, key: client.hincrby(f"{key}:h", "users", 1), "its header says 3"),
    "size": (lambda client, key: client.hincrby(f"{key}:h", "size", 1), "bytes"),
    "next": (lambda client, key: client.hset(f"{key}:h", "next", 2), "next number"),
    "updated": (lambda client, key: client.hset(f"{key}:h", "updated", "yesterday"), "not an RFC 3339"),
    "user": (lambda client, key: client.hdel(f"{key}:h", "user"), "lacks user"),
    "metadata": (lambda client, key: client.hset(f"{key}:m", "no JSON", "1:1"), "not a JSON object"),
    "metadata's text": (lambda client, key: client.hset(f"{key}:m", '"k"', b'1:"\xff"'), "not a JSON object"),
    "layout": (lambda client, key: client.hset(f"{key}:h", "layout", "{"), "its layout is not a JSON object"),
    "key": (lambda client, key: client.zadd(f"{key}:k", {"other": 77}), "record 77"),
    "header": (lambda client, key: client.delete(f"{key}:h"), "no header"),
    "type": (lambda client, key: client.delete(f"{key}:r") and client.set(f"{key}:r", "x"), "cannot be read"),
    "title": (lambda client, key: client.hset(f"{key}:h", "title", b"\xff"), "field title of its header is not UTF-8"),
    "user's text": (lambda client, key: client.hset(f"{key}:h", "user", b"\xff"), "user of its header is not UTF-8"),
    "place": (lambda client, key: client.hset(f"{key}:h", "place", b"\xff"), "place of its header is not UTF-8"),
    "key's text": (lambda client, key: client.zadd(f"{key}:k", {b"\xff": 1}), "is not UTF-8"),
}


@pytest.mark.parametrize("damage", SESSION_DAMAGES)
def test_a_damaged_session_is_told_and_left_as_it_is(url: str, prefix: str, damage: str) -> None:
    filled(url)
    client = client_of(url)
    make, told = SESSION_DAMAGES[damage]
    make(client, f"{prefix}:s:{{s}}")
    with StateStore.open(url) as store:
        assert any(told in problem.what for problem in store.check())
        left = {key: client.dump(key) for key in client.scan_iter(match=f"{prefix}:s:{{s}}:?")}
        repaired(url)
        assert {key: client.dump(key) for key in client.scan_iter(match=f"{prefix}:s:{{s}}:?")} == left
        store.save_session(Session.with_id("alice", "sound"))
        assert "sound" in [summary.id for summary in store.list_sessions()]
    client.close()


def test_a_session_that_a_cluster_did_not_list_is_found_and_listed(cluster_url: str, prefix: str) -> None:
    filled(cluster_url)
    _delete(shared_cluster(), f"{prefix}:newest", f"{prefix}:newest:alice", f"{prefix}:ids", f"{prefix}:categories")
    with StateStore.open(cluster_url) as store:
        assert store.list_sessions() == []
        assert {problem.where for problem in store.check()} == {"session s", "notes/n.json"}
        repaired(cluster_url)
        assert store.check() == []
        assert [summary.id for summary in store.list_sessions()] == ["s"]
        assert [summary.id for summary in store.list_sessions(order="id")] == ["s"]
        assert store.list_category("notes") == ["n"]


def _delete(cluster: ValkeyCluster, *keys: str) -> None:
    for key in keys:
        deleted = 0
        for node in cluster.nodes:
            try:
                deleted += node.client.delete(key)  # type: ignore[operator]
            except ResponseError:
                continue  # it is on another node
        assert deleted == 1


def _add(cluster: ValkeyCluster, key: str, entry: str) -> None:
    for node in cluster.nodes:
        with suppress(ResponseError):  # it is on another node
            node.client.zadd(key, {entry: 0})


@pytest.mark.parametrize("meanwhile", ["append", "delete", "create anew"])
def test_who_lists_a_cluster_while_others_write_leaves_no_entries_behind(
    cluster_url: str, prefix: str, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    filled(cluster_url)
    _add(shared_cluster(), f"{prefix}:newest", "0" * PLACE_DIGITS + "s")
    to_add = cluster_listing.entries_to_add
    with StateStore.open(cluster_url) as reader, StateStore.open(cluster_url) as writer:

        def write_and_list(keys: Keys, listed: Listed) -> list[Command]:
            if meanwhile == "append":
                writer.append("s", UserMessage("moves it to the front"))
            else:
                writer.delete_session("s")
            if meanwhile == "create anew":
                writer.save_session(Session.with_id("bob", "s"))
            return to_add(keys, listed)

        monkeypatch.setattr(cluster_listing, "entries_to_add", write_and_list)
        reader.list_sessions()
        assert writer.check() == []
        there = [] if meanwhile == "delete" else ["s"]
        assert [it.id for it in writer.list_sessions()] == there
        assert [it.id for it in writer.list_sessions(order="id")] == there


async def _survey(caller: ServerCaller, prefix: str) -> list[Finding]:
    return [finding async for finding in survey(caller, Keys(prefix), is_durable=False)]


@pytest.mark.parametrize("gone", ["newest", "ids"])
@pytest.mark.parametrize("meanwhile", ["append", "delete", "nothing"])
def test_what_changes_while_it_is_mended_is_listed_where_it_is(
    url: str, prefix: str, gone: str, meanwhile: str
) -> None:
    filled(url)
    with client_of(url) as client:
        client.delete(f"{prefix}:{gone}")

    async def run() -> None:
        caller = ServerCaller(parse("valkey", url.removeprefix("valkey:")))
        await caller.open()
        (finding,) = await _survey(caller, prefix)
        async with AsyncStateStore.open(url) as store:
            if meanwhile == "append":
                await store.append("s", UserMessage("moves it to the front"))
            elif meanwhile == "delete":
                await store.delete_session("s")
            await mend(caller, finding)
            assert await _survey(caller, prefix) == []
            there = [] if meanwhile == "delete" else ["s"]
            assert [it.id for it in await store.list_sessions()] == there
            assert [it.id for it in await store.list_sessions(order="id")] == there
        await caller.close()

    asyncio.run(run())


@pytest.mark.parametrize("ghost", ["session", "document"])
def test_what_comes_back_while_its_entry_is_removed_is_listed(url: str, prefix: str, ghost: str) -> None:
    filled(url)
    with client_of(url) as client:
        if ghost == "session":
            client.zadd(f"{prefix}:ids", {"back": 0})
        else:
            client.zadd(f"{prefix}:d:{{notes}}", {"back\0json": 0})

    async def run() -> None:
        caller = ServerCaller(parse("valkey", url.removeprefix("valkey:")))
        await caller.open()
        (finding,) = await _survey(caller, prefix)
        async with AsyncStateStore.open(url) as store:
            await store.save_session(Session.with_id("alice", "back"))
            await store.save_json("notes", "back", 1)
            await mend(caller, finding)
            assert await _survey(caller, prefix) == []
            assert [it.id for it in await store.list_sessions(order="id")] == ["back", "s"]
            assert await store.list_category("notes") == ["back", "n"]
        await caller.close()

    asyncio.run(run())


def test_many_sessions_are_looked_at_in_few_round_trips(own_server: ValkeyServer) -> None:
    async def run() -> None:
        async with AsyncStateStore.open(own_server.url) as store:
            await asyncio.gather(*(store.save_session(Session.with_id("alice", f"s{n}")) for n in range(1_000)))
            own_server.client.hincrby("statestore:s:{s7}:h", "size", 1)
            before = own_server.client.info("stats")["total_reads_processed"]  # type: ignore[index]
            (problem,) = await store.check()
            assert problem.where == "session s7"
            assert own_server.client.info("stats")["total_reads_processed"] - before < 200  # type: ignore[index]

    asyncio.run(run())


@pytest.mark.parametrize("categories", [1, 50, 1_000])
def test_many_documents_are_looked_at_in_few_round_trips(own_server: ValkeyServer, categories: int) -> None:
    async def run() -> None:
        async with AsyncStateStore.open(own_server.url) as store:
            names = [f"c{number % categories}" for number in range(1_000)]
            await asyncio.gather(*(store.save_json(name, f"n{number}", 1) for number, name in enumerate(names)))
            key = "statestore:d:{c0}"
            own_server.client.hset(f"{key}:json:n0", "body", "{")
            own_server.client.zadd(key, {"ghost\0json": 0, b"\xff": 0})  # type: ignore[dict-item]
            own_server.client.hset(f"{key}:json:lost", "body", "1")
            own_server.client.set(f"{key}:json:foreign", "somebody else's")
            before = own_server.client.info("stats")["total_reads_processed"]  # type: ignore[index]
            found = {problem.where: problem.what for problem in await store.check()}
            assert own_server.client.info("stats")["total_reads_processed"] - before < 200  # type: ignore[index]
            assert found.pop("c0/n0.json").startswith("it is not JSON")
            assert found.pop("c0/foreign.json").startswith("it cannot be read")
            assert found == {
                "c0/ghost.json": "it is listed, and not there",
                "c0/\N{REPLACEMENT CHARACTER}.": "it is listed, and not there",
                "c0/lost.json": "it is missing in listings",
            }

    asyncio.run(run())


def test_large_documents_are_looked_at_a_few_at_a_time_and_wholly(url: str, prefix: str) -> None:
    with StateStore.open(url) as store:
        for number in range(30):
            store.save_bytes(f"c{number % 3}", f"n{number}", b"x" * 150_000)
        store.save_markdown("c0", "bad", "x" * 300_000)
        with client_of(url) as client:
            client.hset(f"{prefix}:d:{{c0}}:md:bad", "body", b"\xff" * 300_000)
        assert [problem.where for problem in store.check()] == ["c0/bad.md"]


def test_long_sessions_are_looked_at_one_by_one_and_wholly(url: str) -> None:
    with StateStore.open(url) as store:
        for number in range(3):
            store.save_session(Session.with_id("alice", f"s{number}"))
            for _ in range(3):
                store.append(f"s{number}", UserMessage("x" * 900_000))
        assert store.check() == []


def test_a_session_that_goes_and_comes_back_during_a_check_is_not_amiss(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(url)
    look_for, is_true = surveying_indexes.look_for, surveying_indexes._is_true  # pyright: ignore[reportPrivateUsage]
    happened: list[str] = []

    def go_before_the_look(keys: Keys, session_id: str) -> Command:
        if not happened:
            happened.append("gone")
            assert other.delete_session("s", trash_hours=1)
        return look_for(keys, session_id)

    def come_back_after_it(*args: Any) -> bool:
        if happened == ["gone"]:
            happened.append("back")
            other.restore_session("s")
            return False
        return is_true(*args)

    with StateStore.open(url) as store, StateStore.open(url) as other:
        monkeypatch.setattr(surveying_indexes, "look_for", go_before_the_look)
        monkeypatch.setattr(surveying_indexes, "_is_true", come_back_after_it)
        assert store.check() == []
    assert happened == ["gone", "back"]
