"""Following what happens to sessions, as it happens, whoever does it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final, cast

from statestore.engine import Wakes, Watches
from statestore.errors import CorruptSession, InvalidCursor
from statestore.host import LONGEST_PAUSE, SHORTEST_PAUSE, Watch
from statestore.names import check_session_id
from statestore.notices import Notice, notice_of
from statestore.store.capabilities import watching
from statestore.store.logs import log
from statestore.store.reading import SessionReader, understanding
from statestore.stored import StoredNotice

LONGEST_WAIT: Final = 10.0
"""Seconds after which we look even though the engine did not wake us."""


class SessionWatcher(SessionReader):
    """Tells what happens to sessions, in order and every record once, whichever process does it."""

    async def change_cursor(self) -> str:
        """The present moment, for a later ``watch(after=…)``: take it, load what you need, then watch from there."""
        return await self._watched().change_cursor()

    def watch(self, session_id: str | None = None, *, after: str | None = None) -> AsyncGenerator[Notice]:
        """What happens to one session, or to all: a notice at a time, without end, from any process.

        It begins when the first notice is asked for, or after a cursor. Every record comes once, with its number.
        ``notice.cursor`` is where another watch can go on, also in another process; `CursorExpired` if that is too
        long ago.
        """
        session_id = None if session_id is None else check_session_id(session_id)
        if after is not None and not isinstance(after, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidCursor(f"after is the .cursor of a notice, not {type(after).__name__}")
        self._watched()
        return self._notices(session_id, after)

    async def _notices(self, session_id: str | None, after: str | None) -> AsyncGenerator[Notice]:
        cursor = await self.change_cursor() if after is None else after
        pause = SHORTEST_PAUSE
        while True:
            page = await self._watched().read_changes(cursor, session_id=session_id, user_id=self._owner)
            for notice in page.notices:
                told = _understood(notice)
                if told is not None:
                    yield told
            if page.cursor == cursor:
                cursor = await self._wait(Watch(cursor, session_id, self._owner), pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            else:
                cursor, pause = page.cursor, SHORTEST_PAUSE

    async def _wait(self, watch: Watch, pause: float) -> str:
        """Wait until something happens, or for a while if nobody can tell; where to read on."""
        if hasattr(self._engine, "wait_for_changes"):
            await cast("Wakes", self._engine).wait_for_changes(watch.cursor, LONGEST_WAIT)
            return watch.cursor
        return await self._host.wait_for_changes(watch, pause)

    def _watched(self) -> Watches:
        return watching(self._engine)


def _understood(notice: StoredNotice) -> Notice | None:
    """What a watcher is told; nothing of a record that cannot be read, so that it hides no other one."""
    try:
        with understanding(notice.session_id):
            return notice_of(notice)
    except CorruptSession as error:
        log().warning("watchers are not told of record %s: %s", notice.seq, error)
        return None
