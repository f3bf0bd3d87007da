"""Looking at everything that a store has, and at how safely it is kept: what is wrong, and what mends it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from statestore.engines.inspecting import KEPT, faults_of_document
from statestore.engines.valkey.calling import Caller, Command
from statestore.engines.valkey.cluster_listing import entries_to_add
from statestore.engines.valkey.inspecting import inspect_session
from statestore.engines.valkey.keys import PLACE_DIGITS, Keys
from statestore.engines.valkey.planning import Listed
from statestore.engines.valkey.scripts import CHECK
from statestore.errors import StateStoreError
from statestore.stored import Problem

_REPAIR: Final = "repair() puts it right"
_PAGE: Final = 1_000
_SETTINGS: Final = ("appendonly", "appendfsync", "maxmemory", "maxmemory-policy")


class Finding(NamedTuple):
    """A problem, and the commands that mend it, if there are any that lose nothing."""

    problem: Problem
    remedy: Sequence[Command] = ()


async def mend(caller: Caller, finding: Finding) -> Problem:
    """Put right what was found; what was wrong, and what was done about it."""
    for reply in await caller.call_all(finding.remedy):
        error = caller.explained(reply)
        if error is not None:
            raise error
    done = "it was listed" if finding.remedy[0][0] == "ZADD" else "the entry was removed"
    return msgspec.structs.replace(finding.problem, advice=done)


async def survey(caller: Caller, keys: Keys, *, is_durable: bool) -> AsyncIterator[Finding]:
    """All that is wrong."""
    if is_durable:
        async for problem in _server_problems(caller):
            yield Finding(problem)
    async for finding in _survey_sessions(caller, keys):
        yield finding
    async for finding in _survey_indexes(caller, keys):
        yield finding
    async for finding in _survey_documents(caller, keys):
        yield finding


async def _server_problems(caller: Caller) -> AsyncIterator[Problem]:
    """Settings by which the server may lose what it acknowledged."""
    from statestore.engines.valkey.failures import DriverError  # noqa: PLC0415 - needs the driver

    try:
        found = await caller.settings_of(_SETTINGS)
    except (*DriverError, StateStoreError) as error:
        advice = (
            'see that its log is written at once, and open the store with durability="relaxed" to hear no more of it'
        )
        yield Problem("server", f"whether it keeps what it acknowledges cannot be seen ({error})", advice)
        return
    for server, settings in found.items():
        if settings.get("appendonly") != "yes":
            yield Problem(server, "it keeps no log: a crash loses what it acknowledged", "set appendonly to yes")
        elif settings.get("appendfsync") != "always":
            what = f"it flushes its log {settings.get('appendfsync')}: a power cut loses what it acknowledged"
            yield Problem(server, what, 'set appendfsync to always, or open the store with durability="relaxed"')
        policy = settings.get("maxmemory-policy", "noeviction")
        if policy != "noeviction" and settings.get("maxmemory", "0") != "0":
            what = f"when its memory is full, it deletes what it likes ({policy})"
            yield Problem(server, what, "set maxmemory-policy to noeviction")


async def _survey_sessions(caller: Caller, keys: Keys) -> AsyncIterator[Finding]:
    seen: set[str] = set()
    bases: set[str] = set()
    async for key in caller.scan(f"{keys.prefix}:s:*"):
        base, _, part = key.rpartition("}:")
        bases.add(f"{base}}}") if part in ("r", "k", "m") else None
        if part == "h" and key not in seen:
            seen.add(key)
            async for finding in _survey_session(caller, keys, key):
                yield finding
    for base in sorted(bases):
        if f"{base}:h" not in seen and not await caller.call("EXISTS", f"{base}:h"):
            where = f"session {keys.session_in(f'{base}:h')}"
            if any([await caller.call("EXISTS", f"{base}:{part}") for part in "rkm"]):  # it may expire right now
                yield Finding(Problem(where, "it has records, keys or metadata, and no header", KEPT))


async def _survey_session(caller: Caller, keys: Keys, key: str) -> AsyncIterator[Finding]:
    session_id, base = keys.session_in(key), key.removesuffix(":h")
    where = f"session {session_id}"
    at_hand = () if caller.address.is_cluster else (session_id, keys.prefix)
    try:
        pairs, records, metadata, seq_of_key, listed = await caller.run(CHECK, key, base, *at_hand)
    except StateStoreError as error:
        yield Finding(Problem(where, f"it cannot be read: {error}", KEPT))
        return
    header = {pairs[at].decode(): pairs[at + 1] for at in range(0, len(pairs), 2)}
    if not header:
        return  # it was deleted meanwhile
    for what in inspect_session(session_id, header, records, metadata, seq_of_key):
        yield Finding(Problem(where, what, KEPT))
    place, user_id = header.get("place"), header.get("user")
    if place is None or user_id is None:
        return
    to_list = entries_to_add(keys, Listed(session_id, user_id.decode(), None, place.decode()))
    if caller.address.is_cluster:
        listed = [await caller.call("ZSCORE", *_index_entry(command)) is not None for command in to_list]
        still = await caller.call("HGET", key, "place")
        listed = listed if still == place else [True]  # it was changed meanwhile, and its writer lists it
    if not all(listed):
        yield Finding(Problem(where, "it is missing in listings", _REPAIR), to_list)


def _index_entry(command: Command) -> tuple[Any, Any]:
    _, index, _, entry = command
    return index, entry


async def _survey_indexes(caller: Caller, keys: Keys) -> AsyncIterator[Finding]:
    """Entries of sessions that are gone. Where sessions expire, such entries are nothing to speak of."""
    if await caller.call("HEXISTS", keys.store, "expires"):
        return
    async for index in _indexes(caller, keys):
        start = b"-"
        while True:
            entries: list[bytes] = await caller.call("ZRANGEBYLEX", index, start, "+", "LIMIT", 0, _PAGE)
            ids = [(entry if index == keys.ids else entry[PLACE_DIGITS:]).decode() for entry in entries]
            looks: list[Command] = [("HMGET", f"{keys.session(it)}:h", "place", "user") for it in ids]
            headers = await caller.call_all(looks) if looks else []
            for session_id, entry, header in zip(ids, entries, headers, strict=True):
                error = caller.explained(header)
                if error is not None:
                    yield Finding(Problem(f"session {session_id}", f"it cannot be read: {error}", KEPT))
                elif (
                    not _is_true(keys, index, entry, *header) and await caller.call("ZSCORE", index, entry) is not None
                ):
                    problem = Problem(f"session {session_id}", "a listing has it where it is not", _REPAIR)
                    yield Finding(problem, [("ZREM", index, entry)])
            if len(entries) < _PAGE:
                break
            start = b"(" + entries[-1]


def _is_true(keys: Keys, index: str, entry: bytes, place: bytes | None, user_id: bytes | None) -> bool:
    """Whether a session is where an entry of an index says."""
    if place is None or index == keys.ids:
        return place is not None
    belongs = index == keys.newest or user_id is None or index == keys.newest_of(user_id.decode())
    return belongs and entry.startswith(place)


async def _indexes(caller: Caller, keys: Keys) -> AsyncIterator[str]:
    yield keys.ids
    yield keys.newest
    async for key in caller.scan(f"{keys.newest}:*"):
        yield key


async def _survey_documents(caller: Caller, keys: Keys) -> AsyncIterator[Finding]:
    async for key in caller.scan(f"{keys.prefix}:d:*"):
        category = keys.category_in(key)
        base = keys.category(category)
        if key == base:
            async for finding in _survey_category(caller, keys, category):
                yield finding
        elif not key.startswith(f"{base}:t:"):
            kind, _, name = key[len(base) + 1 :].partition(":")
            where = f"{category}/{name}.{kind}"
            body = await caller.call("HGET", key, "body")
            if body is None:
                continue  # it was deleted meanwhile
            for what in faults_of_document(category, name, kind, body):
                yield Finding(Problem(where, what, KEPT))
            to_list: list[Command] = [("ZADD", base, 0, f"{name}\0{kind}"), ("ZADD", keys.categories, 0, category)]
            if not await _is_listed(caller, to_list) and await caller.call("EXISTS", key):
                yield Finding(Problem(where, "it is missing in listings", _REPAIR), to_list)


async def _is_listed(caller: Caller, commands: Sequence[Command]) -> bool:
    return all([await caller.call("ZSCORE", *_index_entry(command)) is not None for command in commands])


async def _survey_category(caller: Caller, keys: Keys, category: str) -> AsyncIterator[Finding]:
    base = keys.category(category)
    for member in await caller.call("ZRANGE", base, 0, -1):
        name, _, kind = member.decode().partition("\0")
        is_there = await caller.call("EXISTS", keys.document(category, name, kind))
        if not is_there and await caller.call("ZSCORE", base, member) is not None:
            problem = Problem(f"{category}/{name}.{kind}", "it is listed, and not there", _REPAIR)
            yield Finding(problem, [("ZREM", base, member)])
