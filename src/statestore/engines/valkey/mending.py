"""What is wrong, and putting it right while others write."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from statestore.engines.valkey.calling import Caller
from statestore.engines.valkey.keys import Keys
from statestore.engines.valkey.planning import Listed, entries_to_add, entries_to_remove
from statestore.engines.valkey.pool import Command
from statestore.stored import Problem

REPAIR: Final = "check(repair=True) puts it right"

Entry = tuple[str, bytes]
"""An index, and what it has."""


async def _nowhere() -> set[Entry]:
    return set()


class Finding(NamedTuple):
    """A problem, and what mends it, if that loses nothing: entries that are to be added, or removed."""

    problem: Problem | None
    """``None`` if it is nothing to speak of."""
    to_add: Sequence[Entry] = ()
    to_remove: Sequence[Entry] = ()
    find_due: Callable[[], Awaitable[set[Entry]]] = _nowhere
    """Looks where the item is to be listed by now."""

    @property
    def has_remedy(self) -> bool:
        return bool(self.to_add or self.to_remove)


async def mend(caller: Caller, finding: Finding) -> Problem | None:
    """Put right what was found; what was wrong, and what was done about it, if that is worth telling.

    Others may have moved the item on before we are done: so we look again, until what we did is still right.
    """
    wanted = dict.fromkeys(finding.to_add, True) | dict.fromkeys(finding.to_remove, False)
    done: dict[Entry, bool] = {}
    while wanted:
        commands = [
            ("ZADD", index, 0, entry) if is_wanted else ("ZREM", index, entry)
            for (index, entry), is_wanted in wanted.items()
        ]
        await caller.call_all(commands)
        done |= wanted
        due = await finding.find_due()
        wanted = {entry: entry in due for entry, is_there in done.items() if is_there != (entry in due)}
    if finding.problem is None:
        return None
    advice = "it was listed" if finding.to_add else "the entry was removed"
    return msgspec.structs.replace(finding.problem, advice=advice)


async def put_right(caller: Caller, keys: Keys, listed: Listed, place: str | None) -> None:
    """Take back what was listed of a session that is elsewhere by now, or gone, or there again.

    ``place`` is where it was seen after it was listed.
    """
    while place != listed.now:
        await caller.call_all(entries_to_remove(keys, listed._replace(before=listed.now, now=place)))
        if listed.now is not None and place is not None:
            return  # whoever moved it on lists it
        place, user_id = seen_in(await caller.call(*look_for(keys, listed.id)))
        if place is None or user_id is None:
            return
        listed = Listed(listed.id, user_id, None, place)
        await caller.call_all(entries_to_add(keys, listed))
        place, _ = seen_in(await caller.call(*look_for(keys, listed.id)))


def look_for(keys: Keys, session_id: str) -> Command:
    """The command that tells where a session is to be listed by now, and for whom."""
    return ("HMGET", f"{keys.session(session_id)}:h", "place", "user")


def seen_in(reply: Any) -> tuple[str | None, str | None]:
    """What is replied to such a look."""
    place, user_id = reply
    return place and place.decode(), user_id and user_id.decode()


def session_entries(keys: Keys, session_id: str, place: bytes, user_id: bytes) -> list[Entry]:
    """Where a session is to be listed."""
    commands = entries_to_add(keys, Listed(session_id, user_id.decode(), None, place.decode()))
    return [(str(index), str(entry).encode()) for _, index, _, entry in commands]


async def session_due(caller: Caller, keys: Keys, *ids: str) -> set[Entry]:
    """Where some sessions are to be listed, going by their headers."""
    headers = await caller.call_all([look_for(keys, it) for it in ids])
    return {
        entry
        for session_id, (place, user_id) in zip(ids, headers, strict=True)
        if place is not None and user_id is not None
        for entry in session_entries(keys, session_id, place, user_id)
    }


def document_entries(keys: Keys, category: str, name: str, kind: str) -> list[Entry]:
    """Where a document is to be listed, and its category."""
    return [(keys.category(category), f"{name}\0{kind}".encode()), (keys.categories, category.encode())]


async def document_due(caller: Caller, keys: Keys, category: str, name: str, kind: str) -> set[Entry]:
    """Where a document is to be listed, and its category, if they are there."""
    in_category, in_categories = document_entries(keys, category, name, kind)
    due: set[Entry] = set()
    if await caller.call("EXISTS", keys.document(category, name, kind)):
        due.add(in_category)
    if due or await caller.call("EXISTS", keys.category(category)):
        due.add(in_categories)
    return due
