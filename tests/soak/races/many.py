"""What each operation does, and what it may answer: documents, and whatever is about several items.

A listing is one moment on every engine but files, which looks at one file after the other: there, each item is as it
was at some moment while it was listed, and no batch comes between.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, combinations
from typing import Any, NamedTuple

from soak.races.checker import DONE
from soak.races.history import Listed, Operation
from soak.races.model import Effects, Rule, has_answered, is_refused, merged, same, value_of, was_done
from soak.races.state import Paper, State


class Look(NamedTuple):
    """How far somebody who lists has come: how many batches there were, and what is left to look at."""

    batches: int
    left: tuple[str, ...]


Glance = Callable[[State, str], State | None]
"""The state with what an answer tells of an item, or ``None`` if the item is not what the answer says."""


def looked(state: State, memory: Look | None, operation: Operation, glance: Glance) -> Effects:
    """Look at all items at once or, between two batches, at one after the other.

    What tells nothing new is looked at as soon as it fits: later it would not fit better.
    """
    look = memory or Look(state.batches, operation.about["items"])
    if state.batches != look.batches:
        return
    if operation.about["is_whole"]:
        known: State | None = state
        for item in look.left:
            known = None if known is None else glance(known, item)
        if known is not None:
            yield known, DONE
        return
    fits = {item: after for item in look.left if (after := glance(state, item)) is not None}
    certain = {item for item, after in fits.items() if after == state}
    unsure = [item for item in fits if item not in certain]
    for choice in chain.from_iterable(combinations(unsure, count) for count in range(len(unsure) + 1)):
        following = state
        for item in choice:
            following = glance(following, item) or following
        left = tuple(item for item in look.left if item not in certain and item not in choice)
        if left != look.left:
            yield following, look._replace(left=left) if left else DONE


def put(state: State, _: Any, operation: Operation) -> Effects:
    """Write a document, perhaps only over a version, or where there is none."""
    following = written(state, operation, operation.about)
    if following is None:
        if is_refused(operation, "document conflict"):
            yield state, DONE
    elif operation.answer is None:
        yield following, DONE
    elif was_done(operation):
        known = following.learnt_of_paper(operation.about["name"], value_of(operation))
        if known is not None:
            yield known, DONE


def written(state: State, operation: Operation, about: dict[str, Any]) -> State | None:
    """The state with a document written; ``None`` if it is not at the version that this is to replace."""
    paper, wanted = state.paper(about["name"]), about["if_version"]
    if wanted == "" and paper is not None:
        return None
    if wanted and (paper is None or paper.version != wanted):
        return None
    return state.with_paper(about["name"], Paper(about["value"], operation.number))


def get(state: State, _: Any, operation: Operation) -> Effects:
    """Read a document and its version."""
    paper, told = state.paper(operation.about["name"]), value_of(operation)
    if paper is None or told is None:
        if has_answered(operation, None) and paper is None:
            yield state, DONE
    elif paper.value == told[0]:
        known = state.learnt_of_paper(operation.about["name"], told[1])
        if known is not None:
            yield known, DONE


def drop(state: State, _: Any, operation: Operation) -> Effects:
    """Remove a document."""
    name = operation.about["name"]
    if has_answered(operation, state.paper(name) is not None):
        yield state.with_paper(name, None), DONE


def clear(state: State, _: Any, operation: Operation) -> Effects:
    """Remove all documents of a category at once."""
    if has_answered(operation, len(state.papers)):
        yield state._replace(papers=()).with_batch(), DONE


def names(state: State, memory: Look | None, operation: Operation) -> Effects:
    """List the documents of a category."""
    told = value_of(operation)

    def glance(now: State, name: str) -> State | None:
        return now if (name in told) == (now.paper(name) is not None) else None

    yield from looked(state, memory, operation, glance)


def listing(state: State, memory: Look | None, operation: Operation) -> Effects:
    """List the sessions of a user."""
    told = {listed.id: listed for listed in value_of(operation)}

    def glance(now: State, session_id: str) -> State | None:
        return _as_listed(now, session_id, told.get(session_id), operation.about["user"])

    yield from looked(state, memory, operation, glance)


def _as_listed(state: State, session_id: str, listed: Listed | None, user: str) -> State | None:
    """The state, if a session is there as it is listed, or is neither."""
    kept = state.session(session_id, user)
    if kept is None or listed is None:
        return state if kept is None and listed is None else None
    header = (kept.user, len(kept.records), kept.title, kept.parent)
    if header != (listed.user, listed.messages, listed.title, listed.parent):
        return None
    return state.learnt(session_id, listed.version, listed.created)


def page(state: State, _: Any, operation: Operation) -> Effects:
    """The first session of a user after an id: one page of a listing by id, where that is one moment."""
    about = operation.about
    found = next((pair for pair in state.sessions if pair[1].user == about["user"] and pair[0] > about["after"]), None)
    told = value_of(operation)
    if found is None or told is None:
        if found is None and told is None:
            yield state, DONE
    elif found[0] == told.id:
        known = _as_listed(state, found[0], told, about["user"])
        if known is not None:
            yield known, DONE


def count(state: State, _: Any, operation: Operation) -> Effects:
    """Count the sessions of a user, where that is one moment."""
    if has_answered(operation, sum(kept.user == operation.about["user"] for _, kept in state.sessions)):
        yield state, DONE


def prune(state: State, memory: Any, operation: Operation) -> Effects:
    """Delete a user's old sessions: they are listed, then deleted together, those that nobody touched.

    Where a listing is not one moment, it may or may not have seen what came while it looked.
    """
    user = operation.about["user"]
    old = {item: kept.by for item, kept in state.sessions if kept.user == user and kept.is_old}
    if memory is None:
        yield state, tuple(old.items())
        return
    going = [item for item, by in memory if (kept := state.session(item)) is not None and kept.by == by]
    came = [] if operation.about["is_whole"] else [item for item in old if item not in going]
    for count in range(len(came) + 1):
        for more in combinations(came, count):
            if has_answered(operation, len(going) + count):
                yield _without(state, [*going, *more]), DONE


def _without(state: State, session_ids: list[str]) -> State:
    following = state.with_batch() if len(session_ids) > 1 else state
    for session_id in session_ids:
        following = following.with_session(session_id, None)
    return following


def batch(state: State, _: Any, operation: Operation) -> Effects:
    """Write several items at once: all or none."""
    about = operation.about
    following: State | None = state
    for one in about["puts"]:
        following = None if following is None else written(following, operation, one)
    saved = about["save"]
    if following is None:
        if is_refused(operation, "document conflict"):
            yield state, DONE
    elif saved is not None and same(state, saved) is None:
        if is_refused(operation, "missing"):
            yield state, DONE
    elif was_done(operation):
        if saved is not None:
            following = merged(following, operation, saved, value_of(operation))
        if following is not None and about["delete"] is not None:
            following = following.with_session(about["delete"], None)
        if following is not None:
            yield following.with_batch(), DONE


MANY_RULES: dict[str, Rule] = {
    rule.__name__: rule for rule in (put, get, drop, clear, names, listing, page, count, prune, batch)
}
