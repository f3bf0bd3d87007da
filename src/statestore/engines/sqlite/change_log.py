"""What a transaction notes of what it changes: watchers are told of it, and the index of words follows it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from statestore.engines.places import LAST_SEQ
from statestore.engines.sqlite.statements import SQL


class ChangeLog:
    """The changes of one transaction, in order; those that only add records are noted together."""

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._execute = cursor.execute
        self._execute_many = cursor.executemany
        self._appended: list[tuple[int, int, int]] = []
        self.length = 0
        """How many changes were noted."""

    def note(
        self, number: int, first: int | None, last: int | None, truncate_after: int | None, *, is_header: bool
    ) -> None:
        """Note what happened to a session: the records that it got, after which others went, whether more changed."""
        self.length += 1
        if first is None or last is None or is_header or truncate_after is not None:
            self.flush()
            kept = None if truncate_after is None else min(max(truncate_after, 0), LAST_SEQ)
            self._execute(SQL["note_change"], (number, first, last, kept, int(is_header) or None))
        else:
            self._appended.append((number, first, last))  # as almost always

    def note_gone(self, runs: Iterable[tuple[int, int]], count: int) -> None:
        """Note that sessions are about to go: the first and the last number of each run, and how many they are."""
        self._execute_many(SQL["note_gone"], runs)
        self.length += count

    def flush(self) -> None:
        """Write down what was gathered."""
        if self._appended:
            self._execute_many(SQL["note_appended"], self._appended)
            self._appended = []
