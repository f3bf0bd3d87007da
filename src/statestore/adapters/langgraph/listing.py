"""Listing checkpoints, newest first, and finding the threads that hold them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from typing import Any, Final

from langgraph.checkpoint.base import CheckpointTuple

from statestore.adapters.identifiers import foreign_id
from statestore.adapters.langgraph.getting import Getter
from statestore.adapters.langgraph.noted import Kept
from statestore.adapters.langgraph.notes import FRAMEWORK
from statestore.adapters.langgraph.thread import Thread
from statestore.adapters.several import for_each
from statestore.errors import InvalidName, NotSupported
from statestore.store.async_store import AsyncStateStore
from statestore.store.logs import log

_PAGE: Final = 20
_SESSIONS: Final = 200
Choice = tuple[Thread, str, str]
"""A checkpoint of a thread: its namespace and its id."""


class Lister:
    """One listing, a page at a time."""

    def __init__(
        self,
        getter: Getter,
        thread_of: Callable[[str], Thread],
        *,
        thread_id: str | None,
        user_id: str | None,
        ns: str | None,
        checkpoint_id: str | None,
        filter: dict[str, Any],
        before: str | None,
        limit: int | None,
    ) -> None:
        self._getter = getter
        self._thread_of = thread_of
        self._thread_id = thread_id
        self._user_id = user_id
        self._ns = ns
        self._checkpoint_id = checkpoint_id
        self._filter = filter
        self._before = before
        self._left = None if limit is None else max(limit, 0)
        self._chosen: deque[Choice] = deque()
        self._is_over = False

    async def page(self, store: AsyncStateStore) -> list[CheckpointTuple] | None:
        """The next checkpoints; ``None`` at the end."""
        page: list[CheckpointTuple] = []
        while len(page) < _PAGE and self._left != 0:
            if not self._chosen and not self._is_over:
                await self._choose(store)
            if not self._chosen:
                break
            found = await self._getter.get_known(store, *self._chosen.popleft())
            if found is None:
                continue  # removed since it was chosen
            page.append(found)
            if self._left is not None:
                self._left -= 1
        return page or None

    async def _choose(self, store: AsyncStateStore) -> None:
        """Choose as many checkpoints as are still asked for, newest first, behind those that were chosen before."""
        thread_ids = [self._thread_id] if self._thread_id is not None else await self.thread_ids(store)
        found = await for_each(store, thread_ids, lambda thread_id: self._newest_of(store, thread_id))
        newest = sorted(chain.from_iterable(found), key=lambda choice: choice[2], reverse=True)[: self._left]
        self._chosen.extend(newest)
        self._is_over = self._left is None or len(newest) < self._left
        if newest:
            self._before = newest[-1][2]

    async def _newest_of(self, store: AsyncStateStore, thread_id: str) -> list[Choice]:
        """As many checkpoints of a thread as are still asked for, newest first."""
        thread = self._thread_of(thread_id)
        async with thread.turn(store):
            found = await thread.look(store, partial(self._newest, store, thread)) or []
            return [(thread, *kept.key) for kept in found]

    async def _newest(self, store: AsyncStateStore, thread: Thread) -> list[Kept]:
        """The same of a thread that is up to date. It is read back until everything that lies deeper is older."""
        if self._left is None and not self._checkpoint_id:
            await thread.extend(store)
        while True:
            newest: list[Kept] = []
            for kept in sorted(thread.view.checkpoints.values(), key=lambda kept: kept.id, reverse=True):
                if len(newest) == self._left:
                    break
                if await self._matches(store, thread, kept):
                    newest.append(kept)
            lowest = newest[-1].id if len(newest) == self._left else self._checkpoint_id or ""
            if not thread.view.may_lie_deeper(lowest):
                return newest
            await thread.deepen(store)

    async def _matches(self, store: AsyncStateStore, thread: Thread, kept: Kept) -> bool:
        if self._ns is not None and kept.head.ns != self._ns:
            return False
        if self._checkpoint_id and kept.id != self._checkpoint_id:
            return False
        if self._before is not None and kept.id >= self._before:
            return False
        if not self._filter:
            return True
        await thread.know_what_it_needs(store, kept)
        metadata = self._getter.metadata_of(thread.view.note_of(kept))
        return all(metadata.get(key) == value for key, value in self._filter.items())

    async def thread_ids(self, store: AsyncStateStore) -> list[str]:
        """The threads that there are."""
        found: list[str] = []
        after: str | None = None
        while page := await store.list_sessions(user_id=self._user_id, order="id", limit=_SESSIONS, after=after):
            found += await self._threads_in(store, [summary.id for summary in page])
            after = page[-1].cursor
        return found

    async def threads_with_runs(self, store: AsyncStateStore, run_ids: Iterable[str]) -> list[str]:
        """The threads that may hold checkpoints of these runs: a search finds them by the runs' ids."""
        session_ids: dict[str, None] = {}
        for run_id in run_ids:
            after: str | None = None
            try:
                words = '"' + run_id.replace('"', " ") + '"'
                while hits := await store.search_sessions(words, user_id=self._user_id, limit=_SESSIONS, after=after):
                    session_ids |= dict.fromkeys(hit.session_id for hit in hits)
                    after = hits[-1].cursor
            except NotSupported:  # the engine finds no words
                return await self.thread_ids(store)
        return await self._threads_in(store, session_ids)

    async def _threads_in(self, store: AsyncStateStore, session_ids: Iterable[str]) -> list[str]:
        """The threads among some sessions."""
        found: list[str] = []
        for session in await for_each(store, session_ids, lambda session_id: store.load_session(session_id, last=0)):
            if session is not None and session.metadata.get("framework") == FRAMEWORK:
                try:
                    found.append(foreign_id(session.id, session.metadata))
                except InvalidName as error:
                    log().warning("a thread is left out: %s", error)
        return found
