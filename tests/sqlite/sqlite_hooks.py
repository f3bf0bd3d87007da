"""Looking into a database behind the store's back, and into what the store does to it, statement by statement."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from statestore import Event, StateStore

_connect = sqlite3.connect
Hook = Callable[[str], None]


def _nothing(_statement: str) -> None:
    pass


class HookedCursor(sqlite3.Cursor):
    """A cursor that calls its connection's hooks around each statement."""

    def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
        self.connection.before(sql)  # type: ignore[attr-defined]
        super().execute(sql, *arguments)
        self.connection.after(sql)  # type: ignore[attr-defined]
        return self

    def executemany(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
        self.connection.before(sql)  # type: ignore[attr-defined]
        super().executemany(sql, *arguments)
        self.connection.after(sql)  # type: ignore[attr-defined]
        return self


class Hooked(sqlite3.Connection):
    """A connection that calls ``before`` and ``after`` around each statement; both are to be set on the class."""

    before: Hook = staticmethod(_nothing)
    after: Hook = staticmethod(_nothing)

    def cursor(self, factory: Any = HookedCursor) -> Any:
        return super().cursor(factory)

    def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
        return self.cursor().execute(sql, *arguments)

    def executemany(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
        return self.cursor().executemany(sql, *arguments)


@contextmanager
def hooked(before: Hook = _nothing, after: Hook = _nothing) -> Iterator[list[sqlite3.Connection]]:
    """While this lasts, connections that are opened call these; all of them so far."""
    made: list[sqlite3.Connection] = []
    kind: Any = type("Hooked", (Hooked,), {"before": staticmethod(before), "after": staticmethod(after)})

    def connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
        options.setdefault("factory", kind)
        made.append(_connect(*arguments, **options))
        return made[-1]

    sqlite3.connect = connect
    try:
        yield made
    finally:
        sqlite3.connect = _connect
        kind.before = kind.after = staticmethod(_nothing)


@contextmanager
def raw(path: Path | str, **options: Any) -> Iterator[sqlite3.Connection]:
    """A connection as any other program would have one."""
    with closing(_connect(path, isolation_level=None, **options)) as connection:
        yield connection


def verdict(path: Path) -> str:
    """What SQLite itself says of a database."""
    with raw(path) as connection:
        return "; ".join(row[0] for row in connection.execute("PRAGMA integrity_check"))


def wreck(path: Path, *statements: str) -> None:
    """Change a database in ways that the store never would."""
    with raw(path) as connection:
        for statement in statements:
            connection.execute(statement)


def said(store: StateStore, session_id: str) -> list[str]:
    """What was said in a session, in order."""
    return [
        str(entry.record.data) if isinstance(entry.record, Event) else entry.record.content
        for entry in store.timeline(session_id)
    ]


def seqs(store: StateStore, session_id: str) -> list[int]:
    """The numbers of a session's records, in order."""
    return [entry.seq for entry in store.timeline(session_id)]


def files_beside(path: Path) -> set[str]:
    """What lies beside a database, by what is added to its name."""
    return {name.removeprefix(path.name) for name in (entry.name for entry in path.parent.iterdir())}


LOCK_FILES = {"", "-gate", "-turn"}
"""What is left of a store that is closed."""
