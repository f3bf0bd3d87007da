"""Schema versions: a new file gets the present one, an old file is led to it step by step, a newer one is refused.

Who may only read an old file sees it through views, as if it had the present schema.
"""

from __future__ import annotations

import os
import sqlite3
from typing import Final

from statestore.engines.statements import migration_steps, numbered_scripts
from statestore.errors import StoreUnavailable

MIGRATIONS: Final = migration_steps(os.path.dirname(__file__))
READINGS: Final = numbered_scripts(os.path.join(os.path.dirname(__file__), "readings"))
"""For each older version of the schema: views that make the present one of it."""


def check_schema(connection: sqlite3.Connection, path: str, *, known: int = len(MIGRATIONS)) -> int:
    """The schema version of a database, 0 if it is new; `StoreUnavailable` if it is newer than we are."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > known:
        raise StoreUnavailable(
            f"{path} has the schema version {version}, and this statestore knows only {known}: "
            "it was written by a newer release, so upgrade statestore to open it"
        )
    return version


def show_as_present(connection: sqlite3.Connection) -> None:
    """Let a connection see a database of an older schema as if it had the present one."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    for statement in _statements(READINGS.get(version, "")):
        connection.execute(statement)


def migrate(connection: sqlite3.Connection, path: str, *, steps: list[str] = MIGRATIONS) -> None:
    """Bring a database to the present schema, one transaction a step. Whoever comes second finds it done."""
    while check_schema(connection, path, known=len(steps)) < len(steps):
        connection.execute("BEGIN IMMEDIATE")
        try:
            version = check_schema(connection, path, known=len(steps))
            if version < len(steps):
                for statement in _statements(steps[version]):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version={version + 1}")
            connection.execute("COMMIT")
        except BaseException as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if "no such module: fts5" in str(error):
                raise StoreUnavailable("this Python's SQLite was built without FTS5, which statestore needs") from error
            raise


def _statements(script: str) -> list[str]:
    """The statements of a script, one by one: ``executescript`` would commit between them."""
    found: list[str] = []
    rest = ""
    for line in script.splitlines(keepends=True):
        rest += line
        if sqlite3.complete_statement(rest):
            found.append(rest)
            rest = ""
    return found
