"""Looking at everything that a store has, and at how safely it is kept: what is wrong, and what mends it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Final

from statestore.engines.inspecting import KEPT, faults_of_document
from statestore.engines.valkey.calling import Caller
from statestore.engines.valkey.keys import Keys
from statestore.engines.valkey.mending import REPAIR, Finding, call_all, document_due, document_entries
from statestore.engines.valkey.surveying_indexes import indexes_of_users, survey_indexes
from statestore.engines.valkey.surveying_sessions import survey_sessions
from statestore.errors import CorruptData, StateStoreError
from statestore.stored import DOCUMENT_KINDS, Problem

_SETTINGS: Final = ("appendonly", "appendfsync", "maxmemory", "maxmemory-policy")


async def survey(caller: Caller, keys: Keys, *, is_durable: bool) -> AsyncIterator[Finding]:
    """All that is wrong."""
    if is_durable:
        async for problem in _server_problems(caller):
            yield Finding(problem)
    async for finding in _survey_types(caller, keys):
        yield finding
    async for finding in survey_sessions(caller, keys):
        yield finding
    async for finding in survey_indexes(caller, keys):
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


async def _survey_types(caller: Caller, keys: Keys) -> AsyncIterator[Finding]:
    """Keys that all sessions share, and that somebody else wrote."""
    kinds = dict.fromkeys((keys.newest, keys.ids, keys.categories), b"zset")
    if not caller.address.is_cluster:
        kinds |= {keys.change: b"string", keys.changes: b"stream"}
    async for key in indexes_of_users(caller, keys):
        kinds[key] = b"zset"
    found = await call_all(caller, [("TYPE", key) for key in kinds])
    for (key, kind), there in zip(kinds.items(), found, strict=True):
        if there not in (kind, b"none"):
            assert isinstance(there, bytes)
            what = f"it is a {there.decode()} that somebody else wrote, and nothing can be stored"
            yield Finding(Problem(key, what, "remove it, then repair() lists what is missing"))


async def _survey_documents(caller: Caller, keys: Keys) -> AsyncIterator[Finding]:
    async for key in caller.scan(keys.any_document):
        category = keys.category_in(key)
        if category is None:
            continue
        base = keys.category(category)
        kind, _, name = key[len(base) + 1 :].partition(":")
        is_document = key != base
        if is_document and kind not in DOCUMENT_KINDS:
            continue
        look = _survey_document(caller, keys, category, name, kind) if is_document else None
        try:
            async for finding in look or _survey_category(caller, keys, category):
                yield finding
        except CorruptData as error:
            where = f"{category}/{name}.{kind}" if is_document else f"category {category}"
            yield Finding(Problem(where, f"it cannot be read: {error}", KEPT))


async def _survey_document(caller: Caller, keys: Keys, category: str, name: str, kind: str) -> AsyncIterator[Finding]:
    where = f"{category}/{name}.{kind}"
    key = keys.document(category, name, kind)
    body = await caller.call("HGET", key, "body")
    if body is None:
        return  # it was deleted meanwhile
    for what in faults_of_document(category, name, kind, body):
        yield Finding(Problem(where, what, KEPT))
    to_list = document_entries(keys, category, name, kind)
    looks = await caller.call_all([("ZSCORE", index, entry) for index, entry in to_list])
    if None in looks and await caller.call("EXISTS", key):
        find_due = partial(document_due, caller, keys, category, name, kind)
        yield Finding(Problem(where, "it is missing in listings", REPAIR), to_add=to_list, find_due=find_due)


async def _survey_category(caller: Caller, keys: Keys, category: str) -> AsyncIterator[Finding]:
    base = keys.category(category)
    for member in await caller.call("ZRANGE", base, 0, -1):
        name, _, kind = member.decode().partition("\0")
        is_there = await caller.call("EXISTS", keys.document(category, name, kind))
        if not is_there and await caller.call("ZSCORE", base, member) is not None:
            problem = Problem(f"{category}/{name}.{kind}", "it is listed, and not there", REPAIR)
            find_due = partial(document_due, caller, keys, category, name, kind)
            yield Finding(problem, to_remove=[(base, member)], find_due=find_due)
