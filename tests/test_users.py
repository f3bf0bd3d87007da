"""Whose session it is: nobody gets, sees or changes another user's."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from faces import Place
from hooked import CountingEngine, HookedEngine
from statestore import (
    AsyncUserStore,
    InvalidCursor,
    NotSupported,
    PruneConfig,
    Session,
    SessionNotFound,
    StateStore,
    StateStoreError,
    UserMessage,
    UserStore,
    WrongUser,
)
from statestore.engine import DocumentQuery
from statestore.engines.memory import MemoryEngine
from statestore.stored import DocumentInfo


@pytest.fixture
def filled(store: StateStore) -> StateStore:
    """Two sessions of Alice, one of Bob, and one of his in the trash."""
    for user, session_id in (("alice", "a1"), ("alice", "a2"), ("bob", "b1"), ("bob", "thrown away")):
        session = Session(user, session_id)
        session.add_user_message(f"{user}'s")
        store.save_session(session)
    store.delete_session("thrown away", trash_hours=1)
    return store


def bobs(store: StateStore) -> object:
    session = store.load_session("b1")
    return session and (
        session.version,
        session.updated_text,
        len(session.timeline),
        store.for_user("bob").list_trash(),
    )


def test_get_or_create_does_not_hand_over_another_users_session(filled: StateStore) -> None:
    before = bobs(filled)
    with pytest.raises(WrongUser):
        filled.get_or_create_session("alice", "b1")
    assert bobs(filled) == before
    assert filled.get_or_create_session("bob", "b1").user_id == "bob"


def test_a_new_session_with_another_users_id_is_refused(filled: StateStore) -> None:
    with pytest.raises(WrongUser):
        filled.save_session(Session("alice", "b1"))


def test_a_session_whose_id_changed_hands_is_not_found(filled: StateStore) -> None:
    mine = filled.load_session("a1")
    assert mine is not None
    filled.delete_session("a1")
    filled.save_session(Session("bob", "a1"))
    mine.add_user_message("more")
    with pytest.raises(SessionNotFound):
        filled.save_session(mine)
    with pytest.raises(WrongUser):
        filled.save_session(mine, recreate=True)
    assert filled.timeline("a1") == []


def test_a_users_store_sees_the_users_sessions(filled: StateStore) -> None:
    alice = filled.for_user("alice")
    assert alice.user_id == "alice"
    assert {s.id for s in alice.list_sessions()} == {s.id for s in alice.list_sessions(user_id="alice")} == {"a1", "a2"}
    assert alice.count_sessions() == alice.count_sessions(user_id="alice") == 2
    assert alice.session_exists("a1")
    session = alice.load_session("a1")
    assert session is not None
    session.add_user_message("more")
    alice.save_session(session)
    assert alice.append("a1", UserMessage("again")) == [3]
    assert len(alice.timeline("a1")) == 3
    assert len(alice.rewind_session("a1", to=1)) == 2
    assert alice.fork_session("a1", new_id="a3").user_id == "alice"
    assert alice.update_session_with("a1", lambda s: s.set_metadata("k", 1)).metadata == {"k": 1}
    assert alice.delete_session("a1") is True
    assert alice.get_or_create_session("alice", "a4").user_id == "alice"


UNREACHABLE: dict[str, Callable[[UserStore], Any]] = {
    "load_session": lambda alice: alice.load_session("b1"),
    "session_exists": lambda alice: alice.session_exists("b1"),
    "list_sessions": lambda alice: alice.list_sessions(user_id="bob"),
    "count_sessions": lambda alice: alice.count_sessions(user_id="bob"),
    "timeline": lambda alice: alice.timeline("b1"),
    "timeline_as": lambda alice: alice.timeline_as("b1", dict),
    "save_session": lambda alice: alice.save_session(Session("bob", "b1")),
    "update_session": lambda alice: alice.update_session(Session("bob", "b2")),
    "save_session_with_prune": lambda alice: alice.save_session_with_prune(Session("bob", "b3")),
    "get_or_create_session": lambda alice: alice.get_or_create_session("bob", "b1"),
    "update_session_with": lambda alice: alice.update_session_with("b1", lambda s: s.set_metadata("k", 1)),
    "append": lambda alice: alice.append("b1", UserMessage("x")),
    "delete_session": lambda alice: alice.delete_session("b1"),
    "list_trash": lambda alice: alice.list_trash(),
    "restore_session": lambda alice: alice.restore_session("thrown away"),
    "empty_trash": lambda alice: alice.empty_trash(),
    "fork_session": lambda alice: alice.fork_session("b1"),
    "rewind_session": lambda alice: alice.rewind_session("b1", to=0),
    "search_sessions": lambda alice: alice.search_sessions("bob's") + alice.search_sessions("bob*", user_id="bob"),
    "change_cursor": lambda alice: alice.change_cursor() and None,  # a moment, and nothing of what was before it
    "watch": lambda alice: next(alice.watch("b1", after="nonsense")),
    "prune_sessions": lambda alice: alice.prune_sessions(PruneConfig(max_sessions=2, ttl_hours=0)),
}
NOT_IN_MEMORY = {"search_sessions", "change_cursor", "watch"}


def test_every_method_of_a_users_store_is_tried_below() -> None:
    methods = {name for name, _ in inspect.getmembers(UserStore, inspect.isfunction) if not name.startswith("_")}
    assert methods == set(UNREACHABLE)


@pytest.mark.parametrize("method", UNREACHABLE)
def test_a_users_store_cannot_reach_another_users_session(filled: StateStore, place: Place, method: str) -> None:
    before = bobs(filled)
    expected: tuple[type[Exception], ...] = (SessionNotFound, WrongUser)
    if method in NOT_IN_MEMORY:
        expected = (NotSupported,) if place.kind == "memory" else (InvalidCursor,)
    try:
        result = UNREACHABLE[method](filled.for_user("alice"))
    except StateStoreError as error:
        assert isinstance(error, expected)  # noqa: PT017 - either an error, or nothing to be seen
    else:
        assert result in (None, False, [], 0)
    assert bobs(filled) == before
    assert filled.count_sessions(user_id="bob") == 1
    assert filled.count_sessions() == 3


def test_a_users_store_is_told_nothing_of_another_users_session(
    filled: StateStore, other: StateStore, place: Place
) -> None:
    alice = filled.for_user("alice")
    if place.kind == "memory":
        with pytest.raises(NotSupported):
            alice.watch()
        with pytest.raises(NotSupported):
            alice.search_sessions("bob's")
        return
    assert [hit.session_id for hit in filled.search_sessions("bob's")] == ["b1"]
    start = alice.change_cursor()
    other.append("b1", UserMessage("bob's too"))
    other.rewind_session("b1", to=1)
    other.update_session_with("b1", lambda session: session.set_metadata("title", "bob's"))
    other.fork_session("b1", new_id="b2")
    other.delete_session("b1")
    other.append("a1", UserMessage("the one thing that is alice's"))
    notices = alice.watch(after=start)
    first = next(notices)
    notices.close()
    assert (first.session_id, first.what, first.seq) == ("a1", "record", 2)
    assert alice.search_sessions("bob's") == []
    assert {hit.session_id for hit in filled.search_sessions("bob's")} == {"b2"}


@pytest.mark.parametrize("method", ["load_session", "session_exists", "timeline", "append", "delete_session"])
def test_another_users_session_looks_as_if_it_were_not_there(filled: StateStore, method: str) -> None:
    alice = filled.for_user("alice")
    args = (UserMessage("x"),) if method == "append" else ()

    def outcome(session_id: str) -> tuple[type, str]:
        try:
            return (object, repr(getattr(alice, method)(session_id, *args)))
        except StateStoreError as error:
            return (type(error), str(error).replace(session_id, "ID"))

    assert outcome("b1") == outcome("absent")


@pytest.mark.parametrize("users_store", [UserStore, AsyncUserStore])
def test_a_users_store_has_no_documents_and_no_way_to_the_rest(users_store: type) -> None:
    for name in (
        "save_json",
        "load_json",
        "list_category",
        "check",
        "batch",
        "erase_user",
        "backup",
        "compact",
        "for_user",
        "close",
        "open",
    ):
        assert not hasattr(users_store, name)


def test_pruning_ones_own_sessions_counts_ones_own_alone(filled: StateStore) -> None:
    alice = filled.for_user("alice")
    doomed = alice.prune_sessions(PruneConfig(max_sessions=1, ttl_hours=0), dry_run=True)
    assert [candidate.session.id for candidate in doomed] == ["a1"]
    assert alice.prune_sessions(PruneConfig(max_sessions=1, ttl_hours=0)) == 1
    assert {s.id for s in filled.list_sessions()} == {"a2", "b1"}


def test_erasing_a_user_removes_all_of_that_user_and_nothing_else(filled: StateStore) -> None:
    before = bobs(filled)
    assert filled.erase_user("alice") == 2
    assert filled.erase_user("alice") == 0
    assert [s.id for s in filled.list_sessions()] == ["b1"]
    assert bobs(filled) == before


def test_erasing_a_user_whose_sessions_go_one_by_one_lists_them_together() -> None:
    engine = CountingEngine(MemoryEngine(), "item")
    with StateStore.open(engine) as store:
        for number in range(30):
            store.save_session(Session("alice", f"s{number}"))
        engine.asked.clear()
        assert store.erase_user("alice") == 30
        assert engine.asked["list_sessions"] <= 4


def test_erasing_a_user_removes_what_comes_out_of_the_trash_meanwhile() -> None:
    restored: list[Session] = []

    class Restoring(HookedEngine):
        async def list_documents(self, query: DocumentQuery) -> list[DocumentInfo]:
            if not restored:
                restored.append(other.restore_session("thrown away"))
            return await self._engine.list_documents(query)

    memory = MemoryEngine()
    with StateStore.open(memory) as other, StateStore.open(Restoring(memory)) as store:  # type: ignore[arg-type]
        other.save_session(Session("bob", "thrown away"))
        other.delete_session("thrown away", trash_hours=1)
        assert store.erase_user("bob") == 1
        assert not other.session_exists("thrown away")
        assert other.list_trash() == []


def test_users_that_look_alike_are_different_users(store: StateStore) -> None:
    users = ["", "alice", "Alice", " alice", "alice\n", "é", "e\u0301", "%", "a*"]
    for number, user in enumerate(users):
        store.save_session(Session(user, f"s{number}"))
    for number, user in enumerate(users):
        assert [s.id for s in store.list_sessions(user_id=user)] == [f"s{number}"]
        assert [s.id for s in store.for_user(user).list_sessions()] == [f"s{number}"]
