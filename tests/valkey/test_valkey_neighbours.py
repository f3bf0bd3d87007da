"""What cannot be made takes nothing else down: a slot on its way, a node that hangs, what cannot be planned or sent."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import pytest
from redis.crc import key_slot

from servers.valkey import ValkeyCluster, ValkeyServer, cluster, server, shared_cluster
from statestore import AsyncStateStore, Session, StateStore, StoreUnavailable, UserMessage
from statestore.engine import Change, Outcome, PutDocument
from statestore.engines.valkey import ValkeyEngine, cluster_writing, writing
from statestore.engines.valkey.cluster_engine import ValkeyClusterEngine
from statestore.engines.valkey.keys import Keys
from statestore.engines.valkey.planning import Plan, Planner, outcomes_of
from statestore.engines.valkey.url import parse

UNCOVERED = ("--cluster-require-full-coverage", "no")
"""Who cannot serve all slots serves the others."""


def node_of(found: ValkeyCluster, key: str) -> ValkeyServer:
    """The node that has a key: the slots are shared evenly."""
    share = 16384 // len(found.nodes)
    return found.nodes[min(key_slot(key.encode()) // share, len(found.nodes) - 1)]


def prefix_with(found: ValkeyCluster, at: Sequence[ValkeyServer], **elsewhere: ValkeyServer) -> str:
    """A prefix of which the keys that all sessions share are at some nodes, but for those that are named."""
    for number in range(100_000):
        keys = Keys(f"p{number}")
        shared = {name: getattr(keys, name) for name in ("store", "newest", "ids", "categories")}
        shared["of_alice"] = keys.newest_of("alice")
        if all(node_of(found, key) in ([elsewhere[name]] if name in elsewhere else at) for name, key in shared.items()):
            return keys.prefix
    raise AssertionError


def ids_at(found: ValkeyCluster, prefix: str, node: ValkeyServer, count: int = 1) -> list[str]:
    """Ids of sessions that a node has."""
    ids = (f"s{number}" for number in range(10_000))
    there = (it for it in ids if node_of(found, Keys(prefix).session(it)) is node)
    return [next(there) for _ in range(count)]


@contextmanager
def hanging(*nodes: ValkeyServer) -> Iterator[None]:
    """While some nodes take what they are sent and never answer."""
    for node in nodes:
        node.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for node in nodes:
            node.signal(signal.SIGCONT)


@contextmanager
def on_its_way(source: ValkeyServer, target: ValkeyServer, slot: int) -> Iterator[None]:
    """While a slot is about to be moved, and no key has gone yet."""
    names = {node: node.client.execute_command("CLUSTER", "MYID").decode() for node in (source, target)}  # type: ignore[union-attr]
    target.client.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", names[source])
    source.client.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", names[target])
    yield
    for node in (source, target):
        node.client.execute_command("CLUSTER", "SETSLOT", slot, "STABLE")


def new_session(session_id: str) -> Session:
    session = Session.with_id("alice", session_id)
    session.add_user_message("first")
    return session


def test_a_slot_on_its_way_keeps_no_other_session_from_being_stored_and_listed(own_cluster: ValkeyCluster) -> None:
    source, target = own_cluster.nodes[0], own_cluster.nodes[1]
    moving, *others = ids_at(own_cluster, "statestore", source, 3)
    slot = key_slot(Keys("statestore").session(moving).encode())

    async def run() -> None:
        async with AsyncStateStore.open(f"{own_cluster.url}&timeout=3") as store:
            await store.save_session(new_session(moving))
            with on_its_way(source, target, slot):
                results = await asyncio.gather(
                    store.append(moving, UserMessage("second")),
                    *(store.save_session(new_session(other)) for other in others),
                    return_exceptions=True,
                )
            assert isinstance(results[0], StoreUnavailable)
            assert results[1:] == [None, None]
            assert [summary.id for summary in await store.list_sessions(order="id")] == sorted([moving, *others])
            assert await store.check() == []
            assert await store.erase_user("alice") == 3

    asyncio.run(run())


def test_a_node_that_hangs_fails_its_own_sessions_and_no_others() -> None:
    """Also where a node has forgotten the scripts, and must be sent them again meanwhile."""
    with cluster(options=UNCOVERED) as found:
        *living, dead = found.nodes
        prefix = prefix_with(found, living)
        (lost,) = ids_at(found, prefix, dead)
        others = [ids_at(found, prefix, node)[0] for node in living]

        async def run() -> None:
            async with AsyncStateStore.open(f"{found.url}&prefix={prefix}&timeout=4.5") as store:
                for session_id in (lost, *others):
                    await store.save_session(new_session(session_id))
                living[0].client.execute_command("SCRIPT", "FLUSH")
                with hanging(dead):
                    results = await asyncio.gather(
                        *(store.append(session_id, UserMessage("second")) for session_id in (lost, *others)),
                        return_exceptions=True,
                    )
                assert isinstance(results[0], StoreUnavailable)
                assert results[1:] == [[2], [2]]

        asyncio.run(run())


def test_a_session_is_listed_although_the_categories_of_its_group_cannot_be() -> None:
    with cluster(options=UNCOVERED) as found:
        *living, dead = found.nodes
        prefix = prefix_with(found, living, categories=dead)
        (session_id,) = ids_at(found, prefix, living[0])
        categories = (f"c{number}" for number in range(10_000))
        category = next(it for it in categories if node_of(found, Keys(prefix).category(it)) is living[0])

        async def run() -> None:
            async with AsyncStateStore.open(f"{found.url}&prefix={prefix}&timeout=4.5") as store:
                with hanging(dead):
                    await asyncio.gather(store.save_json(category, "n", 1), store.save_session(new_session(session_id)))
                    assert [summary.id for summary in await store.list_sessions(order="id")] == [session_id]
                    assert [summary.id for summary in await store.list_sessions(user_id="alice")] == [session_id]

        asyncio.run(run())


def test_an_outcome_on_a_node_that_hangs_holds_up_nobody_on_the_others() -> None:
    with cluster(options=UNCOVERED) as found:
        *living, dead = found.nodes
        prefix = prefix_with(found, living)
        (lost,), (other,) = ids_at(found, prefix, dead), ids_at(found, prefix, living[0])

        async def run() -> None:
            async with AsyncStateStore.open(f"{found.url}&prefix={prefix}&timeout=4.5") as store:
                for session_id in (other, lost):
                    await store.save_session(new_session(session_id))
                with hanging(dead):
                    assert await store.append(other, UserMessage("second")) == [2]

        asyncio.run(run())


def test_outcomes_on_a_cluster_are_not_kept_once_they_have_arrived(own_cluster: ValkeyCluster) -> None:
    ids = [ids_at(own_cluster, "statestore", node)[0] for node in own_cluster.nodes]
    with StateStore.open(own_cluster.url) as store:
        for session_id in ids:
            store.save_session(new_session(session_id))
        for _ in range(10):
            for session_id in ids:
                store.append(session_id, UserMessage("more"))
    kept = [key for node in own_cluster.nodes for key in node.client.scan_iter(match="*:t:*", count=1000)]
    assert len(kept) <= len(ids)


@pytest.mark.parametrize("step", ["planned", "read"])
@pytest.mark.parametrize("which", ["url", "cluster_url"])
def test_a_batch_that_cannot_be_planned_or_whose_outcome_cannot_be_read_is_told_of_to_its_own_caller(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, which: str, step: str
) -> None:
    batches = [[PutDocument(f"c{number}", "n", "json", b"1")] for number in range(5)]
    plan = Planner.plan

    def planned(planner: Planner, batch: Sequence[Change]) -> Plan:
        return plan(planner, _harmless(batch))

    def read(batch: Sequence[Change], reply: bytes) -> list[Outcome]:
        return outcomes_of(_harmless(batch), reply)

    def _harmless(batch: Sequence[Change]) -> Sequence[Change]:
        if batch is batches[2]:
            raise ZeroDivisionError
        return batch

    if step == "planned":
        monkeypatch.setattr(Planner, "plan", planned)
    else:
        monkeypatch.setattr(writing, "outcomes_of", read)
        monkeypatch.setattr(cluster_writing, "outcomes_of", read)
    address = parse("valkey", request.getfixturevalue(which).removeprefix("valkey:"))

    async def run() -> None:
        engine = ValkeyClusterEngine(address) if address.is_cluster else ValkeyEngine(address)
        await engine.open()
        try:
            results = await asyncio.gather(*map(engine.commit, batches), return_exceptions=True)
            assert [isinstance(result, list) for result in results] == [True, True, False, True, True]
            assert isinstance(results[2], ZeroDivisionError)
            listed = await engine.list_categories()
            assert set(listed) >= {"c0", "c1", "c3", "c4"}
        finally:
            await engine.close()

    asyncio.run(run())


@pytest.mark.parametrize("is_cluster", [False, True])
def test_a_document_for_which_the_server_ends_the_connection_takes_no_others_along(*, is_cluster: bool) -> None:
    limit = ("--proto-max-bulk-len", "1048576")
    with cluster(1, options=limit) if is_cluster else server(*limit) as found:

        async def run() -> None:
            url = f"{found.url}{'&' if is_cluster else '?'}timeout=3"
            async with AsyncStateStore.open(url) as store:
                sizes = {"a": 1, "b": 1, "long": 5_000_000, "c": 1, "d": 1}
                results = await asyncio.gather(
                    *(store.save_bytes("c", name, bytes(size)) for name, size in sizes.items()), return_exceptions=True
                )
                assert [isinstance(result, StoreUnavailable) for result in results] == [
                    False,
                    False,
                    True,
                    False,
                    False,
                ]
                assert await store.list_category("c") == ["a", "b", "c", "d"]

        asyncio.run(run())


def test_a_cluster_is_found_although_many_that_are_named_first_are_silent(prefix: str) -> None:
    with ExitStack() as stack:
        silent = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(7)]
        ports = [*(it.getsockname()[1] for it in silent), *(node.port for node in shared_cluster().nodes)]
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
        with StateStore.open(f"valkey://{hosts}?cluster=true&prefix={prefix}&timeout=12") as store:
            store.save_session(new_session("s"))
            assert store.session_exists("s")


def test_who_has_which_slots_is_learnt_anew_although_those_asked_first_hang() -> None:
    """A lost connection is the reason to ask."""
    with cluster(5, options=UNCOVERED) as found:
        dead, living = found.nodes[:2], found.nodes[2:]
        prefix = prefix_with(found, living, store=dead[1])
        (other,) = ids_at(found, prefix, living[0])

        async def run() -> None:
            async with AsyncStateStore.open(f"{found.url}&prefix={prefix}&timeout=4.5") as store:
                await store.save_session(new_session(other))
                with hanging(*dead):
                    living[0].client.execute_command("CLIENT", "KILL", "TYPE", "normal")
                    assert await store.append(other, UserMessage("second")) == [2]

        asyncio.run(run())
