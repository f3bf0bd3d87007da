"""A cluster: ids that try to break its hash tags, masters that fall and come back, slots that move."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import pytest
from valkey_load import loaded

from servers.valkey import ValkeyCluster, ValkeyServer, server
from statestore import Session, StateStore, StoreUnavailable, UserMessage
from statestore.conformance.changes import appended, created, user
from statestore.engine import DeleteSession, GroupCommits
from statestore.engines.valkey.cluster_calling import ClusterCaller
from statestore.engines.valkey.keys import Keys
from statestore.engines.valkey.planning import Planner
from statestore.engines.valkey.scripts import COMMIT
from statestore.engines.valkey.url import parse
from statestore.host import step
from statestore.store.beneath import engine_of

HOSTILE = [
    "{",
    "}",
    "{}",
    "}{",
    "{a}",
    "{a}b",
    "a{b}c",
    "{{a}}",
    "}}{{",
    "%7B",
    "%",
    "{%7D}",
    "a:b",
    "*",
    "?",
    "[a]",
    ":h",
]


@pytest.mark.parametrize("which", ["url", "cluster_url"])
def test_many_batches_of_one_item_cost_few_round_trips(
    request: pytest.FixtureRequest, exchanges: list[object], which: str
) -> None:
    with StateStore.open(request.getfixturevalue(which)) as store:
        engine = cast("GroupCommits", engine_of(store))
        exchanges.clear()
        step(engine.commit_group([[created(f"s{number:03}", user("one"))] for number in range(100)]))
        assert len(exchanges) < 20
        assert store.count_sessions() == 100
        exchanges.clear()
        results = step(engine.commit_group([[DeleteSession(f"s{number:03}")] for number in range(100)]))
        assert len(exchanges) < 20
        assert [outcome.deleted for result in results if isinstance(result, list) for outcome in result] == [1] * 100
        assert (store.count_sessions(), store.check()) == (0, [])


@pytest.mark.parametrize("which", ["url", "cluster_url"])
def test_hostile_ids_names_and_users_are_like_any_other(request: pytest.FixtureRequest, which: str) -> None:
    with StateStore.open(request.getfixturevalue(which)) as store:
        for name in HOSTILE:
            session = Session.with_id(name, name)
            session.add_user_message(name)
            session.set_metadata(name, name)
            store.save_session(session)
            store.append(name, UserMessage("again"), keys=[name])
            store.save_json(name, name, name)
        assert [summary.id for summary in store.list_sessions(order="id")] == sorted(HOSTILE)
        for name in HOSTILE:
            loaded_one = store.load_session(name)
            assert loaded_one is not None
            assert [message.content for message in loaded_one.user_messages] == [name, "again"]
            assert loaded_one.metadata == {name: name}
            assert [summary.id for summary in store.list_sessions(user_id=name)] == [name]
            assert store.load_json(name, name) == name
            assert store.append(name, UserMessage("no"), keys=[name]) == [2]
        assert store.list_categories() == sorted(HOSTILE)
        assert store.check() == []
        for name in HOSTILE:
            assert store.delete_session(name)
        assert store.list_sessions() == []


def test_who_has_what_is_asked_again_by_many_at_once_in_each_event_loop(cluster_url: str) -> None:
    caller = ClusterCaller(parse("valkey", cluster_url.removeprefix("valkey:")))

    async def run() -> None:
        await caller.open()
        assert await asyncio.gather(*(caller.call("GET", f"absent {number}") for number in range(10))) == [None] * 10
        await caller.close()

    for _ in range(3):
        asyncio.run(run())


def test_a_master_that_is_restarted_has_all_that_it_acknowledged(own_cluster: ValkeyCluster) -> None:
    async def run() -> None:
        async with loaded(own_cluster.url, sessions=8) as (load, store):

            async def restart() -> None:
                for node in own_cluster.nodes:
                    await asyncio.to_thread(node.restart)
                    await asyncio.to_thread(own_cluster.wait)
                    await load.progress()

            await load.run(restart)
            await load.assert_exactly_once(store)
            assert not load.unknown, "a restart is waited for"

    asyncio.run(run())


def test_a_promoted_replica_is_found(own_cluster: ValkeyCluster) -> None:
    """The replica takes over by agreement, so that nothing is lost on the way."""
    master = own_cluster.nodes[0]
    with _replica_of(master) as replica:

        async def run() -> None:
            async with loaded(own_cluster.nodes[1].url + "?cluster=true", sessions=8) as (load, store):

                async def take_over() -> None:
                    await asyncio.to_thread(replica.client.execute_command, "CLUSTER", "FAILOVER")
                    await asyncio.to_thread(_wait_for, replica, "role", "master")
                    await load.progress()
                    await asyncio.to_thread(master.kill)
                    await load.progress()

                await load.run(take_over)
                await load.assert_exactly_once(store)

        asyncio.run(run())


def _wait_for(node: ValkeyServer, name: str, value: str) -> None:
    deadline = time.monotonic() + 60
    while node.client.info("replication").get(name) != value:  # type: ignore[union-attr]
        assert time.monotonic() < deadline
        time.sleep(0.02)


@contextmanager
def _replica_of(master: ValkeyServer) -> Iterator[ValkeyServer]:
    with server("--cluster-enabled", "yes", "--cluster-node-timeout", "1000") as replica:
        name = master.client.execute_command("CLUSTER", "MYID").decode()  # type: ignore[union-attr]
        replica.client.execute_command("CLUSTER", "MEET", "127.0.0.1", master.port)
        deadline = time.monotonic() + 60
        while name not in str(replica.client.execute_command("CLUSTER", "NODES")):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        replica.client.execute_command("CLUSTER", "REPLICATE", name)
        _wait_for(replica, "master_link_status", "up")
        yield replica


@contextmanager
def moving(source: ValkeyServer, target: ValkeyServer, slot: int) -> Iterator[None]:
    """While a slot is on its way from one node to another; at the end it is there, with all its keys."""
    ids = {node: node.client.execute_command("CLUSTER", "MYID").decode() for node in (source, target)}  # type: ignore[union-attr]
    target.client.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source])
    source.client.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[target])
    yield
    while keys := source.client.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 10):
        source.client.execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)  # type: ignore[misc]
    for node in (target, source):
        node.client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", ids[target])


@pytest.mark.parametrize("part", ["h", "r"])
def test_a_session_of_which_a_part_was_moved_is_neither_missing_nor_torn(part: str, own_cluster: ValkeyCluster) -> None:
    """Who comes while its keys are on the way is told to wait, and finds everything once they are all there."""
    source, target = own_cluster.nodes[0], own_cluster.nodes[1]
    with StateStore.open(own_cluster.url) as store, StateStore.open(f"{own_cluster.url}&timeout=2") as impatient:
        for number in range(20):
            store.save_session(Session.with_id("alice", f"s{number}"))
            store.append(f"s{number}", UserMessage("before"))
        (key, *_) = sorted(source.client.scan_iter("statestore:s:*:h", count=1000))
        session_id = key.decode().removeprefix("statestore:s:{").removesuffix("}:h")
        slot = source.client.execute_command("CLUSTER", "KEYSLOT", key)
        with moving(source, target, slot):  # type: ignore[arg-type]
            moved = key[:-1] + part.encode()
            source.client.execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", moved)
            with pytest.raises(StoreUnavailable):
                impatient.append(session_id, UserMessage("no"))
            with pytest.raises(StoreUnavailable):
                impatient.load_session(session_id)
        store.append(session_id, UserMessage("after"))
        session = store.load_session(session_id)
        assert session is not None
        assert [message.content for message in session.user_messages] == ["before", "after"]
        assert store.check() == []


def _full_session(store: StateStore, session_id: str) -> None:
    """One that has all the keys a session can have."""
    session = Session.with_id("alice", session_id)
    session.set_metadata("title", "T")
    store.save_session(session)
    store.append(session_id, UserMessage("before"), keys=["k"])


def test_what_is_on_its_way_is_waited_for_and_not_cut_in_two(own_cluster: ValkeyCluster) -> None:
    source, target = own_cluster.nodes[0], own_cluster.nodes[1]
    with StateStore.open(own_cluster.url) as store, StateStore.open(f"{own_cluster.url}&timeout=2") as impatient:
        category, session_id = _names_at(own_cluster, source, "d:"), _names_at(own_cluster, source, "s:")
        _full_session(store, session_id)
        for name in "ab":
            store.save_json(category, name, name)
        slots = [_slot(source, f"statestore:d:{{{category}}}"), _slot(source, f"statestore:s:{{{session_id}}}")]
        with moving(source, target, slots[0]), moving(source, target, slots[1]):
            moved = f"statestore:d:{{{category}}}:json:b"
            source.client.execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", moved)
            for call in (
                lambda: impatient.append(session_id, UserMessage("no")),
                lambda: impatient.delete_session(session_id),
                lambda: impatient.delete_category(category),
                lambda: impatient.list_category(category),
            ):
                with pytest.raises(StoreUnavailable, match="its slots kept moving for 2 s"):
                    call()
        assert {name: store.load_json(category, name) for name in store.list_category(category)} == {"a": "a", "b": "b"}
        assert store.append(session_id, UserMessage("after")) == [2]
        assert store.delete_category(category) == 2
        assert store.check() == []


def _slot(node: ValkeyServer, key: str) -> int:
    return node.client.execute_command("CLUSTER", "KEYSLOT", key)  # type: ignore[return-value]


def _names_at(cluster: ValkeyCluster, node: ValkeyServer, part: str) -> str:
    """A name whose keys of this part of a store are on a node."""
    share = 16384 // len(cluster.nodes)
    first = cluster.nodes.index(node) * share
    names = (f"n{number}" for number in range(10_000))
    return next(name for name in names if _slot(node, f"statestore:{part}{{{name}}}") in range(first, first + share))


def test_a_batch_that_is_sent_again_while_its_slot_moves_is_not_made_twice(own_cluster: ValkeyCluster) -> None:
    source, target = own_cluster.nodes[0], own_cluster.nodes[1]
    session_id = _names_at(own_cluster, source, "s:")
    keys = Keys("statestore")
    with StateStore.open(own_cluster.url) as store:
        _full_session(store, session_id)

    async def run() -> None:
        caller = ClusterCaller(parse("valkey", own_cluster.url.removeprefix("valkey:") + "&timeout=3"))
        await caller.open()
        plan = Planner(keys, ttl=0, changes_kept=0, has_indexes=False).plan([appended(session_id, user("once"))])
        calls = [(plan.keys, plan.arguments)]
        first = await caller.run_each(COMMIT, calls, besides=[])
        with moving(source, target, _slot(source, keys.session(session_id))):
            parts = keys.parts_of(keys.session(session_id))
            source.client.execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *parts)
            await caller.run_each(COMMIT, calls, besides=[])
        assert await caller.run_each(COMMIT, calls, besides=[]) == first
        await caller.close()

    asyncio.run(run())
    with StateStore.open(own_cluster.url) as store:
        session = store.load_session(session_id)
        assert session is not None
        assert [message.content for message in session.user_messages] == ["before", "once"]


def test_slots_that_move_are_followed(own_cluster: ValkeyCluster) -> None:
    """Key by key, while others write: some are here already and some still there."""
    source, target = own_cluster.nodes[0], own_cluster.nodes[1]

    def move_some() -> None:
        slots = {
            source.client.execute_command("CLUSTER", "KEYSLOT", key) for key in source.client.scan_iter(count=1000)
        }
        for slot in sorted(slots)[:12]:  # type: ignore[type-var]
            with moving(source, target, slot):  # type: ignore[arg-type]
                pass

    async def run() -> None:
        async with loaded(own_cluster.url, sessions=8) as (load, store):
            await load.run(lambda: asyncio.to_thread(move_some))
            await load.assert_exactly_once(store)
            assert await store.count_sessions() == 8
            assert await store.check() == []

    asyncio.run(run())
