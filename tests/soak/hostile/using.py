"""A store with something of everything in it, and ways to use it: all that look, and many that change something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from statestore import AgentResponse, Event, PruneConfig, Session, StateStore, UserMessage
from statestore.exchange import export_sessions
from statestore.exchange.formats import FORMATS

VICTIM: Final = "victim"
"""The session that is damaged; every call below is about it, or about everything."""
OTHERS: Final = ("other-1", "other-2")

Call = Callable[[], object]


def furnish(store: StateStore) -> None:
    """The victim, two other sessions, and a document of every kind."""
    for name in (VICTIM, *OTHERS):
        session = Session("alice" if name != OTHERS[1] else "bob", name)
        session.set_metadata("title", f"The talk of {name}")
        session.set_metadata("nested", {"a": [1, 2.5, None]})
        session.add_user_message("Which ferry?")
        session.add_agent_response(AgentResponse("The 10:40.", phase_reached="done", evaluation_passed=True))
        session.add_event("tool_call", {"name": "timetable"})
        store.save_session(session)
        store.append(name, UserMessage("keyed"), keys=["key"])
    store.save_markdown("notes", VICTIM, "# One")
    store.save_json("notes", VICTIM, {"a": [1, 2, 3]})
    store.save_bytes("notes/deep", VICTIM, bytes(range(256)))
    store.save_json("notes", "other", {"kept": True})
    store.delete_session(store.fork_session(OTHERS[0]).id, trash_hours=1000)


def looks(store: StateStore) -> list[Call]:
    """Every way to look. None of them changes anything that users stored."""
    return [
        lambda: store.load_session(VICTIM),
        lambda: store.load_session(VICTIM, last=2),
        lambda: store.timeline(VICTIM, before=4, limit=2),
        lambda: store.session_exists(VICTIM),
        lambda: store.load_json("sessions", VICTIM),
        store.list_sessions,
        lambda: store.list_sessions(user_id="alice", order="id", limit=2),
        lambda: store.list_sessions(project_id="x", top_level=True),
        lambda: [summary.cursor for summary in store.list_sessions(limit=2)],
        store.count_sessions,
        lambda: store.for_user("alice").load_session(VICTIM),
        lambda: store.load_markdown("notes", VICTIM),
        lambda: store.load_json("notes", VICTIM),
        lambda: store.load_bytes("notes/deep", VICTIM),
        lambda: store.list_documents("notes"),
        store.list_categories,
        store.list_trash,
        lambda: store.prune_sessions(PruneConfig(max_sessions=1), dry_run=True),
        store.check,
        *(lambda format=format: b"".join(export_sessions(store, [VICTIM], format=format)) for format in FORMATS),
    ]


def follows(store: StateStore) -> list[Call]:
    """Ways to look that keep notes of their own: searches and watches."""
    return [
        lambda: store.search_sessions('ferry tool* "10 40"'),
        lambda: store.search_sessions("talk", user_id="alice", limit=2),
        store.change_cursor,
    ]


def changes(store: StateStore) -> list[Call]:
    """Ways to change the victim, and nothing else."""

    def save() -> None:
        session = store.load_session(VICTIM)
        if session is not None:
            session.add_user_message("one more")
            session.set_metadata("colour", "blue")
            store.save_session(session)

    def rewrite() -> None:
        session = store.load_session(VICTIM)
        if session is not None and session.user_messages:
            session.user_messages.pop(0)
            store.save_session(session)

    return [
        lambda: store.append(VICTIM, UserMessage("more"), AgentResponse("yes"), Event("tool", 1)),
        lambda: store.append(VICTIM, UserMessage("keyed"), keys=["key"]),
        save,
        rewrite,
        lambda: store.rewind_session(VICTIM, to=2),
        lambda: store.delete_session(store.fork_session(VICTIM, at=2).id),
        lambda: store.get_or_create_session("alice", VICTIM),
        lambda: store.save_json("notes", VICTIM, {"a": 2}),
        lambda: store.delete_file("notes", VICTIM, kind="md"),
        lambda: [store.restore_session(trashed.session.id) for trashed in store.list_trash()],
        lambda: store.delete_session(VICTIM),
        store.empty_trash,
    ]
