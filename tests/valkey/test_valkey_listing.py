"""What a listing costs the server: it looks at what it shows, not at all that there is."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from servers.valkey import ValkeyServer, shared_cluster
from statestore import Session, StateStore, UserMessage
from statestore.engines.valkey import ordering
from statestore.engines.valkey.calling import ServerCaller
from valkey import Valkey

SESSIONS = 60


def headers_read(*servers: ValkeyServer) -> int:
    """How often servers were asked for a session's header, by scripts or directly."""
    return sum(_calls(server, "hmget") for server in servers)


def _calls(server: ValkeyServer, command: str) -> int:
    with Valkey.from_url(server.url) as client:
        found: Any = client.info("commandstats")
    return found.get(f"cmdstat_{command}", {"calls": 0})["calls"]


@pytest.mark.parametrize(
    "query",
    [{}, {"user_id": "alice"}, {"user_id": "alice", "updated_since": datetime(2020, 1, 1, tzinfo=UTC)}],
    ids=["everybody's", "one user's", "one user's since"],
)
def test_a_page_of_the_newest_looks_at_no_more_sessions_than_it_shows(
    own_server: ValkeyServer, query: dict[str, Any]
) -> None:
    with StateStore.open(own_server.url) as store:
        for number in range(SESSIONS):
            store.save_session(Session("alice", f"session-{number}"))
        before = headers_read(own_server)
        assert len(store.list_sessions(**query, limit=5)) == 5
        assert headers_read(own_server) - before == 5


@pytest.mark.parametrize("where", ["own server", "cluster"])
def test_a_users_sessions_by_id_are_looked_at_and_not_those_of_others(
    request: pytest.FixtureRequest, where: str
) -> None:
    if where == "cluster":
        url, servers = request.getfixturevalue("cluster_url"), shared_cluster().nodes
    else:
        server = request.getfixturevalue("own_server")
        url, servers = server.url, [server]
    with StateStore.open(url) as store:
        for number in reversed(range(SESSIONS)):
            store.save_session(Session.with_id("alice" if number % 10 == 0 else "bob", f"s{number:02}"))
        before = headers_read(*servers)
        shown = store.list_sessions(user_id="alice", order="id", limit=2)
        shown += store.list_sessions(user_id="alice", order="id", limit=3, after=shown[-1].cursor)
        assert headers_read(*servers) - before == 5
        shown += store.list_sessions(user_id="alice", order="id", after=shown[-1].cursor)
        assert [it.id for it in shown] == ["s00", "s10", "s20", "s30", "s40", "s50"]


@pytest.mark.parametrize("limit", [1, 7, None])
@pytest.mark.parametrize("where", ["url", "cluster_url"])
def test_users_with_few_and_with_most_sessions_are_listed_by_id_alike(
    request: pytest.FixtureRequest, where: str, limit: int | None
) -> None:
    with StateStore.open(request.getfixturevalue(where)) as store:
        for number in range(SESSIONS):
            store.save_session(Session.with_id("bob" if number in (3, 44) else "alice", f"s{number:02}"))
        for user_id, ids in (
            ("bob", [3, 44]),
            ("alice", [number for number in range(SESSIONS) if number not in (3, 44)]),
            ("nobody", []),
        ):
            found = store.list_sessions(user_id=user_id, order="id", limit=limit)
            while len(found) < len(ids):
                found += store.list_sessions(user_id=user_id, order="id", limit=limit, after=found[-1].cursor)
            assert [it.id for it in found] == [f"s{number:02}" for number in ids]


def test_sessions_that_change_while_they_are_listed_by_id_are_not_missed(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each change moves a session to the front of its user's index, of which a piece is read at a time."""
    monkeypatch.setattr(ordering, "_PAGE", 5)
    call, run = ServerCaller.call, ServerCaller.run
    with StateStore.open(url) as reader, StateStore.open(url) as writer:
        ids = [f"s{number:02}" for number in range(20)]
        for session_id in ids:
            writer.save_session(Session.with_id("alice", session_id))
        changing = iter(ids * 2)

        def change_some() -> None:
            for _ in range(3):
                writer.append(next(changing), UserMessage("moves it to the front"))

        async def change_and_call(caller: ServerCaller, *command: str | bytes | int) -> Any:
            change_some()
            return await call(caller, *command)

        async def change_and_run(caller: ServerCaller, *arguments: Any) -> Any:
            change_some()
            return await run(caller, *arguments)

        monkeypatch.setattr(ServerCaller, "call", change_and_call)
        monkeypatch.setattr(ServerCaller, "run", change_and_run)
        assert [it.id for it in reader.list_sessions(user_id="alice", order="id")] == ids


@pytest.mark.parametrize("prefix_of_names", ["a", "a/b", "z", "é"])
@pytest.mark.parametrize("where", ["url", "cluster_url"])
def test_categories_below_a_prefix_are_named_as_among_all(
    request: pytest.FixtureRequest, where: str, prefix_of_names: str
) -> None:
    names = sorted(["a", "a-b", "a.b", "a/b", "a/b/c", "a/b0", "a0", "ab", "b/a", "é/a", "éa"])
    with StateStore.open(request.getfixturevalue(where)) as store:
        for name in names:
            store.save_json(name, "n", 1)
        assert store.list_categories() == names
        expected = [name for name in names if name == prefix_of_names or name.startswith(f"{prefix_of_names}/")]
        assert store.list_categories(prefix_of_names) == expected


def test_categories_elsewhere_are_not_fetched(own_server: ValkeyServer) -> None:
    with StateStore.open(own_server.url) as store:
        for number in range(SESSIONS):
            store.save_json(f"c{number}/x", "n", 1)
        before = _calls(own_server, "zrange")
        assert store.list_categories("c7") == ["c7/x"]
        assert _calls(own_server, "zrange") == before
