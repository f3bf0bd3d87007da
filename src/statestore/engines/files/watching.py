"""What happened since a moment, read from the change log."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Final

from statestore.engine import ChangePage
from statestore.engines.files.image import SessionImage
from statestore.engines.files.log_file import LogDamaged
from statestore.engines.files.looking import Looker
from statestore.engines.files.noting import LogState, log_state
from statestore.engines.files.states import mark_of, marks_in
from statestore.engines.snapshots import snapshot
from statestore.engines.telling import ChangeRow, Moment, tell
from statestore.errors import CorruptSession, CursorExpired, InvalidCursor
from statestore.stored import StoredRecord

_MOST: Final = 2**63 - 1

_CHANGES: Final = (
    "SELECT change, changes.number, first, last, rewound_to, is_header, gone_id, gone_user, id, user_id, created "
    "FROM changes LEFT JOIN sessions ON sessions.number = changes.number WHERE change > :after "
    "AND (:session_id IS NULL OR id = :session_id OR gone_id = :session_id) "
    "AND (:user_id IS NULL OR user_id = :user_id OR gone_user = :user_id) ORDER BY change LIMIT :limit"
)


def read_changes(
    connection: sqlite3.Connection,
    looker: Looker,
    after: Moment,
    *,
    session_id: str | None,
    user_id: str | None,
    limit: int,
) -> ChangePage:
    """What happened after a moment, in order."""
    with snapshot(connection):
        state = log_state(connection)
        _check(after, state)
        limit = max(1, min(limit, _MOST))
        asked = {"after": after.change, "session_id": session_id, "user_id": user_id, "limit": limit}
        changes = [ChangeRow(*row) for row in connection.execute(_CHANGES, asked)]
        until = state.last if len(changes) < limit else changes[-1].change
        added = _Remains(connection, looker).added
        while True:
            try:
                return tell(changes, after, added, until=until, limit=limit)
            except _NotAsNoted as found:  # the next scan notes what it is then: until that, this change is not told
                until = found.change - 1
                changes = [change for change in changes if change.change <= until]


def is_behind(connection: sqlite3.Connection, cursor: str) -> bool:
    """Whether the log has noted more than was told up to a cursor."""
    moment, state = Moment.parse(cursor), log_state(connection)
    return moment.identity == state.identity and moment.change < state.last


class _NotAsNoted(Exception):
    """A session file is not what it was when the log noted a change, so that what the change added is not there."""

    def __init__(self, change: int) -> None:
        super().__init__(change)
        self.change = change


def _check(after: Moment, state: LogState) -> None:
    """Raise if the log cannot tell what happened after a moment."""
    if after.identity == state.identity and after.change > state.last:
        raise InvalidCursor(f"{after.cursor[:60]!r} is not a cursor of this store, which has seen less")
    if after.identity != state.identity or after.change < state.oldest - 1:
        raise CursorExpired(
            f"the changes since {after.cursor[:60]!r} are no longer kept: load anew, and watch from change_cursor()"
        )


def _unlike(change: ChangeRow, image: SessionImage, version: str) -> Exception:
    """Why what is in a file is not what the log has of it: one of the two is damaged, or the file is newer."""
    if str(image.version) == version:
        return LogDamaged(f"what it notes of session {change.id} is not what is in its file")
    return _NotAsNoted(change.change)


class _Remains:
    """What there still is of the records that changes added."""

    def __init__(self, connection: sqlite3.Connection, looker: Looker) -> None:
        self._connection = connection
        self._looker = looker

    def added(self, change: ChangeRow, told: int) -> Iterator[StoredRecord]:
        """The records that were added, after ``told``, and neither removed nor rewritten again."""
        if change.first is None or change.last is None:
            return
        number = change.number, change.change
        (rewound_to,) = self._connection.execute(
            "SELECT min(rewound_to) FROM changes WHERE number = ? AND change > ? AND rewound_to IS NOT NULL", number
        ).fetchone()
        first = max(change.first, told + 1)
        last = change.last if rewound_to is None else min(change.last, rewound_to)
        if first > last:
            return
        text, version = self._connection.execute(
            "SELECT marks, version FROM marks JOIN sessions USING (number) WHERE number = ?", number[:1]
        ).fetchone()
        image, marks = self._image(change), marks_in(text)
        if image is None:
            if marks:
                raise _NotAsNoted(change.change)
            return
        records = image.text.ordered()
        place = records.count_below(first)
        for record in records.one_by_one(first - 1, last + 1):
            if place >= len(marks):
                return
            if marks[place] != mark_of(record):
                raise _unlike(change, image, version)
            yield record
            place += 1
        if records.total == place < len(marks):
            raise _unlike(change, image, version)

    def _image(self, change: ChangeRow) -> SessionImage | None:
        """The session's file, if it still is that session's and can be read."""
        assert change.id is not None
        try:
            image = self._looker.image(change.id)
        except CorruptSession:
            return None
        if image is None:
            return None
        fields = image.text.fields
        return image if (fields.user_id, fields.created) == (change.user_id, change.created) else None
