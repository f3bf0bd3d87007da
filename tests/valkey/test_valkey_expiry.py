"""Sessions with a time to live: gone from everywhere when nobody changed them for so long."""

from __future__ import annotations

import asyncio
import time
from typing import Literal, cast

import pytest

from servers.valkey import ValkeyServer, shared_cluster
from statestore import AsyncStateStore, Session, StateStore, UserMessage
from statestore.conformance.changes import created
from statestore.engine import GroupCommits
from statestore.engines.valkey.calling import ServerCaller
from statestore.engines.valkey.cluster_calling import ClusterCaller
from statestore.engines.valkey.keys import Keys
from statestore.engines.valkey.mending import mend
from statestore.engines.valkey.surveying_indexes import survey_indexes
from statestore.engines.valkey.url import parse
from statestore.host import step
from statestore.store.beneath import engine_of

TTL = 0.6
LONG = 3600
"""A time to live that no test waits for: it is over when a test says so."""


@pytest.fixture(params=["url", "cluster_url"])
def place(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue(request.param)


def session(session_id: str) -> Session:
    made = Session.with_id("alice", session_id)
    made.add_user_message("hello")
    made.set_metadata("title", "T")
    return made


def wait_until_gone(store: StateStore, session_id: str) -> None:
    deadline = time.monotonic() + 60
    while store.session_exists(session_id):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def live_on_for(url: str, session_id: str, milliseconds: int) -> list[int]:
    """Give all keys of a session so much time; what each of them had left."""

    async def run() -> list[int]:
        address = parse("valkey", url.removeprefix("valkey:"))
        caller = ClusterCaller(address) if address.is_cluster else ServerCaller(address)
        await caller.open()
        keys = Keys(address.prefix)
        parts = [part for part in keys.parts_of(keys.session(session_id)) if await caller.call("EXISTS", part)]
        left = [await caller.call("PTTL", part) for part in parts]
        for part in parts:
            await caller.call("PEXPIRE", part, milliseconds)
        await caller.close()
        return left

    return asyncio.run(run())


def be_idle(url: str, session_id: str, store: StateStore) -> None:
    """Let a session's time pass, which is a long one."""
    assert all(0 < left <= LONG * 1000 for left in live_on_for(url, session_id, 1))
    wait_until_gone(store, session_id)


def test_an_idle_session_is_gone_from_everywhere(place: str) -> None:
    with StateStore.open(f"{place}&ttl={LONG}") as store, StateStore.open(place) as other:
        other.save_session(session("for ever"))
        store.save_session(session("short"))
        store.append("short", UserMessage("again"), keys=["k"])
        assert [summary.id for summary in other.list_sessions(order="id")] == ["for ever", "short"]
        assert other.count_sessions() == 2
        be_idle(place, "short", store)
        for each in (store, other):
            assert each.load_session("short") is None
            assert each.count_sessions() == each.count_sessions(user_id="alice") == 1
            assert [summary.id for summary in each.list_sessions()] == ["for ever"]
            assert [summary.id for summary in each.list_sessions(user_id="alice")] == ["for ever"]
            assert [summary.id for summary in each.list_sessions(order="id")] == ["for ever"]
            assert each.check() == []


def test_sessions_expire_in_a_store_that_was_made_without(place: str) -> None:
    with StateStore.open(place) as other:
        other.save_session(session("for ever"))
        with StateStore.open(f"{place}&ttl={TTL}", create=False) as store:
            store.save_session(session("short"))
            wait_until_gone(store, "short")
        assert other.count_sessions() == other.count_sessions(user_id="alice") == 1
        assert other.check() == []


def test_a_session_that_is_changed_lives_on(url: str) -> None:
    with StateStore.open(f"{url}&ttl={LONG}") as store, StateStore.open(url) as other:
        store.save_session(session("s"))
        for number in range(3):
            live_on_for(url, "s", LONG * 500)
            # A store without a time to live keeps to the session's own.
            other.append("s", UserMessage("still here"), keys=[f"{number}"])
        left = live_on_for(url, "s", LONG * 500)
        assert len(left) == 4
        assert all(LONG * 500 < of_part <= LONG * 1000 for of_part in left)
        assert store.session_exists("s")
        be_idle(url, "s", other)


def test_a_session_with_an_expired_ones_id_begins_anew(place: str) -> None:
    with StateStore.open(f"{place}&ttl={LONG}") as store:
        store.save_session(session("s"))
        store.append("s", UserMessage("old"), keys=["k"])
        be_idle(place, "s", store)
        store.save_session(Session.with_id("bob", "s"))
        assert store.append("s", UserMessage("new"), keys=["k"]) == [1]
        loaded = store.load_session("s")
        assert loaded is not None
        assert ([m.content for m in loaded.user_messages], loaded.metadata) == (["new"], {})
        assert store.count_sessions() == store.count_sessions(user_id="bob") == 1
        assert store.count_sessions(user_id="alice") == 0


def test_what_has_expired_leaves_no_keys(own_server: ValkeyServer) -> None:
    with StateStore.open(f"{own_server.url}?ttl={LONG}") as store:
        store.save_session(session("s"))
        store.append("s", UserMessage("again"), keys=["k"])
        be_idle(own_server.url, "s", store)
        assert store.list_sessions() == store.list_sessions(order="id") == store.list_sessions(user_id="alice") == []
    left = {key.decode() for key in own_server.client.scan_iter() if b":t:" not in key}  # type: ignore[union-attr]
    assert left == {"statestore:store", "statestore:change", "statestore:changes"}


def _entries(server: ValkeyServer) -> dict[str, int]:
    """How many entries each index has."""
    client = server.client
    keys = ["statestore:newest", "statestore:ids", *(key.decode() for key in client.scan_iter("statestore:newest:*"))]  # type: ignore[union-attr]
    return {key: client.zcard(key) for key in keys if client.zcard(key)}  # type: ignore[misc]


def test_a_listing_clears_expired_sessions_out_of_other_indexes(own_server: ValkeyServer) -> None:
    with StateStore.open(f"{own_server.url}?ttl={TTL}") as store:
        store.save_session(session("s"))
        wait_until_gone(store, "s")
        assert store.list_sessions() == []
        assert _entries(own_server) == {"statestore:newest:alice": 1}
        for is_empty in (
            lambda: store.count_sessions(user_id="alice") == 0,
            lambda: store.list_sessions(user_id="alice", order="id") == [],
        ):
            store.save_session(session("s"))
            wait_until_gone(store, "s")
            assert is_empty()
            assert _entries(own_server) == {}


@pytest.mark.parametrize("order", ["updated", "id"])
@pytest.mark.parametrize("user_id", [None, "alice"])
def test_a_page_behind_many_expired_sessions_takes_few_calls(
    place: str, exchanges: list[object], order: Literal["updated", "id"], user_id: str | None
) -> None:
    with StateStore.open(place) as lasting, StateStore.open(f"{place}&ttl={TTL}") as store:
        lasting.save_session(session("z"))
        newer = [[created(f"s{number:03}", user_id="alice", at="2999-01-01T00:00:00Z")] for number in range(150)]
        step(cast("GroupCommits", engine_of(store)).commit_group(newer))
        for number in range(150):  # a cluster writes them in any order
            wait_until_gone(store, f"s{number:03}")
        with StateStore.open(place, read_only=True) as reader:
            exchanges.clear()
            found = reader.list_sessions(limit=1, order=order, user_id=user_id)
            assert [summary.id for summary in found] == ["z"]
            assert len(exchanges) < 25, "which leaves the entries of what is gone as they are"
        exchanges.clear()
        assert [summary.id for summary in lasting.list_sessions(limit=1, order=order, user_id=user_id)] == ["z"]
        assert len(exchanges) < 25
        exchanges.clear()
        assert [summary.id for summary in lasting.list_sessions(limit=1, order=order, user_id=user_id)] == ["z"]
        assert len(exchanges) <= 5, "for now they are gone"


def test_a_repair_clears_expired_sessions_out_of_all_indexes(own_server: ValkeyServer) -> None:
    with StateStore.open(f"{own_server.url}?ttl={TTL}") as store, StateStore.open(own_server.url) as other:
        other.save_session(Session.with_id("bob", "for ever"))
        for number in range(5):
            store.save_session(Session.with_id(f"user{number}", f"s{number}"))
        wait_until_gone(store, "s4")
        assert store.check() == store.check(repair=True) == []
        assert _entries(own_server) == {"statestore:newest": 1, "statestore:ids": 1, "statestore:newest:bob": 1}
        assert [summary.id for summary in store.list_sessions()] == ["for ever"]


def test_a_repair_clears_expired_sessions_of_a_cluster(cluster_url: str, prefix: str) -> None:
    with StateStore.open(f"{cluster_url}&ttl={TTL}") as store:
        store.save_session(session("s"))
        wait_until_gone(store, "s")
        store.check(repair=True)
    held = {key.decode() for node in shared_cluster().nodes for key in node.client.scan_iter(f"{prefix}:*")}  # type: ignore[union-attr]
    assert {key for key in held if ":t:" not in key} == {f"{prefix}:store"}


def test_what_comes_back_while_expired_entries_are_cleared_is_listed(url: str, prefix: str) -> None:
    with StateStore.open(f"{url}&ttl={TTL}") as store:
        store.save_session(session("s"))
        wait_until_gone(store, "s")

    async def run() -> None:
        caller = ServerCaller(parse("valkey", url.removeprefix("valkey:")))
        await caller.open()
        async with AsyncStateStore.open(url) as other:
            found = [finding async for finding in survey_indexes(caller, Keys(prefix))]
            assert [finding.problem for finding in found] == [None] * 3
            await other.save_session(session("s"))
            for finding in found:
                assert await mend(caller, finding) is None
            assert [it.id for it in await other.list_sessions()] == ["s"]
            assert [it.id for it in await other.list_sessions(order="id")] == ["s"]
            assert [it.id for it in await other.list_sessions(user_id="alice")] == ["s"]
        await caller.close()

    asyncio.run(run())
