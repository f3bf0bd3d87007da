"""A user's sessions are gone after `erase_user`, wherever somebody else puts them meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from hooked import HookedEngine
from statestore import Engine, PruneConfig, Session, SessionConflict, StateStore, StoreUnavailable, UserMessage
from statestore.engine import Batch, Change, DeleteSession, Result
from statestore.engines.memory import MemoryEngine
from statestore.engines.sqlite import SqliteEngine
from statestore.store import erasing, trashing


class Overtaken(HookedEngine):
    """Somebody else does something around the first calls of some methods: named, each with what happens."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.meanwhile: list[tuple[str, Callable[[], object]]] = []

    def __getattr__(self, name: str) -> Any:
        if self.meanwhile and self.meanwhile[0][0] == name:
            self.meanwhile.pop(0)[1]()
        return super().__getattr__(name)


@pytest.fixture
def engine(tmp_path: Path) -> Overtaken:
    return Overtaken(SqliteEngine(tmp_path / "state.db"))


def throw_away(other: StateStore) -> None:
    assert other.delete_session("s", trash_hours=5)


def assert_nothing_is_left(other: StateStore) -> None:
    assert other.list_trash() == []
    assert other.list_sessions() == []


def test_what_is_thrown_away_just_before_its_deletion_is_erased_with_the_trash(
    tmp_path: Path, engine: Overtaken
) -> None:
    with StateStore.open(engine) as store, StateStore.open(tmp_path / "state.db") as other:
        other.get_or_create_session("alice", "s")
        throw_away(other)
        engine.meanwhile.append(("list_documents", lambda: other.restore_session("s")))

        def throw_away_before_the_end(batch: Sequence[Change]) -> None:
            if isinstance(batch[0], DeleteSession) and other.session_exists("s"):
                throw_away(other)

        engine.before = throw_away_before_the_end
        assert store.erase_user("alice") == 1
        assert_nothing_is_left(other)


def test_what_was_out_of_sight_at_both_looks_is_erased(tmp_path: Path, engine: Overtaken) -> None:
    with StateStore.open(engine) as store, StateStore.open(tmp_path / "state.db") as other:
        other.get_or_create_session("alice", "s")
        throw_away(other)
        engine.meanwhile += [
            ("list_documents", lambda: other.restore_session("s")),  # after the sessions were listed
            ("read_changes", lambda: throw_away(other)),  # after the trash was
        ]
        assert store.erase_user("alice") == 1
        assert_nothing_is_left(other)


def test_a_session_that_comes_and_goes_is_not_taken_for_damage(tmp_path: Path, engine: Overtaken) -> None:
    with StateStore.open(engine) as store, StateStore.open(tmp_path / "state.db") as other:
        engine.meanwhile += [
            ("count_sessions", lambda: other.get_or_create_session("alice", "s")),  # made just before they are counted
            ("list_sessions", lambda: other.delete_session("s")),  # and gone when they are listed
        ]
        assert store.erase_user("alice") == 0


def test_other_users_do_not_keep_an_erasure_going(tmp_path: Path, engine: Overtaken) -> None:
    with StateStore.open(engine) as store, StateStore.open(tmp_path / "state.db") as other:
        other.get_or_create_session("alice", "s")
        other.get_or_create_session("bob", "his")
        engine.after = lambda _: other.append("his", UserMessage("on and on"))
        assert store.erase_user("alice") == 1
        assert len(other.timeline("his")) == len(engine.commits)


def test_an_erasure_beside_somebody_who_never_stops_says_so(
    tmp_path: Path, engine: Overtaken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "MAX_ATTEMPTS", 5)
    with StateStore.open(engine) as store, StateStore.open(tmp_path / "state.db") as other:
        engine.meanwhile += [("list_documents", lambda: other.save_session(Session("alice")))] * 9
        with pytest.raises(SessionConflict, match=r"4 sessions of 'alice' were erased, and others make new ones"):
            store.erase_user("alice")
        engine.meanwhile.clear()
        assert store.erase_user("alice") == 1


def test_a_session_that_never_holds_still_is_not_thrown_away(
    tmp_path: Path, engine: Overtaken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trashing, "MAX_ATTEMPTS", 5)
    with StateStore.open(engine) as store, StateStore.open(tmp_path / "state.db") as other:
        other.get_or_create_session("alice", "s")
        engine.before = lambda _: other.append("s", UserMessage("more"))
        with pytest.raises(SessionConflict, match="session s changed 5 times while it was being thrown away"):
            store.delete_session("s", trash_hours=1)
        assert len(other.timeline("s")) == 5
        assert other.list_trash() == []
        engine.before = None
        assert store.delete_session("s", trash_hours=1)


class Apart(HookedEngine):
    """Items live apart, and many batches are made at once."""

    atomic_scope = "item"

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.groups: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return self._commit_group if name == "commit_group" else super().__getattr__(name)

    async def _commit_group(self, batches: Sequence[Batch]) -> list[Result]:
        self.groups.append(len(batches))
        results: list[Result] = []
        for batch in batches:
            try:
                results.append(await self.commit(batch))
            except Exception as error:  # noqa: BLE001 - it is a result
                results.append(error)
        return results


def test_where_items_live_apart_many_sessions_go_at_once() -> None:
    engine = Apart(MemoryEngine())
    with StateStore.open(engine) as store:  # type: ignore[arg-type]
        for number in range(30):
            store.save_session(Session("alice", f"s{number}"))
        touched: list[int] = []

        def touch(batch: Sequence[Change]) -> None:
            if isinstance(batch[0], DeleteSession) and batch[0].id == "s1" and not touched:
                touched.extend(store.append("s1", UserMessage("just now")))

        engine.before = touch
        assert store.prune_sessions(PruneConfig(max_sessions=10, ttl_hours=0)) == 19
        assert store.session_exists("s1")
        assert store.erase_user("alice") == 11
        assert engine.groups == [20, 11]


def test_where_items_live_apart_a_failure_is_told() -> None:
    engine = Apart(MemoryEngine())
    with StateStore.open(engine) as store:  # type: ignore[arg-type]
        for number in range(3):
            store.save_session(Session("alice", f"s{number}"))
        engine.fail_once(after=False)
        with pytest.raises(StoreUnavailable, match="the connection was lost"):
            store.erase_user("alice")
        assert store.erase_user("alice") == 1
