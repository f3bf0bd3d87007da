"""A trash that is far away: what lies in it is read, and removed, many at a time."""

from __future__ import annotations

import pytest

from statestore import PruneConfig, Session, StateStore

THROWN = 120


@pytest.mark.parametrize("where", ["url", "cluster_url"])
def test_a_full_trash_is_listed_and_emptied_in_a_few_round_trips(
    where: str, request: pytest.FixtureRequest, exchanges: list[object]
) -> None:
    with StateStore.open(request.getfixturevalue(where)) as store:
        for number in range(THROWN):
            store.save_session(Session("alice" if number % 2 else "bob", f"s{number}"))
        assert store.prune_sessions(PruneConfig(max_sessions=1, ttl_hours=0, trash_hours=1)) == THROWN - 1
        exchanges.clear()
        assert len(store.list_trash()) == THROWN - 1
        assert len(exchanges) < THROWN / 4
        exchanges.clear()
        assert store.for_user("alice").empty_trash() in (THROWN // 2 - 1, THROWN // 2)
        assert len(exchanges) < THROWN / 4
        assert {thrown.session.user_id for thrown in store.list_trash()} == {"bob"}
