"""Keeping the index of words up to date with the change log, in steps that let others write in between."""

from __future__ import annotations

import sqlite3
from collections import deque
from itertools import islice
from typing import Final

from statestore.engines.files.following import note_now
from statestore.engines.files.log_file import transaction
from statestore.engines.files.looking import Looker
from statestore.engines.files.noting import log_state
from statestore.engines.fulltext import CREATE_WORDS, add_words, remove_words, set_title_words
from statestore.engines.places import LAST_SEQ, place_of
from statestore.engines.stepping import BYTES_A_STEP, Room
from statestore.searching import RULES, text_to_index
from statestore.seedform.order import OrderedRecords

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
        if log_state(connection).rules == RULES:
            return  # somebody else began
        connection.execute("DROP TABLE words")
        connection.execute(CREATE_WORDS)
        connection.execute("DELETE FROM leftovers")
        connection.execute("UPDATE sessions SET indexed_seq = 0, kept_seq = 0, indexed_title = NULL, is_indexed = 0")
        connection.execute("UPDATE log SET rules = ?", (RULES,))


def _warm(looker: Looker, session_ids: deque[str]) -> None:
    """Parse what the next step needs before it holds a lock."""
    size = 0
    for session_id in islice(session_ids, SESSIONS_A_STEP):
        look = looker.look(session_id)
        if look is not None and look.image is not None:
            look.image.text.ordered()
            size += look.entry.size
        if size >= BYTES_A_STEP:
            return


class _Step:
    """As much indexing as one transaction does."""

    def __init__(self, connection: sqlite3.Connection, looker: Looker) -> None:
        self._connection = connection
        self._looker = looker
        self._room = Room()

    def clear_leftovers(self) -> None:
        """Remove words of sessions that are gone."""
        for (number,) in self._connection.execute("SELECT number FROM leftovers").fetchall():
            if not self._room.is_left or self._removed_to(number, _NOTHING) != _NOTHING:
                return
            self._connection.execute("DELETE FROM leftovers WHERE number = ?", (number,))

    def index_first_of(self, waiting: deque[str]) -> None:
        """Index the first sessions that wait, and take those off that are done."""
        for _ in range(min(SESSIONS_A_STEP, len(waiting))):
            if not self._room.is_left or not self._index(waiting[0]):
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
            records = None if look.image is None else look.image.text.ordered()
            indexed, is_done = (indexed, True) if records is None else self._added_from(number, indexed, records)
            kept = indexed
        if title != indexed_title:
            set_title_words(self._connection, number, title)
        self._connection.execute(
            "UPDATE sessions SET indexed_seq = ?, kept_seq = ?, indexed_title = ?, is_indexed = ? WHERE number = ?",
            (indexed, kept, title, is_done, number),
        )
        return is_done

    def _added_from(self, number: int, indexed: int, records: OrderedRecords) -> tuple[int, bool]:
        """Index records after a number; up to which one that was done, and whether it is the last."""
        texts: list[tuple[int, str]] = []
        is_done = True
        for record in records.one_by_one(indexed, LAST_SEQ + 1):  # beyond that, the index has no place
            is_done = self._room.is_left
            if not is_done:
                break
            texts.append((place_of(number, record.seq), text_to_index(record.kind, record.body)))
            self._room.take(len(record.body))
            indexed = record.seq
        add_words(self._connection, texts)
        return indexed, is_done

    def _removed_to(self, number: int, kept: int) -> int:
        """Remove words of records after a number, the last ones first; the last number that still has words."""
        after = None if kept == _NOTHING else kept
        left = remove_words(self._connection, number, after=after, room=self._room)
        self._room.take(0)  # looking for them is work, too
        return kept if left is None else left
