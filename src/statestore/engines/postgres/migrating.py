"""Schema versions: a new store gets the present one, an old one is led to it step by step, a newer one is refused."""

from __future__ import annotations

import os
from typing import Final

from statestore.engines.postgres.driver import Connection
from statestore.engines.postgres.statements import SQL
from statestore.engines.postgres.transactions import transaction
from statestore.engines.statements import migration_steps
from statestore.errors import StoreUnavailable

MIGRATIONS: Final = migration_steps(os.path.dirname(__file__))
OLDEST: Final = 13_00_00
"""The first release that tells which transactions are still under way."""


async def version_of(connection: Connection, schema: str, url: str, *, known: int = len(MIGRATIONS)) -> int:
    """The version of the store in a schema, 0 if there is none; `StoreUnavailable` if it is newer than we are."""
    ((release, encoding, path, exists),) = await connection.fetch(SQL["server"], schema)
    if release < OLDEST:
        raise StoreUnavailable(f"{url} is PostgreSQL {release // 10000}, and statestore needs 13 or later")
    if encoding != "UTF8":
        raise StoreUnavailable(f"{url}: the database has the encoding {encoding}, and statestore needs one with UTF8")
    if path != f'"{schema}"':
        raise StoreUnavailable(
            f"{url}: a pooler in between does not pass on what connections are set to: let it not ignore search_path "
            "(PgBouncer: ignore_startup_parameters), or connect to the server itself"
        )
    if not exists:
        return 0
    version = await connection.fetchval(f'SELECT version FROM "{schema}".store')  # noqa: S608 - its name was checked
    if version > known:
        raise StoreUnavailable(
            f"{url} has the schema version {version}, and this statestore knows only {known}: "
            "it was written by a newer release, so upgrade statestore to open it"
        )
    return version


async def migrate(connection: Connection, schema: str, url: str, *, steps: list[str] = MIGRATIONS) -> None:
    """Bring a schema to the present version, in one transaction. Whoever comes second waits, and finds it done."""
    async with transaction(connection):
        await connection.execute(SQL["lock_schema"], f"statestore:{schema}")
        version = await version_of(connection, schema, url, known=len(steps))
        if version == len(steps):
            return
        if not version and not await connection.fetchval(SQL["schema_exists"], schema):
            await connection.execute(f'CREATE SCHEMA "{schema}"')
        for step in steps[version:]:
            await connection.execute(step)
        await connection.execute(SQL["set_version"], len(steps))
