"""Looking at everything that a store has, and at how safely it is kept: what is wrong, and what mends it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from statestore.engines.valkey.calling import Caller
from statestore.engines.valkey.keys import Keys
from statestore.engines.valkey.mending import Finding
from statestore.engines.valkey.surveying_documents import survey_documents
from statestore.engines.valkey.surveying_indexes import indexes_of_users, survey_indexes
from statestore.engines.valkey.surveying_sessions import survey_sessions
from statestore.errors import StateStoreError
from statestore.stored import Problem

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
    async for finding in survey_documents(caller, keys):
        yield finding


async def _server_problems(caller: Caller) -> AsyncIterator[Problem]:
    """Settings by which the server may lose what it acknowledged."""
    try:
        found = await caller.settings_of(_SETTINGS)
    except StateStoreError as error:
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
    found = await caller.call_all([("TYPE", key) for key in kinds])
    for (key, kind), there in zip(kinds.items(), found, strict=True):
        if there not in (kind, b"none"):
            what = f"it is a {there.decode()} that somebody else wrote, and nothing can be stored"
            yield Finding(Problem(key, what, "remove it, then check(repair=True) lists what is missing"))
