"""From what somebody typed to the session that is meant: an id, or the beginning of one."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from itertools import pairwise
from typing import Final

from statestore import SessionSummary, StateStore
from statestore.cli.failures import NOT_FOUND, WRONG_USAGE, CommandFailed, complain
from statestore.cli.printing import is_terminal
from statestore.names import check_session_id
from statestore.stored import Cursor
from statestore.visible import on_one_line

_SHOWN: Final = 10
_LOOKED_AT: Final = 1000
"""Among how many of the newest sessions the nearest id is looked for."""
_SHORT: Final = 8
_TYPABLE: Final = 20


def find_session(store: StateStore, typed: str) -> SessionSummary:
    """The session with this id, or the only one whose id begins so.

    Ends the command if there is none (it suggests the nearest), or if there are several (it lists them).
    """
    candidates = _meant(store, typed)
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        more = ["…"] if len(candidates) > _SHOWN else []
        raise CommandFailed(
            f"{typed!r} begins the ids of several sessions: type more of it",
            WRONG_USAGE,
            choices=[_described(summary) for summary in candidates[:_SHOWN]] + more,
        )
    raise _not_there(typed, _nearest(store, typed))


def find_session_for_sure(store: StateStore, typed: str) -> SessionSummary:
    """The same, for what writes or goes elsewhere: only on a terminal, where it is told, an id may be cut short.

    The session that a script means may be gone, and its id the beginning of another.
    """
    if not sys.stderr.isatty():
        return find_whole_session(store, typed)
    found = find_session(store, typed)
    if found.id != typed:
        complain(f"{typed} is short for {found.id} ({found.user_id})")
    return found


def find_whole_session(store: StateStore, typed: str) -> SessionSummary:
    """The session with this very id: for what takes something away for good, and may be repeated.

    Ends the command if there is none, and tells which may have been meant.
    """
    candidates = _meant(store, typed)
    if candidates and candidates[0].id == typed:
        return candidates[0]
    raise _not_there(typed, candidates[:_SHOWN] or _nearest(store, typed))


def in_a_command(session_id: str) -> str:
    """An id as it is typed in a shell."""
    return shlex.quote(on_one_line(session_id))


def shown_ids(ids: Sequence[str]) -> list[str]:
    """Ids as a listing shows them: on a terminal, those too long to type are cut to what tells them apart."""
    if not is_terminal():
        return list(ids)
    ordered = sorted(set(ids))
    shared = [_shared(*pair) for pair in pairwise(ordered)]
    needed = {
        session_id: max(_SHORT, before + 1, after + 1)
        for session_id, before, after in zip(ordered, [0, *shared], [*shared, 0], strict=True)
    }
    return [session_id if len(session_id) <= _TYPABLE else session_id[: needed[session_id]] for session_id in ids]


def _shared(one: str, other: str) -> int:
    """How many characters two texts have in common, from their beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _just_before(text: str) -> str:
    """A text that sorts before this one, with hardly any other in between."""
    code = ord(text[-1]) - 1
    if 0xD800 <= code <= 0xDFFF:  # no text holds these
        code = 0xD7FF
    return f"{text[:-1]}{chr(code)}\U0010ffff"


def _meant(store: StateStore, typed: str) -> list[SessionSummary]:
    """The session with this very id, and it alone, or else those whose ids begin so.

    Ends the command if the one that is meant is in the trash: what has this very id there is not the beginning of
    another, so that to delete it again deletes nothing.
    """
    candidates = _beginning_so(store, typed)
    if candidates and candidates[0].id == typed:
        return candidates[:1]
    store.load_session(typed, last=1)  # one that cannot be read is in no listing, and says so here
    thrown = {trashed.session.id for trashed in store.list_trash() if trashed.session.id.startswith(typed)}
    if typed in thrown:
        raise _in_trash(typed)
    if len(thrown) == 1 and not candidates:
        raise _in_trash(*thrown)
    return candidates


def _beginning_so(store: StateStore, typed: str) -> list[SessionSummary]:
    """Sessions whose ids begin so, by their ids: one more than is ever shown."""
    check_session_id(typed)
    cursor = Cursor(0, _just_before(typed)).text
    found = store.list_sessions(order="id", after=cursor, limit=_SHOWN + 1)
    return [summary for summary in found if summary.id.startswith(typed)]


def _not_there(typed: str, near: Sequence[SessionSummary]) -> CommandFailed:
    return CommandFailed(
        f"there is no session {typed!r}" + (": did you mean" if near else ": statestore ls --all lists them"),
        NOT_FOUND,
        choices=[_described(summary) for summary in near],
    )


def _in_trash(session_id: str) -> CommandFailed:
    way_back = f"statestore restore {in_a_command(session_id)}"
    return CommandFailed(f"session {session_id} is in the trash: {way_back} gets it back")


def _nearest(store: StateStore, typed: str) -> list[SessionSummary]:
    """Sessions whose ids begin nearly so."""
    beginnings = {summary.id[: len(typed)]: summary for summary in store.list_sessions(limit=_LOOKED_AT)}
    return [beginnings[match] for match in get_close_matches(typed, beginnings, n=3, cutoff=0.7)]


def _described(summary: SessionSummary) -> str:
    return f"{summary.id}  {summary.title or ''}  ({summary.user_id})"
