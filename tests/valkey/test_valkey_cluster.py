"""A cluster: ids that try to break its hash tags, masters that fall and come back, slots that move."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from valkey_load import loaded

from servers.valkey import ValkeyCluster, ValkeyServer, server
from statestore import Session, StateStore, StoreUnavailable, UserMessage

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
    deadline = time.monotonic() + 20
    while node.client.info("replication").get(name) != value:  # type: ignore[union-attr]
        assert time.monotonic() < deadline
        time.sleep(0.02)


@contextmanager
def _replica_of(master: ValkeyServer) -> Iterator[ValkeyServer]:
    with server("--cluster-enabled", "yes", "--cluster-node-timeout", "1000") as replica:
        name = master.client.execute_command("CLUSTER", "MYID").decode()  # type: ignore[union-attr]
        replica.client.execute_command("CLUSTER", "MEET", "127.0.0.1", master.port)
        deadline = time.monotonic() + 20
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
    with StateStore.open(f"{own_cluster.url}&timeout=1") as store:
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
                store.append(session_id, UserMessage("no"))
            with pytest.raises(StoreUnavailable):
                store.load_session(session_id)
        store.append(session_id, UserMessage("after"))
        session = store.load_session(session_id)
        assert session is not None
        assert [message.content for message in session.user_messages] == ["before", "after"]
        assert store.check() == []


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
