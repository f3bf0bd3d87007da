"""Hostile values on a server: in the columns of PostgreSQL's tables, and in Valkey's keys and fields."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, Final

import redis

from servers import postgres
from soak.hostile.mutation import TEXTS, mutated, restructured
from soak.hostile.trying import Tries, bounded
from soak.hostile.using import OTHERS, VICTIM, changes, follows, furnish, looks
from soak.proof import Proof, Round
from statestore import StateStore

TURNS: Final = 6
_NUMBERS: Final = (0, -1, 1, 2, 3, 7, 2**15, 2**31, 2**62, 2**63 - 1, -(2**63))
_OURS: Final = {
    "sessions": "id",
    "metadata": "id",
    "records": "id",
    "documents": "name",
    "indexed": "id",
    "words": "id",
}
"""The tables in which rows are the victim's, and the column that tells."""


def _round(this: Round) -> Mapping[str, int]:
    damage = _damage_table if this.ground.engine == "postgres" else _damage_key

    def use(tries: Tries) -> None:
        chance = this.random("rows")
        with StateStore.open(this.ground.target) as store:
            furnish(store)
            store.list_sessions()
            before = _others(store)
        for _ in range(TURNS):
            tries.take([damage(chance, this.ground.target) for _ in range(chance.choice((1, 2)))])
            _use(tries, this.ground.target)
            with StateStore.open(this.ground.target) as store:
                assert _others(store) == before, "another item changed"

    return bounded(use, megabytes=None)


def _others(store: StateStore) -> list[Any]:
    return [store.load_json("sessions", name) for name in OTHERS] + [store.load_json("notes", "other")]


def _use(tries: Tries, target: str) -> None:
    store = tries.attempt(lambda: StateStore.open(target))
    if store is None:
        return
    with store:
        for call in (*looks(store), *follows(store), *changes(store)):
            tries.attempt(call)
        tries.attempt(lambda: store.check(repair=True))
        tries.attempt(lambda: furnish(store))


def _odd(chance: Random, now: bytes) -> bytes:
    match chance.randrange(5):
        case 0:
            return chance.choice(TEXTS)[:3000].encode("utf-8", "surrogatepass")
        case 1:
            return str(chance.choice(_NUMBERS)).encode()
        case 2 if now[:1] in (b"{", b"["):
            return restructured(chance, now)
        case _:
            return mutated(chance, now)


def _damage_table(chance: Random, target: str) -> object:
    """Put another value, of the column's type, into a row of the victim's."""
    url, _, query = target.partition("?")
    schema = query.partition("schema=")[2].partition("&")[0]
    table, owner = chance.choice([*_OURS.items()])
    described = (
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_schema = '{}' AND table_name = '{}'"
    )
    columns = postgres.sql(url, described.format(schema, table))
    name, kind = chance.choice([(name, kind) for name, kind in columns if kind in _LITERALS and name != owner])
    value = _LITERALS[kind](chance)
    statement = f"UPDATE {schema}.{table} SET {name} = {value} WHERE {owner} = '{VICTIM}'"
    try:
        postgres.sql(url, statement)
    except Exception as error:  # noqa: BLE001 - the server itself refuses it, which is told
        return f"{statement}: {error}"
    return statement


_RECORD: Final = b'{"content": "x", "timestamp": "2026-01-01T00:00:00Z"}'
_LITERALS: Final[dict[str, Any]] = {
    "text": lambda chance: "'" + chance.choice(TEXTS)[:3000].replace("\0", "").replace("'", "''") + "'",
    "bytea": lambda chance: f"'\\x{_odd(chance, _RECORD).hex()}'",
    "bigint": lambda chance: str(chance.choice(_NUMBERS)),
    "smallint": lambda chance: str(chance.choice((0, 1, 2, 3, -1, 999, 32767))),
}


def _damage_key(chance: Random, target: str) -> object:
    """Put another value into a field of one of the victim's keys, or another kind of value into the key."""
    address, _, query = target.partition("?")
    prefix = query.partition("prefix=")[2].partition("&")[0]
    port = int(address.rpartition(":")[2])
    with redis.Redis(port=port, protocol=2) as client:
        found: Any = sorted(key for key in client.scan_iter(f"{prefix}:*") if VICTIM.encode() in key)
        if not found:
            return "nothing left"
        key: bytes = chance.choice(found)
        kind: Any = client.type(key)
        if kind == b"hash" and chance.random() < 0.85:
            fields: Any = client.hgetall(key)
            field = chance.choice([*fields])
            value = _odd(chance, fields[field])
            client.hset(key, field, value)
            return key, field, value
        client.delete(key)
        if chance.random() < 0.5:
            client.set(key, _odd(chance, b"x"))
        elif chance.random() < 0.5:
            client.rpush(key, _odd(chance, b"x"))
        return key, kind, "replaced"


FUZZ_SERVER_ROWS = Proof(
    name="fuzz-server-rows",
    promise="hostile values in a server's rows and keys are a value or an error of ours, and change no other item",
    engines=("postgres", "valkey"),
    round=_round,
    goal={"inputs": 500},
    share=0.5,
)
