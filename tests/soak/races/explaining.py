"""From noted operations to the checker: which items each is about, and the rules that say what it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from soak.races.checker import Interval, explain
from soak.races.history import Operation, apart
from soak.races.many import MANY_RULES
from soak.races.model import RULES
from soak.races.state import State

ALL_RULES = RULES | MANY_RULES
STEPWISE = ("fork", "restore", "prune", "listing", "names")
"""What may take effect at several moments."""
READS = ("load", "timeline", "exists", "get", "names", "listing", "page", "count")


def explain_history(operations: Sequence[Operation]) -> list[str]:
    """An order for each part of a history that has no item in common with the others, one after the other."""
    told: list[str] = []
    noted = [operation for operation in operations if operation.answer is not None or operation.name not in READS]
    for part in apart(noted, items_of):
        told += explain([_interval(operation) for operation in part], State())
    return told


def items_of(operation: Operation) -> tuple[str, ...]:
    """What an operation is about: ids of sessions and names of documents."""
    about: dict[str, Any] = operation.about
    single = [about[name] for name in ("id", "new", "name", "delete") if about.get(name) is not None]
    saved = [about["save"]["id"]] if about.get("save") else []
    return (*single, *saved, *(one["name"] for one in about.get("puts", ())), *about.get("items", ()))


def _interval(operation: Operation) -> Interval:
    rule = ALL_RULES[operation.name]

    def steps(state: Any, memory: Any) -> Any:
        return rule(state, memory, operation)

    has_one_step = operation.name not in STEPWISE
    lane = operation.lane if operation.answer is not None else operation.number  # its worker may have gone on
    return Interval(lane, operation.start, operation.end, steps, str(operation), has_one_step)
