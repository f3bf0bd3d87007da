"""Removing everything of one user, whoever is writing meanwhile."""

from __future__ import annotations

from contextlib import suppress
from typing import Final, cast

from statestore.engine import DeleteSession, Engine, FindsStrays, Requires, Searches, SessionQuery, Watches
from statestore.errors import CorruptData, CursorExpired, SessionConflict
from statestore.names import TRASH
from statestore.store.deleting import CHUNK, deletable_chunks, delete_sessions
from statestore.store.in_trash import names_of_nobody
from statestore.store.trashing import SessionTrasher
from statestore.store.writing import MAX_ATTEMPTS

NAMED: Final = 5
"""How many places of what was left are named."""


class Erasure:
    """The end of a user's sessions, and of what the trash has of them.

    Somebody may throw a session away just before it is deleted, or take it out of the trash just before that is
    emptied. So it is over only when neither has any, and nothing happened to the user's sessions between the two looks.
    """

    def __init__(self, engine: Engine, trash: SessionTrasher, user_id: str) -> None:
        self._engine = engine
        self._trash = trash
        self._user_id = user_id

    async def make(self) -> int:
        """Remove everything; how many sessions there were. `SessionConflict` if others never stop making new ones.

        `CorruptData` if something is left that is the user's, or may be: nobody can read it.
        """
        erased = 0
        for _ in range(MAX_ATTEMPTS):
            since = await self._now()
            listed, deleted = await self._erase_sessions()
            thrown = await self._trash.empty_trash()
            erased += deleted + thrown
            if not listed and not thrown and not await self._has_stirred(since):
                break
        else:
            raise SessionConflict(
                f"{erased} sessions of {self._user_id!r} were erased, and others make new ones all the time: "
                "stop them, and erase again"
            )
        if hasattr(self._engine, "update_search_index"):
            await cast("Searches", self._engine).update_search_index()
        await self._check_none_is_left()
        await self._check_nothing_is_astray(erased)
        return erased

    async def _erase_sessions(self) -> tuple[int, int]:
        """Remove sessions until a listing has none; how many were listed, and how many of them were still there."""
        listed = deleted = 0
        query = SessionQuery(user_id=self._user_id, order="id", limit=CHUNK)
        while found := await self._engine.list_sessions(query):
            listed += len(found)
            for chunk in deletable_chunks(found):
                doomed = [DeleteSession(summary.id, Requires(owner=self._user_id)) for summary in chunk]
                deleted += await delete_sessions(self._engine, doomed)
        return listed, deleted

    async def _check_none_is_left(self) -> None:
        """Raise `CorruptData` if the user still has sessions, and they cannot be listed."""
        query = SessionQuery(user_id=self._user_id)
        for _ in range(MAX_ATTEMPTS):
            since = await self._now()
            left = await self._engine.count_sessions(query)
            if not left or await self._is_any_listed():
                return
            if not await self._has_stirred(since):
                raise CorruptData(
                    f"{left} sessions of {self._user_id!r} are damaged, and were left: check() names them, "
                    "delete_session removes each"
                )

    async def _check_nothing_is_astray(self, erased: int) -> None:
        """Raise `CorruptData` if there is something of which nobody can tell whose it is, or which no listing shows."""
        places = [f"{TRASH}/{name}" for name in await names_of_nobody(self._engine)]
        advice = "look there, mend or remove it by hand"
        if places:
            advice += " (all that is in the trash goes when the whole trash is emptied)"
        if hasattr(self._engine, "strays_of"):
            places += await cast("FindsStrays", self._engine).strays_of(self._user_id)
        if places:
            named = ", ".join(places[:NAMED]) + (", …" if len(places) > NAMED else "")
            raise CorruptData(
                f"{erased} sessions of {self._user_id!r} were erased, and {len(places)} may be left, which cannot be "
                f"read or which no listing shows: {named}: {advice}, and erase again"
            )

    async def _now(self) -> str | None:
        """A cursor, on engines that can be watched."""
        return await cast("Watches", self._engine).change_cursor() if hasattr(self._engine, "change_cursor") else None

    async def _has_stirred(self, since: str | None) -> bool:
        """Whether anything happened to the user's sessions since then; where nobody can tell, whether there are any."""
        if since is None:
            return await self._is_any_listed()
        engine = cast("Watches", self._engine)
        with suppress(CursorExpired):  # so much happened that nobody can tell what
            while not (page := await engine.read_changes(since, user_id=self._user_id)).notices:
                if page.cursor == since:
                    return False
                since = page.cursor
        return True

    async def _is_any_listed(self) -> bool:
        return bool(await self._engine.list_sessions(SessionQuery(user_id=self._user_id, limit=1)))
