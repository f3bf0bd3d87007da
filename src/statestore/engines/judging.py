"""Preconditions, judged the same way by every engine that can look before it writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple, Protocol

from statestore.engine import (
    Batch,
    Change,
    ChangeSession,
    DeleteCategory,
    DeleteDocument,
    DeleteSession,
    Failure,
    PreconditionFailed,
    PutDocument,
    Reason,
    Requires,
)
from statestore.errors import InvalidValue
from statestore.stored import Version

Item = tuple[str, ...]
SingleChange = PutDocument | DeleteDocument | ChangeSession | DeleteSession
"""A change of one item."""


class Stored(Protocol):
    """What is stored under a name: its version and, for a session, its owner and when it was created."""

    @property
    def version(self) -> Version: ...
    @property
    def owner(self) -> str | None: ...
    @property
    def created(self) -> str | None: ...


class Present(NamedTuple):
    """The least that is known of something stored."""

    version: Version
    owner: str | None = None
    created: str | None = None


def item_of(change: Change) -> Item:
    """What a change is about."""
    if isinstance(change, (ChangeSession, DeleteSession)):
        return ("session", change.id)
    if isinstance(change, DeleteCategory):
        return ("category", change.category)
    return ("document", change.category, change.name, change.kind)


def check_batch(batch: Batch) -> None:
    """Refuse a batch that names an item twice, or deletes a category that it also writes into."""
    if len(batch) == 1:
        return
    items = list(map(item_of, batch))
    if len(set(items)) < len(items):
        ((twice, _),) = Counter(items).most_common(1)
        raise InvalidValue(f"a batch names each item once, and this one names {' '.join(twice)} twice")
    doomed = {item[1] for item in items if item[0] == "category"}
    for item in items:
        if item[0] == "document" and item[1] in doomed:
            raise InvalidValue(f"a batch cannot delete the category {item[1]!r} and change a document in it")


def judge(batch: Batch, find: Callable[[SingleChange], Stored | None]) -> None:
    """Raise `PreconditionFailed`, naming every change whose preconditions do not hold."""
    failures: list[Failure] = []
    for index, change in enumerate(batch):
        if isinstance(change, DeleteCategory):
            continue
        reason = _objection(change, change.requires, find(change))
        if reason is not None:
            failures.append(Failure(index, reason))
    if failures:
        raise PreconditionFailed(failures)


def _objection(change: SingleChange, requires: Requires, present: Stored | None) -> Reason | None:
    if present is None:
        must_exist = requires.present or requires.version is not None
        if isinstance(change, ChangeSession) and change.create is None:
            must_exist = True
        return "missing" if must_exist else None
    if requires.owner is not None and present.owner != requires.owner:
        return "owner"
    if requires.created is not None and present.created != requires.created:
        return "missing"
    if requires.absent:
        return "exists"
    if requires.version is not None and present.version != requires.version:
        return "version"
    return None
