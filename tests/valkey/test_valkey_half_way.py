"""A batch is made wholly or not at all, although somebody else wrote keys of ours, or may not write all of them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import redis

from servers.valkey import ValkeyServer, shared_cluster, shared_url
from statestore import Session, StateStore, UserMessage
from statestore.engine import Change, ChangeSession, DeleteCategory, DeleteSession, NewRecord, NewSession, PutDocument
from statestore.engines.valkey import ValkeyEngine
from statestore.engines.valkey.scripts import COMMIT
from statestore.engines.valkey.url import parse
from statestore.errors import CorruptData, CorruptSession, StateStoreError, StoreUnavailable

NOW = "2026-11-01T00:00:00Z"
BODY = b'{"content":"x","timestamp":"2026-11-01T00:00:00Z"}'
RECORD = NewRecord("user", BODY, 0, key="new")
BATCH = (
    PutDocument("other", "first", "json", b"1"),
    PutDocument("notes", "n", "json", b"2"),
    ChangeSession("t", NOW, create=NewSession("alice", NOW), append=(RECORD,)),
    ChangeSession("s", NOW, truncate_after=1, append=(RECORD,), set_metadata={"title": b'"U"', "more": b"1"}),
)


@pytest.fixture
def client(url: str) -> Iterator[redis.Redis]:
    """A client of the server with a store that has a session and a document."""
    with StateStore.open(url) as store:
        session = Session.with_id("alice", "s")
        session.add_user_message("hello")
        session.set_metadata("title", "T")
        store.save_session(session)
        store.append("s", UserMessage("again"), keys=["k"])
        store.save_json("notes", "n", 1)
    with redis.Redis.from_url(shared_url().replace("valkey", "redis", 1), protocol=2) as found:
        yield found


def contents(client: redis.Redis, prefix: str) -> dict[bytes, Any]:
    """Everything that is stored, but for outcomes that are kept for a while."""
    return {key: client.dump(key) for key in client.scan_iter(match=f"{prefix}:*") if b":t:" not in key}


def commit(url: str, batch: Sequence[Change]) -> None:
    async def run() -> None:
        engine = ValkeyEngine(parse("valkey", url.removeprefix("valkey:")))
        await engine.open()
        try:
            await engine.commit(batch)
        finally:
            await engine.close()

    asyncio.run(run())


FOREIGN = (
    *("newest", "newest:alice", "ids", "categories", "changes", "change"),
    *("s:{s}:h", "s:{s}:r", "s:{s}:k", "s:{s}:m", "s:{t}:h", "d:{notes}", "d:{notes}:json:n", "d:{other}"),
)


@pytest.mark.parametrize("name", FOREIGN)
def test_a_key_that_somebody_else_wrote_is_named_and_nothing_is_written(
    url: str, prefix: str, client: redis.Redis, name: str
) -> None:
    key = f"{prefix}:{name}"
    client.delete(key)
    client.pfadd(key, "x") if name != "change" else client.sadd(key, "x")
    before = contents(client, prefix)
    with pytest.raises(CorruptData, match=re.escape(key)):
        commit(url, BATCH)
    assert contents(client, prefix) == before
    with StateStore.open(url) as store:
        assert store.check(), "and check() tells of it"
    client.delete(key)


@pytest.mark.parametrize("number", ["x", "1.5", "-1", "9007199254740991"])
def test_a_number_of_changes_that_cannot_be_is_refused(url: str, prefix: str, client: redis.Redis, number: str) -> None:
    client.set(f"{prefix}:change", number)
    before = contents(client, prefix)
    with pytest.raises(CorruptData, match=f"{prefix}:change"):
        commit(url, BATCH)
    assert contents(client, prefix) == before


def test_changes_are_numbered_on_although_their_number_was_lost(url: str, prefix: str, client: redis.Redis) -> None:
    last = int(client.get(f"{prefix}:change") or 0)  # type: ignore[arg-type]
    client.delete(f"{prefix}:change")
    commit(url, BATCH)
    numbers = [int(number.partition(b"-")[0]) for number, _ in client.xrange(f"{prefix}:changes")]  # type: ignore[union-attr]
    assert numbers == list(range(1, last + 3))
    assert client.get(f"{prefix}:change") == b"%d" % numbers[-1]


DAMAGES: dict[str, Callable[[redis.Redis, str], object]] = {
    **{
        f"{field} is {value}": lambda client, base, field=field, value=value: client.hset(f"{base}:h", field, value)
        for field in ("next", "users", "agents", "size", "meta", "ttl")
        for value in ("x", "1.5", "-7", "1e300")
    },
    **{
        f"no {field}": lambda client, base, field=field: client.hdel(f"{base}:h", field)
        for field in ("next", "users", "size", "meta", "user", "place", "born", "updated")
    },
    "record": lambda client, base: client.lset(f"{base}:r", 1, "nonsense"),
    "records": lambda client, base: [client.lset(f"{base}:r", place, "") for place in (0, 1)],
    "metadata": lambda client, base: client.hset(f"{base}:m", '"title"', "no colon"),
    "key": lambda client, base: client.zadd(f"{base}:k", {"other": 1.5}),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_session_is_changed_wholly_or_not_at_all_and_can_be_deleted(
    url: str, prefix: str, client: redis.Redis, damage: str
) -> None:
    DAMAGES[damage](client, f"{prefix}:s:{{s}}")
    before = contents(client, prefix)
    refusal = None
    try:
        commit(url, BATCH)
    except StateStoreError as error:
        refusal = error
    if refusal is not None:
        assert isinstance(refusal, CorruptSession)
        assert "session s" in str(refusal)
        assert contents(client, prefix) == before
    else:
        with StateStore.open(url) as store:
            assert store.load_json("notes", "n") == 2
            assert [summary.id for summary in store.list_sessions(order="id")] == ["s", "t"]
    commit(url, [PutDocument("notes", "m", "json", b"1"), DeleteSession("s")])
    assert not list(client.scan_iter(match=f"{prefix}:s:{{s}}:[hrkm]"))
    assert client.zscore(f"{prefix}:ids", "s") is None


def test_a_category_with_an_entry_of_somebody_else_can_be_deleted(url: str, prefix: str, client: redis.Redis) -> None:
    client.zadd(f"{prefix}:d:{{notes}}", {"a": 0, "z": 0})
    commit(url, [DeleteCategory("notes")])
    assert not [key for key in contents(client, prefix) if b":d:{notes}" in key]


COMMANDS = sorted(set(re.findall(r"redis\.p?call\('([A-Z]+)'", COMMIT.text)))


def user(own_server: ValkeyServer, *rules: str) -> str:
    """The URL of a store for somebody with these rights."""
    own_server.client.execute_command("ACL", "SETUSER", "bob", "reset", "on", ">pw", *rules)
    return f"valkey://bob:pw@127.0.0.1:{own_server.port}"


def test_who_may_not_run_a_command_that_writing_needs_is_refused_when_opening(own_server: ValkeyServer) -> None:
    assert {"XADD", "PEXPIRE", "RPUSH", "HSET", "TYPE"} <= set(COMMANDS)
    with StateStore.open(own_server.url) as store:
        store.save_session(Session.with_id("alice", "s"))
    for command in COMMANDS:
        url = user(own_server, "~*", "+@all", f"-{command.lower()}")
        with pytest.raises(StoreUnavailable, match=f"{command}|{command.lower()}"):
            StateStore.open(url)
    with StateStore.open(user(own_server, "~*", "+@all", "-@write"), read_only=True) as store:
        assert store.load_session("s") is not None
    with StateStore.open(user(own_server, "~statestore:*", "+@all", "-@dangerous", "-@admin")) as store:
        store.append("s", UserMessage("who may do what is needed is let in"))


@pytest.mark.parametrize("missing", ["newest", "newest:", "ids", "categories", "change", "changes", "s:", "d:"])
def test_who_may_not_touch_a_key_that_writing_needs_is_refused_when_opening(
    own_server: ValkeyServer, missing: str
) -> None:
    keys = {"store", "newest", "ids", "categories", "change", "changes", "t:*", "newest:*", "s:*", "d:*"}
    gone = f"{missing}*" if missing.endswith(":") else missing
    StateStore.open(user(own_server, "+@all", *(f"~statestore:{key}" for key in keys))).close()
    with pytest.raises(StoreUnavailable, match=f"on keys like 'statestore:{missing}"):
        StateStore.open(user(own_server, "+@all", *(f"~statestore:{key}" for key in keys - {gone})))


def test_who_may_not_on_a_cluster_is_refused_when_opening(cluster_url: str) -> None:
    for node in shared_cluster().nodes:
        node.client.execute_command("ACL", "SETUSER", "bob", "reset", "on", ">pw", "~*", "+@all", "-rpush")
    with pytest.raises(StoreUnavailable, match="RPUSH"):
        StateStore.open(cluster_url.replace("valkey://", "valkey://bob:pw@"))
    for node in shared_cluster().nodes:
        node.client.execute_command("ACL", "DELUSER", "bob")


def test_opening_a_store_that_is_there_writes_nothing(own_server: ValkeyServer) -> None:
    StateStore.open(own_server.url).close()

    def written() -> tuple[Any, Any]:
        size = own_server.client.info("persistence")["aof_current_size"]  # type: ignore[index]
        return size, own_server.client.dbsize()

    before = written()
    StateStore.open(own_server.url).close()
    assert written() == before == (before[0], 1)
