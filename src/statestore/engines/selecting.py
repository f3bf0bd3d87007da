"""Answering a session query by looking at every summary: for engines without an index that can."""

from __future__ import annotations

from collections.abc import Iterable

from statestore.engine import SessionQuery
from statestore.stored import SessionSummary
from statestore.timestamps import nanoseconds


def has_filters(query: SessionQuery) -> bool:
    """Whether a query asks for some sessions only, its ``after`` and ``limit`` aside."""
    wanted = (query.user_id, query.project_id, query.parent_session_id, query.updated_since_ns)
    return query.top_level or any(value is not None for value in wanted)


def is_selected(summary: SessionSummary, query: SessionQuery) -> bool:
    """Whether a query asks for this session, its ``after`` and ``limit`` aside."""
    return (
        (query.user_id is None or summary.user_id == query.user_id)
        and (query.project_id is None or summary.project_id == query.project_id)
        and (query.parent_session_id is None or summary.parent_session_id == query.parent_session_id)
        and not (query.top_level and summary.parent_session_id is not None)
        and (query.updated_since_ns is None or nanoseconds(summary.updated_text) >= query.updated_since_ns)
    )


def select(summaries: Iterable[SessionSummary], query: SessionQuery) -> list[SessionSummary]:
    """The sessions that a query asks for, in its order, from its place, up to its limit."""
    chosen = [summary for summary in summaries if is_selected(summary, query)]
    if query.order == "id":
        chosen.sort(key=lambda summary: summary.id)
        if query.after is not None:
            after = query.after.id
            chosen = [summary for summary in chosen if summary.id > after]
    else:
        placed = sorted((newest_first_key(summary), summary.id, summary) for summary in chosen)
        if query.after is not None:
            place = (-query.after.updated_ns, query.after.id)
            placed = [item for item in placed if item[:2] > place]
        chosen = [summary for _, _, summary in placed]
    return chosen if query.limit is None else chosen[: query.limit]


def newest_first_key(summary: SessionSummary) -> int:
    """What newest-first listings sort by; ties go by id."""
    return -nanoseconds(summary.updated_text)
