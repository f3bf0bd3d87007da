"""Keeping the index of words up to date with the change log, in steps that let others write in between."""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections import deque
from typing import Final

from statestore.engines.files.following import note_now
from statestore.engines.files.log_file import transaction
from statestore.engines.files.looking import Looker
from statestore.engines.files.noting import log_state
from statestore.engines.fulltext import CREATE_WORDS, LAST_SEQ, SEQ_BITS, add_words, remove_words, set_title_words
from statestore.searching import RULES, text_to_index
from statestore.stored import StoredRecord

RECORDS_A_STEP: Final = 1000
SESSIONS_A_STEP: Final = 64
_NOTHING: Final = -1
"""A number below all others, the title's too."""


def index_words(connection: sqlite3.Connection, looker: Looker) -> None:
    """Index the words of all sessions that are in the log, as far as they are not."""
    if log_state(connection).rules != RULES:
        _begin_anew(connection)
    while connection.execute("SELECT 1 FROM leftovers").fetchone():
        with transaction(connection):
            _Step(connection, looker).clear_leftovers()
    rows = connection.execute("SELECT id FROM sessions WHERE NOT is_indexed ORDER BY number").fetchall()
    waiting = deque(session_id for (session_id,) in rows)
    while waiting:
        _warm(looker, waiting)
        with transaction(connection):
            _Step(connection, looker).index_first_of(waiting)


def _begin_anew(connection: sqlite3.Connection) -> None:
    with transaction(connection):
        connection.execute("DROP TABLE words")
        connection.execute(CREATE_WORDS)
        connection.execute("DELETE FROM leftovers")
        connection.execute("UPDATE sessions SET indexed_seq = 0, kept_seq = 0, indexed_title = NULL, is_indexed = 0")
        connection.execute("UPDATE log SET rules = ?", (RULES,))


def _warm(looker: Looker, session_ids: deque[str]) -> None:
    """Parse what the next step needs before it holds a lock."""
    count = 0
    for _, session_id in zip(range(SESSIONS_A_STEP), session_ids, strict=False):
        look = looker.look(session_id)
        if look is not None and look.image is not None:
            count += len(looker.records(look.image))
        if count >= RECORDS_A_STEP:
            return


class _Step:
    """As much indexing as one transaction does."""

    def __init__(self, connection: sqlite3.Connection, looker: Looker) -> None:
        self._connection = connection
        self._looker = looker
        self._room = RECORDS_A_STEP

    def clear_leftovers(self) -> None:
        """Remove words of sessions that are gone."""
        for (number,) in self._connection.execute("SELECT number FROM leftovers").fetchall():
            if self._room <= 0 or self._removed_to(number, _NOTHING) != _NOTHING:
                return
            self._connection.execute("DELETE FROM leftovers WHERE number = ?", (number,))

    def index_first_of(self, waiting: deque[str]) -> None:
        """Index the first sessions that wait, and take those off that are done."""
        for _ in range(min(SESSIONS_A_STEP, len(waiting))):
            if self._room <= 0 or not self._index(waiting[0]):
                return
            waiting.popleft()

    def _index(self, session_id: str) -> bool:
        """Index what is new in a session, as it is now; whether that is all."""
        look = note_now(self._connection, self._looker, session_id)
        if look is None or not look.is_known:
            return True
        row = self._connection.execute(
            "SELECT number, given_title, indexed_seq, kept_seq, indexed_title FROM sessions WHERE id = ?", (session_id,)
        ).fetchone()
        if row is None:
            return True
        number, title, indexed, kept, indexed_title = row
        if kept < indexed:
            indexed = self._removed_to(number, kept)
        is_done = False
        if indexed <= kept:
            records = [] if look.image is None else self._looker.records(look.image)
            indexed, is_done = self._added_from(number, indexed, records)
            kept = indexed
        if title != indexed_title:
            set_title_words(self._connection, number, title)
        self._connection.execute(
            "UPDATE sessions SET indexed_seq = ?, kept_seq = ?, indexed_title = ?, is_indexed = ? WHERE number = ?",
            (indexed, kept, title, is_done, number),
        )
        return is_done

    def _added_from(self, number: int, indexed: int, records: list[StoredRecord]) -> tuple[int, bool]:
        """Index records after a number; up to which one that was done, and whether it is the last."""
        last = bisect_right(records, LAST_SEQ, key=_seq)  # beyond it, the index has no place
        first = bisect_right(records, indexed, key=_seq)
        some = records[first : min(last, first + max(self._room, 1))]
        add_words(
            self._connection,
            [(number << SEQ_BITS | record.seq, text_to_index(record.kind, record.body)) for record in some],
        )
        self._room -= len(some)
        return (some[-1].seq if some else indexed), first + len(some) >= last

    def _removed_to(self, number: int, kept: int) -> int:
        """Remove words of records after a number, the last ones first; the last number that still has words."""
        after = None if kept == _NOTHING else kept
        removal = remove_words(self._connection, number, after=after, room=self._room)
        self._room -= removal.removed + 1
        return kept if removal.left is None else removal.left


def _seq(record: StoredRecord) -> int:
    return record.seq
