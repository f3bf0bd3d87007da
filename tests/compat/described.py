"""A store in neutral words: everything that a reader can learn of it, as JSON, the same on every engine."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

from statestore import NotSupported, StateStore, UserMessage
from statestore.records import body_of

QUERIES = ("ferry", "island", "東京", "turn", '"steht nirgends"', "10:40")


def described(store: StateStore) -> dict[str, Any]:
    """Sessions, their records, their places in listings; documents; the trash."""
    return {
        "newest first": [summary.id for summary in store.list_sessions()],
        "by id": [summary.id for summary in store.list_sessions(order="id")],
        "top level": sorted(summary.id for summary in store.list_sessions(top_level=True)),
        "children of trip": sorted(summary.id for summary in store.list_sessions(parent_session_id="trip")),
        "sessions": {summary.id: _session(store, summary.id) for summary in store.list_sessions(order="id")},
        "documents": {
            f"{info.category}/{info.name}.{info.kind}": _document(store, info.category, info.name, info.kind)
            for category in store.list_categories()
            for info in store.list_documents(category)
        },
        "trash": [
            [trashed.session.id, trashed.session.user_id, trashed.session.title, trashed.deleted_ns, trashed.until_ns]
            for trashed in store.list_trash()
        ],
    }


def _session(store: StateStore, session_id: str) -> dict[str, Any]:
    session = store.load_session(session_id)
    assert session is not None
    (summary,) = (found for found in store.list_sessions(order="id") if found.id == session_id)
    return {
        "user": session.user_id,
        "created": session.created_text,
        "updated": session.updated_text,
        "title": summary.title,
        "project": summary.project_id,
        "parent": summary.parent_session_id,
        "counts": [summary.message_count, summary.response_count, summary.event_count],
        "timeline": [[entry.seq, entry.kind, body_of(entry.record).decode()] for entry in store.timeline(session_id)],
        "metadata": session.metadata,
        "as JSON": store.load_json("sessions", session_id),
    }


def _document(store: StateStore, category: str, name: str, kind: Any) -> str:
    found = store.get_document(category, name, kind=kind)
    assert found is not None
    return found.body.hex() if kind == "bin" else found.body.decode()


def found_words(store: StateStore) -> dict[str, list[Any]] | None:
    """What each query finds; nothing if the engine does not search."""
    try:
        return {query: sorted(_places(store, query)) for query in QUERIES}
    except NotSupported:
        return None


def _places(store: StateStore, query: str) -> list[list[Any]]:
    return [[hit.session_id, hit.seq or 0, hit.kind] for hit in store.search_sessions(query)]


def told_since(store: StateStore, cursor: str) -> dict[str, list[Any]]:
    """What a watch tells of each session after a cursor, up to now, in order."""
    store.change_cursor()  # whatever was not noticed yet comes before it
    (last,) = store.append("trip", UserMessage("the last word"))
    notices = store.watch(after=cursor)
    told: dict[str, list[Any]] = {}
    try:
        for notice in takewhile(lambda notice: (notice.session_id, notice.seq) != ("trip", last), notices):
            told.setdefault(notice.session_id, []).append([notice.what, notice.seq])
    finally:
        notices.close()
    return told
