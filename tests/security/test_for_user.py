"""A user's store cannot be led to another user's sessions: not by ids, cursors, queries, keys, objects or options."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from faces import Face
from security.attacks import BOBS, MINE, SECRET, THROWN, Attacker, furnish, methods
from security.recorded import Recorded
from soak.grounds import fresh
from statestore import AsyncUserStore, NotSupported, Session, StateStore, StateStoreError, UserMessage, UserStore
from statestore.opening import engine_for

ENGINES = ("memory", "files", "sqlite", "postgres", "valkey", "valkey-cluster")


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[Recorded]:
    with fresh(request.param) as ground:
        yield Recorded(engine_for(ground.target, durability="relaxed"))


@pytest.fixture
def store(face: Face, engine: Recorded) -> Iterator[StateStore]:
    """Both have sessions, and one of Bob's is in the trash."""
    store = face.open(engine)  # type: ignore[arg-type]
    furnish(store)
    yield store
    store.close()


def everything_of_bob(store: StateStore) -> object:
    bob = store.for_user("bob")
    loaded = store.load_session(BOBS)
    assert loaded is not None
    return (
        [(summary.id, summary.version, summary.title) for summary in store.list_sessions(user_id="bob")],
        (loaded.metadata, loaded.updated_text, store.timeline(BOBS)),
        [(trashed.session.id, trashed.name) for trashed in bob.list_trash()],
    )


def test_no_method_reaches_another_users_session_with_any_argument(store: StateStore, engine: Recorded) -> None:
    before = everything_of_bob(store)
    for method in methods():
        if method == "watch":
            continue  # below: it has no end
        engine.changes.clear()
        tried = 0
        for attempt in Attacker(store).attempts(method):
            tried += 1
            told = _told(lambda attempt=attempt: attempt(store.for_user("alice")))
            assert SECRET not in told, f"{method} tells {told}"
        assert tried
        assert engine.unbound_to("alice") == [], f"{method} sends changes that could reach another user's session"
        assert everything_of_bob(store) == before, f"{method} changed something of Bob's"
        _make_good(store)


def _told(call: Any) -> str:
    """All that a call tells: what it returned, down to what objects hold, or its error."""
    try:
        return _shown(call())
    except StateStoreError as error:
        return f"{type(error)} {error} {error.__cause__} {None if error.__suppress_context__ else error.__context__}"
    except (TypeError, AttributeError) as error:
        return str(error)


def _shown(result: Any) -> str:
    if isinstance(result, Session):
        return repr((result.user_id, result.metadata, result.timeline, result.project_id, result.version))
    if isinstance(result, (list, tuple)):
        return " ".join(_shown(item) for item in result)
    return repr(result) + str(getattr(result, "cursor", ""))


def _make_good(store: StateStore) -> None:
    """Alice has her session again, whatever was done to it."""
    if not store.session_exists(MINE):
        store.save_session(Session("alice", MINE))
    store.append(MINE, UserMessage("mine"))


def test_a_watch_tells_nothing_of_another_user_whatever_cursor_it_begins_with(
    store: StateStore, engine: Recorded
) -> None:
    alice = store.for_user("alice")
    try:
        start = store.change_cursor()
    except NotSupported:
        return
    store.append(BOBS, UserMessage(f"{SECRET} again"))
    store.update_session_with(BOBS, lambda session: session.set_metadata("title", SECRET))
    store.fork_session(BOBS, new_id="b2")
    store.rewind_session(BOBS, to=1)
    store.delete_session("b2")
    store.save_session(Session("alice", "b2"))  # an id that changes hands
    store.delete_session("b2")
    store.save_session(Session("bob", "b2"))
    (last,) = store.append(MINE, UserMessage("the last word"))
    bobs = next(notice for notice in store.for_user("bob").watch(after=start))
    for cursor in (start, bobs.cursor):
        told = []
        notices = alice.watch(after=cursor)
        for notice in notices:
            if (notice.session_id, notice.seq) == (MINE, last):
                break
            told.append((notice.session_id, notice.what, notice.seq))
        notices.close()
        assert {what for session_id, what, _ in told if session_id == "b2"} <= {"session", "deleted"}
        assert not [session_id for session_id, *_ in told if session_id == BOBS]
        assert SECRET not in repr(told)


def test_another_users_session_looks_exactly_as_one_that_is_not_there(store: StateStore) -> None:
    """Only who makes a session with an id of choice learns that the id is taken: ids are the whole store's."""
    alice = store.for_user("alice")
    for method in methods():
        parameters = inspect.signature(getattr(UserStore, method)).parameters
        if "session_id" not in parameters or method in {"get_or_create_session", "watch"}:
            continue
        given = {name: REQUIRED[name] for name, found in parameters.items() if _is_required(name, found)}

        def outcome(session_id: str, method: str = method, given: dict[str, Any] = given) -> str:
            records = [UserMessage("x")] if method == "append" else []
            told = _told(lambda: getattr(alice, method)(session_id, *records, **given))
            return told.replace(session_id, "ID")

        assert outcome(BOBS) == outcome("absent"), method
        assert outcome(THROWN) == outcome("absent"), method


REQUIRED = {"to": 0, "change": lambda session: session.set_metadata("x", 1), "type": dict}


def _is_required(name: str, parameter: inspect.Parameter) -> bool:
    return (
        name not in {"self", "session_id"}
        and parameter.default is inspect.Parameter.empty
        and parameter.kind is not inspect.Parameter.VAR_POSITIONAL
    )


@pytest.mark.parametrize("engine", ["memory", "files", "sqlite"], indirect=True)
def test_an_idempotency_key_of_another_user_means_nothing(store: StateStore) -> None:
    alice = store.for_user("alice")
    before = alice.timeline(MINE)
    (seq,) = alice.append(MINE, UserMessage("x"), keys=[f"{SECRET}-key"])
    assert seq > before[-1].seq
    assert len(alice.timeline(MINE)) == len(before) + 1


@pytest.mark.parametrize("users_store", [UserStore, AsyncUserStore])
def test_a_users_store_shows_nothing_but_what_is_attacked_here(users_store: type) -> None:
    assert sorted(name for name in dir(users_store) if not name.startswith("_")) == sorted([*methods(), "user_id"])


@pytest.mark.parametrize("owned", [UserStore, AsyncUserStore, Session])
def test_what_belongs_to_a_user_cannot_be_given_to_another(owned: type) -> None:
    assert owned.user_id.fset is None
