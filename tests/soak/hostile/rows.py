"""A database with hostile values in the rows of one session and one document: any type in any column."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from random import Random
from typing import Any, Final

from soak.hostile.mutation import TEXTS, mutated, odd_value, restructured
from soak.hostile.trying import Tries, bounded
from soak.hostile.using import VICTIM, changes, follows, furnish, looks
from soak.proof import Proof, Round
from statestore import StateStore

INPUTS: Final = 30
_NUMBER: Final = f"(SELECT number FROM sessions WHERE id = '{VICTIM}')"
TABLES: Final[dict[str, str]] = {
    "sessions": f"id = '{VICTIM}'",
    "extras": f"number = {_NUMBER}",
    "records": f"place >> 32 = {_NUMBER}",
    "keys": f"number = {_NUMBER}",
    "documents": f"name = '{VICTIM}' OR category = '.statestore/trash'",
    "changes": "1",
    "identity": "1",
    "indexing": "1",
    "indexed": "1",
    "words": "1",
}
"""Which rows of a table are the victim's, or nobody's."""


def _round(this: Round) -> Mapping[str, int]:
    model = this.ground.directory / "model.db"
    with StateStore.open(f"sqlite:{model}", durability="relaxed") as store:
        furnish(store)
        store.search_sessions("ferry")
    chance = this.random("rows")
    is_loose = bool(this.seed % 2)

    def use(tries: Tries) -> None:
        for number in range(INPUTS):
            path = this.ground.directory / f"try-{number}.db"
            shutil.copy(model, path)
            with _loosened(path) if is_loose else nullcontext():
                given = _damage(chance, path, is_loose=is_loose)
            _use(tries, path, given)
            for made in this.ground.directory.glob(f"try-{number}.db*"):
                made.unlink()

    return bounded(use)


@contextmanager
def _loosened(path: Path) -> Generator[None]:
    """For a while, have the tables take values of any type, as a program that edits the schema can."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema=ON")
        schema = connection.execute("SELECT sql, name FROM sqlite_schema WHERE sql LIKE '%STRICT%'").fetchall()
        loose = [(_as_loose(sql), name) for sql, name in schema]
        connection.executemany("UPDATE sqlite_schema SET sql = ? WHERE name = ?", loose)
    yield
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema=ON")
        connection.executemany("UPDATE sqlite_schema SET sql = ? WHERE name = ?", schema)


def _as_loose(sql: str) -> str:
    columns, _, options = sql.rpartition(")")
    return columns.replace(" NOT NULL", "") + ")" + (" WITHOUT ROWID" if "WITHOUT" in options else "")


def _damage(chance: Random, path: Path, *, is_loose: bool) -> list[tuple[Any, ...]]:
    """Put other values into a few columns; what was put where."""
    done: list[tuple[Any, ...]] = []
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints=ON")
        for _ in range(chance.choice((1, 1, 2, 3))):
            table, where = chance.choice([*TABLES.items()])
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            column = chance.choice(columns)
            found = connection.execute(f"SELECT CAST({column} AS BLOB) FROM {table} WHERE {where}").fetchall()
            value, written = _odd(chance, chance.choice(found)[0] if found else b"")
            try:
                connection.execute(f"UPDATE OR REPLACE {table} SET {column} = {written} WHERE {where}", (value,))
            except sqlite3.Error:
                continue  # the table itself refuses it
            done.append((is_loose, table, column, value, written))
    return done


def _odd(chance: Random, now: bytes | None) -> tuple[Any, str]:
    """A value, and how it is written: as itself, or as a text that need not be one."""
    match chance.randrange(8):
        case 0:
            return None, "?"
        case 1:
            return chance.choice((0, -1, 1, 2, 3, 7, 2**31, 2**32, 2**62, 2**63 - 1, -(2**63))), "?"
        case 2:
            return chance.choice((0.5, -1e308, float("inf"))), "?"
        case 3:
            return chance.choice(TEXTS).encode("utf-8", "surrogatepass"), "CAST(? AS TEXT)"
        case 4:
            return mutated(chance, now or b""), chance.choice(("?", "CAST(? AS TEXT)"))
        case 5 if now is not None and now[:1] in (b"{", b"["):
            return restructured(chance, now), "CAST(? AS TEXT)"
        case 6:
            return repr(odd_value(chance)).encode("utf-8", "surrogatepass"), "CAST(? AS TEXT)"
        case _:
            return mutated(chance, now or b""), "CAST(? AS TEXT)"


def _use(tries: Tries, path: Path, given: object) -> None:
    tries.take(given)
    before, others = path.read_bytes(), _others(path)
    for is_reader in (True, False):
        store = tries.attempt(
            lambda is_reader=is_reader: StateStore.open(f"sqlite:{path}", read_only=is_reader, durability="relaxed")
        )
        if store is None:
            continue
        with store:
            for look in (*looks(store), *follows(store)):
                tries.attempt(look)
            if is_reader:
                assert path.read_bytes() == before, f"looking changed the file: {given!r}"
                continue
            assert _others(path) == others, f"looking changed another item: {given!r}"
            for change in changes(store):
                tries.attempt(change)
    assert _others(path) == others, f"another item changed: {given!r}"


def _others(path: Path) -> list[Any]:
    """The rows of the other sessions and of the other document."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        connection.text_factory = bytes
        numbers = connection.execute("SELECT number FROM sessions WHERE id LIKE 'other-%' ORDER BY id").fetchall()
        rows: list[Any] = connection.execute("SELECT * FROM sessions WHERE id LIKE 'other-%' ORDER BY id").fetchall()
        rows += connection.execute("SELECT * FROM documents WHERE name = 'other'").fetchall()
        for (number,) in numbers:
            for table in ("extras", "keys"):
                rows += connection.execute(f"SELECT * FROM {table} WHERE number = ?", (number,)).fetchall()
            rows += connection.execute("SELECT * FROM records WHERE place >> 32 = ?", (number,)).fetchall()
        return rows


FUZZ_ROWS = Proof(
    name="fuzz-rows",
    promise="hostile values in any column of a database are a value or an error of ours, and change no other row",
    engines=("sqlite",),
    round=_round,
    goal={"inputs": 20_000},
)
