"""What a listing costs the server: it looks at the sessions that it shows, not at all that the user has."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from servers.valkey import ValkeyServer
from statestore import Session, StateStore
from valkey import Valkey

SESSIONS = 60


def headers_read(server: ValkeyServer) -> int:
    """How often the server was asked for a session's header, by scripts or directly."""
    with Valkey.from_url(server.url) as client:
        found: Any = client.info("commandstats")
    return found.get("cmdstat_hmget", {"calls": 0})["calls"]


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
