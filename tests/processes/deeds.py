"""Things to do to a store, each of which must happen entirely or not at all; and how to see which it was."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from statestore import AgentResponse, Event, PruneConfig, Session, StateStore, UserMessage

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


def furnish(store: StateStore) -> None:
    """What is there before: sessions with something in them, documents of all kinds."""
    for name in ("first", "second", "doomed", "thrown away"):
        session = Session("alice", name)
        session.add_user_message(f"{name}: question")
        session.add_agent_response(f"{name}: answer")
        session.add_event("tool", {"name": name})
        store.save_session(session)
    store.delete_session("thrown away", trash_hours=24)
    for number in range(3):
        old = Session("bob", f"old-{number}")
        old.updated_at = LONG_AGO
        store.save_session(old)
    store.save_markdown("notes", "kept", "as it was")
    store.save_markdown("notes", "replaced", "old")
    store.save_json("notes", "gone", {"old": True})


def seen(store: StateStore) -> dict[str, Any]:
    """Everything that a store shows of itself, times and versions aside."""
    state: dict[str, Any] = {}
    for summary in store.list_sessions(order="id"):
        session = store.load_session(summary.id)
        assert session is not None
        assert [summary.message_count, summary.response_count, summary.event_count] == [
            len(history) for history in (session.user_messages, session.agent_responses, session.events)
        ]
        records = [(entry.seq, _said(entry.record)) for entry in session.timeline]
        state[f"session {summary.id}"] = (records, session.metadata, session.active_seed_id)
    for category in store.list_categories():
        for info in store.list_documents(category):
            document = store.get_document(category, info.name, kind=info.kind)
            assert document is not None
            state[f"{category}/{info.name}.{info.kind}"] = document.body
    for trashed in store.list_trash():
        state[f"trashed {trashed.session.id}"] = (trashed.session.message_count, trashed.session.title)
    return state


def _said(record: UserMessage | AgentResponse | Event) -> object:
    return record.data if isinstance(record, Event) else record.content


class Deed(NamedTuple):
    """Something to do: what must be ready first is done by ``prepared``, the rest by what that returns."""

    name: str
    prepared: Callable[[StateStore], Callable[[], object]]


def _append(store: StateStore) -> Callable[[], object]:
    return lambda: store.append("first", UserMessage("one more"))


def _append_with_key(store: StateStore) -> Callable[[], object]:
    return lambda: store.append("first", Event("tool", {"z": 1, "a": 2}), AgentResponse("done"), keys=["k1", "k2"])


def _save(store: StateStore) -> Callable[[], object]:
    session = store.load_session("first")
    assert session is not None
    session.add_user_message("one more")
    session.set_metadata("colour", "blue")
    session.set_active_seed("seed-1")
    return lambda: store.save_session(session)


def _create(store: StateStore) -> Callable[[], object]:
    session = Session("alice", "new")
    session.add_user_message("hello")
    return lambda: store.save_session(session)


def _rewind(store: StateStore) -> Callable[[], object]:
    return lambda: store.rewind_session("first", to=1)


def _delete_session(store: StateStore) -> Callable[[], object]:
    return lambda: store.delete_session("doomed")


def _throw_away(store: StateStore) -> Callable[[], object]:
    return lambda: store.delete_session("doomed", trash_hours=1)


def _restore(store: StateStore) -> Callable[[], object]:
    return lambda: [store.restore_session(trashed.session.id) for trashed in store.list_trash()]


def _replace_document(store: StateStore) -> Callable[[], object]:
    return lambda: store.save_markdown("notes", "replaced", "new")


def _new_category(store: StateStore) -> Callable[[], object]:
    return lambda: store.save_json("brand/new", "document", [1, 2, 3])


def _delete_document(store: StateStore) -> Callable[[], object]:
    return lambda: store.delete_file("notes", "gone")


def _delete_category(store: StateStore) -> Callable[[], object]:
    return lambda: store.delete_category("notes")


def _prune(store: StateStore) -> Callable[[], object]:
    return lambda: store.prune_sessions(PruneConfig(max_sessions=0, ttl_hours=24 * 365))


def _batch(store: StateStore) -> Callable[[], object]:
    session = store.load_session("first")
    assert session is not None
    session.add_user_message("one more")
    session.add_event("tool", {"z": 1, "a": 2})
    new = Session("alice", "new")
    new.add_user_message("hello")

    def commit() -> None:
        with store.batch() as batch:
            batch.save_session(session)
            batch.save_session(new)
            batch.delete_session("doomed")
            batch.save_markdown("notes", "replaced", "new")
            batch.save_bytes("brand/new", "document", b"\0\1")
            batch.delete_file("notes", "gone", kind="json")

    return commit


BATCH = Deed("a batch of several files", _batch)
SINGLE = (
    Deed("an append", _append),
    Deed("an append with keys", _append_with_key),
    Deed("a save", _save),
    Deed("a new session", _create),
    Deed("a rewind", _rewind),
    Deed("a session deleted", _delete_session),
    Deed("a document replaced", _replace_document),
    Deed("a document in a new category", _new_category),
    Deed("a document deleted", _delete_document),
)
SEVERAL = (
    BATCH,
    Deed("a category deleted", _delete_category),
    Deed("a prune", _prune),
    Deed("a session thrown away", _throw_away),
    Deed("a session restored", _restore),
)
ALL = (*SINGLE, *SEVERAL)
