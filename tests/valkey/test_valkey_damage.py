"""One damaged session stands in nobody's way: it is left out, a warning names it, and the others are served."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

import pytest
import redis

from servers.valkey import shared_cluster, shared_url
from statestore import CorruptData, PruneConfig, Session, StateStore, UserMessage

Damage = Callable[[redis.Redis, str], object]


def _replaced(client: redis.Redis, key: str) -> None:
    client.delete(key)
    client.set(key, "somebody else's")


HEADER_DAMAGES: dict[str, Damage] = {
    "another type": lambda client, header: _replaced(client, header),
    "title": lambda client, header: client.hset(header, "title", b"\xff"),
    "user's text": lambda client, header: client.hset(header, "user", b"\xff"),
    "moment": lambda client, header: client.hset(header, "updated", "yesterday"),
    "another's id": lambda client, header: client.hset(header, "id", "other"),
    "no id": lambda client, header: client.hdel(header, "id"),
    "no user": lambda client, header: client.hdel(header, "user"),
    "no place": lambda client, header: client.hdel(header, "place"),
    "no version": lambda client, header: client.hdel(header, "version"),
}


@contextmanager
def _client_for(prefix: str, *, of_cluster: bool) -> Iterator[redis.Redis]:
    """A client of the server that has the session ``bad``."""
    if not of_cluster:
        with redis.Redis.from_url(shared_url().replace("valkey", "redis", 1), protocol=2) as client:
            yield client
        return
    for node in shared_cluster().nodes:
        try:
            assert node.client.exists(f"{prefix}:s:{{bad}}:h")
        except redis.exceptions.ResponseError:
            continue  # it is on another node
        yield node.client
        return


@pytest.mark.parametrize("damage", HEADER_DAMAGES)
@pytest.mark.parametrize("where", ["url", "cluster_url"])
def test_a_damaged_session_is_left_out_of_listings(
    request: pytest.FixtureRequest, prefix: str, where: str, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    with StateStore.open(request.getfixturevalue(where)) as store:
        for name in ("a", "bad", "c", "d"):
            store.save_session(Session.with_id("alice", name))
        with _client_for(prefix, of_cluster=where == "cluster_url") as client:
            HEADER_DAMAGES[damage](client, f"{prefix}:s:{{bad}}:h")
        since = datetime(2020, 1, 1, tzinfo=UTC)
        for _ in range(2):  # the first one takes nothing away that the second one would have to tell
            caplog.clear()
            with caplog.at_level(logging.WARNING, "statestore"):
                assert [it.id for it in store.list_sessions()] == ["d", "c", "a"]
            assert any("session bad is left out" in message for message in caplog.messages)
            assert [it.id for it in store.list_sessions(order="id")] == ["a", "c", "d"]
            assert [it.id for it in store.list_sessions(order="id", updated_since=since)] == ["a", "c", "d"]
            assert [it.id for it in store.list_sessions(limit=3)] == ["d", "c", "a"]
            assert {it.id for it in store.list_sessions(user_id="alice", top_level=True)} == {"a", "c", "d"}
            assert any(problem.where == "session bad" for problem in store.check())
        assert store.count_sessions(top_level=True) >= 3
        assert store.prune_sessions(PruneConfig(max_sessions=1)) == 2
        assert [it.id for it in store.list_sessions()] == ["d"]


WATCH_DAMAGES: dict[str, Damage] = {
    "another type": lambda client, key: _replaced(client, f"{key}:h"),
    "records of another type": lambda client, key: _replaced(client, f"{key}:r"),
    "a record's number": lambda client, key: client.lset(f"{key}:r", 0, "u0x00000000000001{}"),
    "born": lambda client, key: client.hset(f"{key}:h", "born", b"\xff"),
}


@pytest.mark.parametrize("damage", WATCH_DAMAGES)
def test_a_damaged_session_does_not_end_a_watch(
    url: str, prefix: str, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    with StateStore.open(url) as store:
        start = store.change_cursor()
        for name in ("bad", "good"):
            store.save_session(Session.with_id("alice", name))
            store.append(name, UserMessage("hello"))
        with _client_for(prefix, of_cluster=False) as client:
            WATCH_DAMAGES[damage](client, f"{prefix}:s:{{bad}}")
        told: list[str] = []
        with caplog.at_level(logging.WARNING, "statestore"):
            for notice in store.watch(after=start):
                told += [notice.what] if notice.session_id == "good" else []
                if len(told) == 2:
                    break
        assert told == ["session", "record"]
        assert any("session bad" in message for message in caplog.messages)


def test_a_header_that_is_not_utf8_elsewhere_is_still_watched(url: str, prefix: str) -> None:
    with StateStore.open(url) as store:
        start = store.change_cursor()
        store.save_session(Session.with_id("alice", "bad"))
        with _client_for(prefix, of_cluster=False) as client:
            client.hset(f"{prefix}:s:{{bad}}:h", "active_seed_id", b"\xff")
        assert next(iter(store.watch(after=start))).session_id == "bad"


@pytest.mark.parametrize("where", ["url", "cluster_url"])
def test_an_entry_that_is_not_utf8_is_removed(request: pytest.FixtureRequest, prefix: str, where: str) -> None:
    with StateStore.open(request.getfixturevalue(where)) as store:
        store.save_session(Session.with_id("alice", "s"))
        for node in shared_cluster().nodes if where == "cluster_url" else ():
            try:
                node.client.zadd(f"{prefix}:ids", {b"\xff": 0})
            except redis.exceptions.ResponseError:
                continue  # it is on another node
        if where == "url":
            with _client_for(prefix, of_cluster=False) as client:
                client.zadd(f"{prefix}:ids", {b"\xff": 0})
        assert [problem.what for problem in store.check()] == ["a listing has it where it is not"]
        assert [it.id for it in store.list_sessions(order="id")] == ["s"]
        assert store.check() == []


STRAY_DAMAGES = HEADER_DAMAGES | {
    "no header": lambda client, header: client.delete(header),  # as a server does that runs out of memory
}


@pytest.mark.parametrize("damage", STRAY_DAMAGES)
@pytest.mark.parametrize("where", ["url", "cluster_url"])
def test_a_user_is_not_said_to_be_erased_while_a_damaged_session_may_be_theirs(
    request: pytest.FixtureRequest, prefix: str, where: str, damage: str
) -> None:
    with StateStore.open(request.getfixturevalue(where)) as store:
        for name in ("good", "bad"):
            session = Session.with_id("alice", name)
            session.add_user_message("hello")
            store.save_session(session)
        store.save_session(Session.with_id("bob", "his"))
        with _client_for(prefix, of_cluster=where == "cluster_url") as client:
            STRAY_DAMAGES[damage](client, f"{prefix}:s:{{bad}}:h")
            with pytest.raises(CorruptData, match=r"sessions of 'alice' (are damaged|were erased, and 1 may be left)"):
                store.erase_user("alice")
            assert [summary.id for summary in store.list_sessions()] == ["his"]
            client.delete(*(f"{prefix}:s:{{bad}}:{part}" for part in "hrkm"))
        store.check(repair=True)
        assert store.erase_user("alice") == 0
        assert store.erase_user("bob") == 1


@pytest.mark.parametrize("where", ["url", "cluster_url"])
def test_a_damaged_session_that_certainly_is_anothers_keeps_nobody_from_being_erased(
    request: pytest.FixtureRequest, prefix: str, where: str
) -> None:
    with StateStore.open(request.getfixturevalue(where)) as store:
        store.save_session(Session.with_id("alice", "hers"))
        store.save_session(Session.with_id("bob", "bad"))
        with _client_for(prefix, of_cluster=where == "cluster_url") as client:
            HEADER_DAMAGES["moment"](client, f"{prefix}:s:{{bad}}:h")
        assert store.erase_user("alice") == 1


def test_a_session_that_its_writer_did_not_live_to_list_keeps_its_user_from_being_erased(
    prefix: str, cluster_url: str
) -> None:
    with StateStore.open(cluster_url) as store:
        store.save_session(Session.with_id("alice", "lost"))
        for node in shared_cluster().nodes:
            for index in (f"{prefix}:newest", f"{prefix}:newest:alice", f"{prefix}:ids"):
                with suppress(redis.exceptions.ResponseError):  # it is on another node
                    node.client.delete(index)
        with pytest.raises(CorruptData, match=rf"1 may be left, .*: session lost \(the keys {prefix}:s:{{lost}}:\*\)"):
            store.erase_user("alice")
        assert [problem.is_repaired for problem in store.check(repair=True)] == [True]
        assert store.erase_user("alice") == 1
