"""Keeping the index of words up to date: when a search asks for it, in steps that let writers have their turn.

What there is to do follows from the table of changes. If that does not go back far enough, the index is made anew,
session by session.
"""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from typing import Any, Final

from statestore.engines.columns import kind_of_column
from statestore.engines.fulltext import CREATE_WORDS, add_words, remove_words, set_title_words
from statestore.engines.places import places_between, seq_of
from statestore.engines.result_codes import fine_code_of
from statestore.engines.sqlite.statements import SQL
from statestore.engines.sqlite.tolerating import damaged_as_bytes
from statestore.engines.stepping import Room
from statestore.searching import RULES, text_to_index

log = logging.getLogger("statestore")

SESSIONS_A_STEP: Final = 1000
CHANGES_A_STEP: Final = 5000
_WITHOUT_SEGMENTS: Final = "REPLACE INTO words_data (id, block) VALUES (10, x'00000000000000')"
"""Has FTS5 take its index for an empty one: the record in which it lists its segments lists none."""


def last_change(connection: sqlite3.Connection) -> int:
    """The last change there is; 0 if there is none."""
    return connection.execute(SQL["last_change"]).fetchone()[0] or 0


def has_seen(connection: sqlite3.Connection, change: int) -> bool:
    """Whether the index has seen a change, and all before it."""
    rules, seen, swept, *_ = connection.execute(SQL["indexing_state"]).fetchone()
    return rules == RULES and swept is None and seen >= change


def has_index(connection: sqlite3.Connection) -> bool:
    """Whether anybody ever searched."""
    return connection.execute(SQL["indexing_state"]).fetchone()[0] != 0


def index_some(connection: sqlite3.Connection) -> None:
    """In a transaction: bring the index a step further."""
    rules, change, swept, oldest, last = connection.execute(SQL["indexing_state"]).fetchone()
    if rules != RULES or (swept is None and oldest is not None and change < oldest - 1):
        change, swept = last or 0, 0
        _empty(connection)
    step = _Step(connection)
    if swept is not None:
        swept = step.sweep(swept, change)
    else:
        change = step.follow(change)
    connection.execute(SQL["set_indexing_state"], (RULES, change, swept))


def forget_index(connection: sqlite3.Connection) -> None:
    """In a transaction: have the index made anew by whoever searches next."""
    _empty(connection)
    connection.execute(SQL["set_indexing_state"], (0, 0, None))


def _empty(connection: sqlite3.Connection) -> None:
    try:
        connection.execute("DROP TABLE words")
    except sqlite3.DatabaseError as error:
        if not is_damage_of_index(error):
            raise
        connection.execute(_WITHOUT_SEGMENTS)  # else it can be neither opened nor dropped
        connection.execute("DROP TABLE words")
    connection.execute(CREATE_WORDS)
    connection.execute("DELETE FROM indexed")


def is_damage_of_index(error: BaseException | None) -> bool:
    """Whether SQLite says that the index of words is damaged, and nothing of the other tables."""
    return fine_code_of(error) == sqlite3.SQLITE_CORRUPT_VTAB


def tidy_index(connection: sqlite3.Connection) -> None:
    """Have the index hold the words of what is there and no others: what was deleted is merged away."""
    try:
        connection.execute("INSERT INTO words (words) VALUES ('integrity-check')")
        connection.execute("INSERT INTO words (words) VALUES ('optimize')")
    except sqlite3.DatabaseError as error:
        if not is_damage_of_index(error):
            raise
        log.warning("the index of words is damaged, and will be made anew by the next search: %s", error)
        connection.execute("BEGIN IMMEDIATE")
        forget_index(connection)
        connection.execute("COMMIT")


_MEMORY: Final = (
    CREATE_WORDS.replace(" words ", " temp.words "),
    "CREATE TABLE temp.indexed (number INTEGER PRIMARY KEY, seq INTEGER, change INTEGER, title TEXT)",
    "CREATE TABLE temp.indexing (rules INTEGER, change INTEGER, swept INTEGER)",
    f"INSERT INTO temp.indexing VALUES ({RULES}, 0, 0)",  # noqa: S608 - our own number
)


def index_in_memory(connection: sqlite3.Connection) -> None:
    """Make an index of everything that only this connection has: where a name is looked up, its own come first."""
    for statement in _MEMORY:
        connection.execute(statement)
    while connection.execute(SQL["indexing_state"]).fetchone()[2] is not None:
        index_some(connection)


def forget_memory(connection: sqlite3.Connection) -> None:
    """Drop the index that only this connection has, as far as it was made."""
    for table in ("words", "indexed", "indexing"):
        connection.execute(f"DROP TABLE IF EXISTS temp.{table}")


class _Step:
    """As much indexing as one transaction does."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._room = Room()

    def sweep(self, swept: int, change: int) -> int | None:
        """Index sessions above a number, as they are after a change; the last one that is done, ``None`` if all are."""
        numbers = self._connection.execute(SQL["sessions_to_index"], (swept, SESSIONS_A_STEP)).fetchall()
        for (number,) in numbers:
            if not self._index(number, change, None):
                return swept
            swept = number
        return swept if len(numbers) == SESSIONS_A_STEP else None

    def follow(self, change: int) -> int:
        """Index what changed after a change; the last one that is done."""
        rows = self._connection.execute(SQL["changes_to_index"], (change, CHANGES_A_STEP)).fetchall()
        for next_change, number, rewound_to, is_gone in rows:
            if is_gone:
                if not self._forget(number, None):
                    return change
                self._connection.execute(SQL["forget_indexed"], (number,))
            elif not self._index(number, next_change, rewound_to):
                return change
            change = next_change
        return change

    def _index(self, number: int, change: int, rewound_to: int | None) -> bool:
        """Index what is new in a session, and forget what a change removed from it; whether that is all."""
        with damaged_as_bytes(self._connection):
            row = self._connection.execute(SQL["indexed_session"], (number,)).fetchone()
        if row is None:
            return True  # deleted by a later change
        label, seq, seen, indexed_title = row
        title = label if isinstance(label, str) else None
        if rewound_to is not None and seq is not None and seen < change:
            if not self._forget(number, rewound_to):
                return False
            seq = min(seq, rewound_to)
        found = self._records_after(number, seq)
        add_words(
            self._connection,
            [(place, text_to_index(kind_of_column(kind), body)) for place, kind, body in found],
        )
        if title != indexed_title:
            set_title_words(self._connection, number, title)
        new_seq = seq_of(found[-1][0]) if found else seq or 0
        self._connection.execute(SQL["set_indexed"], (number, new_seq, change, title))
        return self._room.is_left

    def _records_after(self, number: int, seq: int | None) -> list[tuple[Any, ...]]:
        """The next records of a session, as many as there is room for: places, kinds and bodies."""
        found: list[tuple[Any, ...]] = []
        with closing(self._connection.execute(SQL["records_to_index"], places_between(number, seq, None))) as rows:
            while self._room.is_left and (row := rows.fetchone()) is not None:
                self._room.take(len(row[2]))
                found.append(row)
        return found

    def _forget(self, number: int, after: int | None) -> bool:
        """Forget words of records after a number; whether that is all."""
        return remove_words(self._connection, number, after=after, room=self._room) is None
