"""What cannot work is refused with an error of ours that says what to do, soon, and without the password."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
import traceback

import pytest

from children import SOURCE
from servers.ports import free_port
from servers.valkey import ValkeyCluster, ValkeyServer, server, shared_cluster, shared_url
from statestore import AsyncStateStore, Session, StateStore, UserMessage
from statestore.errors import InvalidValue, NotSupported, ReadOnlyStore, StateStoreError, StoreUnavailable

SECRET = "open-sesame-17"


def refused(url: str, **options: object) -> str:
    """What a user is told; nowhere in it is the password."""
    with pytest.raises(StateStoreError) as caught:
        StateStore.open(url, **options)  # type: ignore[arg-type]
    whole = "".join(traceback.format_exception(caught.value))
    assert SECRET not in whole
    return str(caught.value)


def test_a_wrong_password_is_refused() -> None:
    with server("--requirepass", "right") as found:
        assert "password" in refused(f"valkey://:{SECRET}@127.0.0.1:{found.port}")
        assert "password" in refused(found.url)
        with StateStore.open(f"redis://:right@127.0.0.1:{found.port}") as store:
            assert "right" not in store.url


def test_a_user_who_may_not_is_told_so(own_server: ValkeyServer) -> None:
    own_server.client.execute_command("ACL", "SETUSER", "bob", "on", f">{SECRET}", "~other:*", "+@all")
    url = f"valkey://bob:{SECRET}@127.0.0.1:{own_server.port}"
    assert "may not" in refused(url)
    assert "password" in refused(url.replace("bob", "eve"))
    with StateStore.open(f"{url}?prefix=other") as store:
        store.save_json("notes", "n", 1)
        assert SECRET not in store.url + repr(store)
        assert "bob@" in store.url


def test_no_server_is_told_at_once() -> None:
    start = time.monotonic()
    assert "cannot be reached" in refused(f"valkey://:{SECRET}@127.0.0.1:{free_port()}?timeout=100")
    assert "cannot be reached" in refused("valkey:///nowhere/at/all.sock?timeout=100")
    assert "cannot be reached" in refused(f"valkey://127.0.0.1:{free_port()}?cluster=true&timeout=100")
    assert time.monotonic() - start < 50


def test_without_the_driver_the_extra_is_named() -> None:
    script = (
        "import sys; sys.modules['redis'] = None; from statestore import StateStore, StoreUnavailable\n"
        "for url in ('valkey://h', 'redis://h', 'valkey://h?cluster=true'):\n"
        "    try: StateStore.open(url)\n"
        "    except StoreUnavailable as error: assert 'statestore[valkey]' in str(error), error\n"
        "    else: raise AssertionError"
    )
    subprocess.run([sys.executable, "-c", script], check=True, env={"PYTHONPATH": str(SOURCE)})


def test_a_newer_layout_is_left_alone(own_server: ValkeyServer) -> None:
    own_server.client.hset("statestore:store", mapping={"version": "2", "identity": "x"})
    assert "version 2" in refused(own_server.url)
    assert own_server.client.dbsize() == 1


def test_what_is_not_there_is_not_made(url: str) -> None:
    assert "create=False" in refused(url, create=False)
    assert "read_only=True" in refused(url, read_only=True)


def test_a_store_opened_for_reading_writes_nothing(url: str) -> None:
    with StateStore.open(url) as store:
        store.save_session(Session.with_id("alice", "s"))
    with StateStore.open(url, read_only=True) as store:
        assert [summary.id for summary in store.list_sessions()] == ["s"]
        with pytest.raises(ReadOnlyStore):
            store.append("s", UserMessage("no"))


def test_a_replica_takes_no_writes_and_can_be_read(own_server: ValkeyServer) -> None:
    with StateStore.open(own_server.url) as store:
        store.save_session(Session.with_id("alice", "s"))
    with server("--replicaof", f"127.0.0.1 {own_server.port}") as replica:
        deadline = time.monotonic() + 60
        while not replica.client.exists("statestore:store"):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert "replica" in refused(replica.url)
        with StateStore.open(replica.url, read_only=True) as store:
            assert [summary.id for summary in store.list_sessions()] == ["s"]
            assert store.count_sessions() == 1


def test_a_server_that_stops_answering_is_given_up(own_server: ValkeyServer) -> None:
    with StateStore.open(f"{own_server.url}?timeout=3") as store:
        store.save_session(Session.with_id("alice", "s"))
        own_server.signal(signal.SIGSTOP)
        try:
            start = time.monotonic()
            with pytest.raises(StoreUnavailable, match="has not answered for 3 s"):
                store.append("s", UserMessage("unheard"))
            with pytest.raises(StoreUnavailable, match="has not answered for 3 s"):
                store.load_session("s")
            assert time.monotonic() - start < 30
        finally:
            own_server.signal(signal.SIGCONT)
        store.append("s", UserMessage("heard"))
        session = store.load_session("s")
        assert session is not None
        assert [m.content for m in session.user_messages][-1] == "heard"
        assert len(session.user_messages) <= 2, "what was given up happened once, or not at all"


def test_a_server_that_never_answered_is_given_up_after_the_whole_time(own_server: ValkeyServer) -> None:
    own_server.signal(signal.SIGSTOP)
    try:
        start = time.monotonic()
        assert "has not answered for 1.5 s" in refused(f"{own_server.url}?timeout=1.5")
        assert 1 < time.monotonic() - start < 15
    finally:
        own_server.signal(signal.SIGCONT)


def test_a_full_memory_leaves_nothing_half_written(own_server: ValkeyServer) -> None:
    with StateStore.open(own_server.url) as store:
        store.save_session(Session.with_id("alice", "s"))
        store.save_json("notes", "n", 1)
        before = store.list_sessions()
        own_server.client.config_set("maxmemory-policy", "noeviction")
        own_server.client.config_set("maxmemory", "1mb")
        other = Session.with_id("alice", "t")
        other.add_user_message("no room")
        other.set_metadata("title", "no room")
        with pytest.raises(StoreUnavailable, match="memory is full"):
            store.save_session(other)
        with pytest.raises(StoreUnavailable, match="memory is full"):
            store.append("s", UserMessage("no room"))
        with pytest.raises(StoreUnavailable, match="memory is full"):
            store.save_json("notes", "m", "no room")
        assert store.list_sessions() == before
        assert store.load_session("t") is None
        assert store.list_category("notes") == ["n"]
        assert store.delete_session("s"), "what makes room is allowed"
        own_server.client.config_set("maxmemory", "0")
        assert store.check() == []
        store.save_session(other)


def test_a_plain_url_of_a_cluster_is_noticed() -> None:
    assert "cluster=true" in refused(shared_cluster().nodes[0].url)


def test_a_cluster_url_of_a_single_server_is_noticed() -> None:
    assert "not a cluster" in refused(f"{shared_url()}?cluster=true")


def test_a_cluster_that_is_down_says_so(own_cluster: ValkeyCluster) -> None:
    left, *others = own_cluster.nodes
    with StateStore.open(f"{own_cluster.url}&timeout=2") as store:
        store.save_json("notes", "n", 1)
        left.client.config_set("cluster-node-timeout", 1000)
        for node in others:
            node.kill()
        deadline = time.monotonic() + 60
        while b"cluster_state:fail" not in left.client.execute_command("CLUSTER", "INFO"):  # type: ignore[operator]
            assert time.monotonic() < deadline
            time.sleep(0.01)
        start = time.monotonic()
        with pytest.raises(StoreUnavailable, match=r"the cluster is down|cannot be reached"):
            store.save_json("notes", "m", 1)
        assert time.monotonic() - start < 20


def test_a_batch_of_several_items_is_refused_on_a_cluster(cluster_url: str) -> None:
    with (
        StateStore.open(cluster_url) as store,
        pytest.raises(NotSupported, match="one by one"),
        store.batch() as batch,
    ):
        batch.save_json("notes", "a", 1)
        batch.save_json("notes", "b", 1)


@pytest.mark.parametrize(
    ("rest", "error"),
    [
        ("?prefxi=x", InvalidValue),
        ("?prefix={x}", InvalidValue),
        ("?prefix=", InvalidValue),
        ("?ttl=soon", InvalidValue),
        ("?ttl=-1", InvalidValue),
        ("?ttl=nan", InvalidValue),
        ("?timeout=0", InvalidValue),
        ("?cluster=maybe", InvalidValue),
        ("/zero", InvalidValue),
        ("/1?cluster=true", InvalidValue),
        (",127.0.0.1:1", InvalidValue),
    ],
)
def test_options_that_make_no_sense_are_refused(rest: str, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        StateStore.open(f"valkey://:{SECRET}@127.0.0.1:1{rest}")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "rest",
    [
        "//:open?sesame@127.0.0.1:1",
        "//bob:open?prefix=sesame@127.0.0.1:1",
        "//bob:1?timeout=sesame@127.0.0.1:1",
        "//bob:open/ses?ame@127.0.0.1:1",
        "//bob:sesame",
    ],
)
def test_a_password_that_is_taken_for_something_else_is_not_quoted(rest: str) -> None:
    with pytest.raises(InvalidValue, match="password") as caught:
        StateStore.open(f"valkey:{rest}")
    whole = "".join(traceback.format_exception_only(caught.value))
    assert not any(part in whole for part in ("open", "ses", "ame"))
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "rest",
    ["//h?prefix=\ud800", "//\ud800", "//h:1,\udfff:2?cluster=true", "//bob\ud800:x@h", "//:\ud800@h", "///\ud800"],
)
def test_half_a_character_in_a_url_is_refused(rest: str) -> None:
    with pytest.raises(InvalidValue, match="lone surrogate"):
        StateStore.open(f"valkey:{rest}")


def test_an_url_without_a_host_is_refused() -> None:
    for url in ("valkey:", "valkey://", "redis:localhost"):
        assert "needs a host" in refused(url)


def test_a_closed_store_says_so(url: str) -> None:
    async def run() -> None:
        store = await AsyncStateStore.open(url)
        await store.save_json("notes", "n", 1)
        await store.close()
        with pytest.raises(StateStoreError, match="closed"):
            await store.load_json("notes", "n")

    asyncio.run(run())
