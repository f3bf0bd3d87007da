"""A process that watches the whole load from its beginning to its end."""

from __future__ import annotations

from msgspec import Struct

from soak.load.gauges import Gauge, Window
from soak.load.workers import END
from statestore import StateStore


class Seen(Struct):
    """What it has seen."""

    windows: list[Window]
    last: dict[str, int]
    """The number of the last record in each ledger that was not deleted."""
    notices: int


def watch_all(store: StateStore, cursor: str, gauge: Gauge) -> Seen:
    """Follow everything until the end is announced: in each ledger, the records come in order and none is missing."""
    last: dict[str, int] = {}
    notices = 0
    for notice in store.watch(after=cursor):
        notices += 1
        gauge.count()
        if notice.session_id == END:
            break
        if not notice.session_id.startswith("ledger-"):
            continue
        if notice.what == "deleted":
            last.pop(notice.session_id, None)
        elif notice.what == "record":
            assert notice.seq is not None
            before = last.get(notice.session_id)
            assert notice.seq == (before or notice.seq - 1) + 1, f"{notice.session_id}: {notice.seq} after {before}"
            last[notice.session_id] = notice.seq
    return Seen(gauge.windows, last, notices)
