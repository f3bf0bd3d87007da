"""Those who come after: a process that opens the store after a kill, looks at everything, and goes on at once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from children import Tell
from processes.contents import leftovers
from soak.grounds import Ground
from soak.kills.pictures import SHARED, SPREAD, SPREAD_DOCUMENT, category_of, observed, words
from soak.kills.strands import Strand
from soak.kills.writers import Manner
from statestore import StateStore

NOT_THERE, HALF_WAY, THERE = "is not there", "was half-way", "is there"
RESUMED = 8
"""For how many of a dead writer's strands somebody else goes on at once; for those that were half-way, always."""

SQLITE_AT_REST = {"state.db", "state.db-gate", "state.db-turn"}


def look(manner: Manner, dead: Sequence[Strand], tell: Tell) -> None:
    """Open the store while others may be writing: all that the dead were told is there, and their work goes on.

    Tells of each strand what became of the deed that was under way, and whether it is done by now.
    """
    with StateStore.open(manner.target) as store:
        if not dead[0].is_atomic:
            _check_listed(store, dead)
            store.check(repair=True)  # what a dying writer stored and did not list
        by_name = {strand.name: strand for strand in dead}
        seen = observed(store, by_name)
        found = {strand.name: _found(strand, seen[strand.name]) for strand in dead}
        open_ends = [strand for strand in dead[RESUMED:] if found[strand.name] == HALF_WAY]
        resumed = [strand for strand in (*dead[:RESUMED], *open_ends) if _resumes(store, strand, found[strand.name])]
        for name, after in observed(store, [strand.name for strand in resumed]).items():
            strand = by_name[name]
            assert after == strand.deed().makes.shown(), f"done again, {found[name]}: {_told(strand, after)}"
        for strand in dead:
            is_done = found[strand.name] == THERE or strand in resumed
            tell(f"{strand.name}|{found[strand.name]}|{'done' if is_done else 'open'}")


def look_alone(manner: Manner, ground: Ground, strands: Sequence[Strand], tell: Tell) -> None:
    """Open the store when nobody else has it: nothing is wrong, and nothing is there that nobody put there."""
    with StateStore.open(manner.target) as store:
        if not strands[0].is_atomic:
            store.check(repair=True)
        _check_whole(store, strands)
        assert store.check() == []
        tell(f"{sum(len(strand.picture.sessions) for strand in strands)}")
        _check_leftovers(ground, is_open=True)
    _check_leftovers(ground, is_open=False)


def recover_only(manner: Manner) -> None:
    """Open, read, close: what is left of a dead writer's work is finished, or this one dies over it, too."""
    with manner.open() as store:
        store.list_sessions(limit=3)


def _check_listed(store: StateStore, dead: Sequence[Strand]) -> None:
    """Where a session and its place in listings are written one after the other: what was acknowledged is listed."""
    listed = {summary.id for summary in store.list_sessions()}
    for strand in dead:
        lasting = strand.picture.sessions.keys() & strand.deed().makes.sessions.keys()
        assert lasting <= listed, f"not listed: {lasting - listed}"


def _found(strand: Strand, seen: dict[str, Any]) -> str:
    """At which of the places a strand is where it may be."""
    deed = strand.deed()
    if seen == deed.makes.shown():
        return THERE
    if any(seen == picture.shown() for picture in deed.between):
        return HALF_WAY
    assert seen == strand.picture.shown(), _told(strand, seen)
    return NOT_THERE


def _resumes(store: StateStore, strand: Strand, found: str) -> bool:
    """Do the deed that was under way, unless it is there and must not be done twice; whether it was done now."""
    deed = strand.deed()
    if found == THERE and not deed.repeats:
        return False
    if found == HALF_WAY and any(picture.sessions.keys() & picture.trash.keys() for picture in deed.between):
        store.for_user(strand.name).empty_trash()  # of a session in both places, one remains
        if observed(store, [strand.name])[strand.name] == deed.makes.shown():
            return True
    deed.act(store)
    return True


def _told(strand: Strand, seen: dict[str, Any]) -> str:
    known, then = strand.picture.shown(), strand.deed().makes.shown()
    lines = [f"{strand.name} is neither at its deed {strand.position} nor behind it:"]
    for name, value in seen.items():
        if value not in (known[name], then[name]) or (known != then and {value == known[name], value == then[name]}):
            lines += [f"{name}, seen: {value}", f"  before: {known[name]}", f"  after: {then[name]}"]
    return "\n".join(line[:2000] for line in lines)


def _check_whole(store: StateStore, strands: Sequence[Strand]) -> None:
    known = {name for strand in strands for name in strand.picture.sessions}
    found = [summary.id for summary in store.list_sessions(order="id")]
    assert set(found) - {SHARED, *SPREAD} == known
    assert len(found) == len(set(found)) == store.count_sessions()
    categories = {category_of(strand.name) for strand in strands if strand.picture.documents}
    assert set(store.list_categories()) - {SPREAD_DOCUMENT[0]} == categories
    first, *others = (words(store, name) for name in SPREAD)
    assert all(other == first for other in others), "a batch is there in part, or twice"
    assert store.load_markdown(*SPREAD_DOCUMENT) == (first[-1] if first else None)
    shared = words(store, SHARED)
    assert len(shared) == len(set(shared)), "something was said once and is there twice"
    assert len(shared) == sum(len(strand.picture.shared) for strand in strands)


def _check_leftovers(ground: Ground, *, is_open: bool) -> None:
    """Temporary files and journals of the dead are gone."""
    if ground.engine == "files":
        assert leftovers(Path(ground.target.removeprefix("file:"))) == []
    elif ground.engine == "sqlite":
        beside = set(os.listdir(ground.directory))
        allowed = {"state.db-wal", "state.db-shm", "state.db-journal"} if is_open else set[str]()
        assert beside - allowed == SQLITE_AT_REST
