"""Trying every command that writing needs, at once and without writing anything.

A script cannot take back what it did before the server refused it a command: so who may not run one of them is told
when the store is opened.
"""

from __future__ import annotations

from typing import Final

import msgspec

from statestore.engines.valkey.calling import Caller
from statestore.engines.valkey.driver import NoPermissionError
from statestore.engines.valkey.keys import Keys
from statestore.engines.valkey.pool import Command
from statestore.engines.valkey.scripts import PROBE
from statestore.errors import StoreUnavailable

NOBODY: Final = " "
"""No session and no category has this name."""

_pack = msgspec.msgpack.Encoder().encode


async def check_rights(caller: Caller, keys: Keys) -> None:
    """Refuse a user who could begin a batch, and not end it. There must be a store."""
    probes = [
        (keys.store, _at_store(keys, has_indexes=not caller.address.is_cluster)),
        (f"{keys.session(NOBODY)}:h", _at_session(keys)),
        (keys.category(NOBODY), _at_category(keys)),
    ]
    replies = await caller.run_with_refusals(PROBE, [((key,), [_pack(commands)]) for key, commands in probes])
    for (key, _), reply in zip(probes, replies, strict=True):
        if isinstance(reply, NoPermissionError):
            raise _refusal(caller, "EVALSHA", key, str(reply)) from reply
        refused = caller.granted(reply)
        if refused is not None:
            raise _refusal(caller, *(part.decode(errors="replace") for part in refused))


def _refusal(caller: Caller, command: str, key: str, why: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"{caller.address.url}: this user may not run {command} on keys like {key!r}, and writing needs it ({why}): "
        "ask for the permission, or open the store with read_only=True"
    )


def _at_store(keys: Keys, *, has_indexes: bool) -> list[Command]:
    """What happens to keys that all sessions share. What has no harmless form is tried on a key of another type."""
    commands: list[Command] = [("RPUSH", keys.store, "")]
    if has_indexes:
        for index in (keys.newest, keys.newest_of(NOBODY), keys.ids, keys.categories):
            commands += [("TYPE", index), ("ZADD", index, "none", ""), ("ZREM", index, "")]
        commands += [
            ("TYPE", keys.change),
            ("GET", keys.change),
            ("SET", keys.change, "", "PX", "none"),
            ("TYPE", keys.changes),
            ("XREVRANGE", keys.changes, "+", "-", "COUNT", "1"),
            ("XADD", keys.changes, "MAXLEN", "~", "none", "1-0", "c", ""),
            ("GET", keys.token(keys.prefix, "")),
            ("SET", keys.token(keys.prefix, ""), "", "PX", "none"),
        ]
    return commands


def _at_session(keys: Keys) -> list[Command]:
    base = keys.session(NOBODY)
    header, records, idempotency, metadata = keys.parts_of(base)
    token = keys.token(base, "")
    commands: list[Command] = [
        ("GET", token),
        ("SET", token, "", "PX", "none"),
        ("HMGET", header, ""),
        ("LLEN", records),
        ("LINDEX", records, "0"),
        ("LRANGE", records, "0", "0"),
        ("LTRIM", records, "0", "0"),
        ("HLEN", metadata),
        ("ZSCORE", idempotency, ""),
        ("ZRANGE", idempotency, "0", "0"),
        ("ZRANGEBYSCORE", idempotency, "none", "none"),
        ("ZADD", idempotency, "none", ""),
        ("ZREMRANGEBYSCORE", idempotency, "none", "none"),
    ]
    for key in (header, metadata):
        commands += [("HGET", key, ""), ("HGETALL", key), ("HSET", key, "", "", ""), ("HDEL", key, "")]
    for key in (header, records, idempotency, metadata):
        commands += [("TYPE", key), ("UNLINK", key), ("PEXPIRE", key, "none")]
    return commands


def _at_category(keys: Keys) -> list[Command]:
    base, document = keys.category(NOBODY), keys.document(NOBODY, "", "")
    token = keys.token(base, "")
    return [
        ("GET", token),
        ("SET", token, "", "PX", "none"),
        ("TYPE", base),
        ("EXISTS", base),
        ("ZRANGE", base, "0", "0"),
        ("ZADD", base, "none", ""),
        ("ZREM", base, ""),
        ("UNLINK", base),
        ("TYPE", document),
        ("HGET", document, ""),
        ("HSET", document, "", "", ""),
        ("UNLINK", document),
    ]
