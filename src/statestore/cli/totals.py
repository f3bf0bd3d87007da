"""Adding up what a store holds: sessions, messages and bytes, of everybody, of each user, project and day."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct, field

from statestore import SessionSummary, StateStore

_PAGE: Final = 2000


class Amount(Struct):
    """How much there is of something; ``messages`` are what user and agent said."""

    sessions: int = 0
    messages: int = 0
    events: int = 0
    bytes: int = 0

    def add(self, summary: SessionSummary) -> None:
        """Count one session more."""
        self.sessions += 1
        self.messages += summary.message_count + summary.response_count
        self.events += summary.event_count
        self.bytes += summary.size


class Totals(Struct):
    """What ``stats`` tells; ``by_day`` goes by the UTC day of a session's last change."""

    total: Amount = field(default_factory=Amount)
    by_user: dict[str, Amount] = {}
    by_project: dict[str, Amount] = {}
    by_day: dict[str, Amount] = {}
    largest: list[SessionSummary] = []
    oldest: list[SessionSummary] = []


def all_sessions(
    store: StateStore, *, user_id: str | None = None, project_id: str | None = None
) -> Iterator[SessionSummary]:
    """Every session, by id, some at a time."""
    cursor: str | None = None
    while page := store.list_sessions(user_id=user_id, project_id=project_id, order="id", limit=_PAGE, after=cursor):
        yield from page
        cursor = page[-1].cursor


def totals_of(summaries: Iterable[SessionSummary], extremes: int) -> Totals:
    """The sums; days in order, users and projects by bytes, and so many of the largest and the oldest."""
    totals = Totals()
    for summary in summaries:
        totals.total.add(summary)
        totals.by_user.setdefault(summary.user_id, Amount()).add(summary)
        if summary.project_id is not None:
            totals.by_project.setdefault(summary.project_id, Amount()).add(summary)
        totals.by_day.setdefault(f"{summary.updated_at:%Y-%m-%d}", Amount()).add(summary)
        totals.largest.append(summary)
        totals.oldest.append(summary)
        if len(totals.largest) >= _PAGE:
            _keep_extremes(totals, extremes)
    _keep_extremes(totals, extremes)
    totals.by_user = _largest_first(totals.by_user)
    totals.by_project = _largest_first(totals.by_project)
    totals.by_day = dict(sorted(totals.by_day.items()))
    return totals


def _keep_extremes(totals: Totals, count: int) -> None:
    totals.largest = heapq.nlargest(count, totals.largest, key=lambda summary: summary.size)
    totals.oldest = heapq.nsmallest(count, totals.oldest, key=lambda summary: summary.updated_at)


def _largest_first(amounts: dict[str, Amount]) -> dict[str, Amount]:
    return dict(sorted(amounts.items(), key=lambda item: (-item[1].bytes, item[0])))
