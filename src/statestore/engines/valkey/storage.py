"""What engines on one server and on a cluster share: opening, reading, and the settings of their store."""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from typing import Final

from statestore.engine import DocumentQuery, SessionQuery
from statestore.engines.calls import Calls
from statestore.engines.options import check_writable, is_durable
from statestore.engines.valkey import reading
from statestore.engines.valkey.calling import Caller
from statestore.engines.valkey.keys import Keys
from statestore.engines.valkey.mending import Finding, mend
from statestore.engines.valkey.probing import check_rights
from statestore.engines.valkey.scripts import OPEN
from statestore.engines.valkey.straying import sessions_that_may_be_of, strays_among
from statestore.engines.valkey.surveying import survey
from statestore.errors import StoreNotFound, StoreUnavailable
from statestore.stored import Document, DocumentInfo, DocumentKind, Problem, SessionSummary, StoredSession

VERSION: Final = 1
"""Of the layout of keys and values."""


class Storage(ABC):
    """A store on whatever answers: opened, closed and read in the same way everywhere."""

    def __init__(self, caller: Caller, *, create: bool, read_only: bool, durability: str) -> None:
        self._caller = caller
        self._address = caller.address
        self._keys = Keys(caller.address.prefix)
        self._create = create
        self._read_only = read_only
        self._is_durable = is_durable(durability)
        self._calls = Calls(self.url)

    @property
    def url(self) -> str:
        """The store as a URL, without any password."""
        return self._address.url

    async def open(self) -> None:
        """Connect, and see that there is a store that we can read."""
        await self._caller.open()
        try:
            await self._look_at_server()
            await self._look_at_store()
            if not self._read_only:
                await check_rights(self._caller, self._keys)
        except BaseException:
            await self._caller.close()
            raise
        self._calls = Calls(self.url)  # of this event loop, which may be another one than the last time
        self._calls.open()

    @abstractmethod
    async def _look_at_server(self) -> None:
        """Refuse a server that is not what the URL says."""

    async def _look_at_store(self) -> None:
        makes = not self._read_only and self._create
        expires = "1" if self._address.ttl and not self._read_only else "0"
        arguments = (str(VERSION), os.urandom(8).hex() if makes else "", expires)
        version, identity, _ = await self._caller.run(OPEN, (self._keys.store,), *arguments, keep_trying=False)
        if version is None:
            raise StoreNotFound.at(self.url, read_only=self._read_only)
        if not version.isdigit() or identity is None:
            raise StoreUnavailable(f"{self.url}: the key {self._keys.store} is none of ours; choose another prefix")
        if int(version) > VERSION:
            raise StoreUnavailable(
                f"{self.url} has the layout version {int(version)}, and this statestore knows {VERSION}: "
                "use the newer statestore that made it"
            )

    async def close(self) -> None:
        """Wait for calls under way, then let go of all connections; if it is called off, that goes on by itself."""
        await asyncio.shield(asyncio.create_task(self._let_go(), name="statestore-closing"))

    async def _let_go(self) -> None:
        if await self._calls.close():
            await self._caller.close()

    def _check_writable(self) -> None:
        check_writable(self, read_only=self._read_only)

    async def read_session(
        self, session_id: str, *, after: int | None = None, before: int | None = None, last: int | None = None
    ) -> StoredSession | None:
        """One session, with the records that are asked for."""
        with self._calls:
            return await reading.read_session(self._caller, self._keys, session_id, after, before, last)

    async def read_sessions(self, ids: Sequence[str]) -> list[StoredSession]:
        """Those of some sessions that are small and can be read, whole; the others are to be read one by one."""
        with self._calls:
            return await reading.read_sessions(self._caller, self._keys, ids)

    @abstractmethod
    async def list_sessions(self, query: SessionQuery) -> list[SessionSummary]:
        """The sessions that a query selects."""

    async def get_document(self, category: str, name: str, kind: DocumentKind) -> Document | None:
        """One document."""
        with self._calls:
            return await reading.get_document(self._caller, self._keys, category, name, kind)

    async def get_documents(self, category: str, places: Sequence[tuple[str, DocumentKind]]) -> list[Document]:
        """Those of some documents that are small and can be read; the others are to be read one by one."""
        with self._calls:
            return await reading.get_documents(self._caller, self._keys, category, places)

    async def list_documents(self, query: DocumentQuery) -> list[DocumentInfo]:
        """What a category holds, by name, then kind."""
        with self._calls:
            return await reading.list_documents(self._caller, self._keys, query)

    async def check(self) -> list[Problem]:
        """Everything that is wrong with what is stored, and with how safely the server keeps it."""
        with self._calls:
            return [finding.problem async for finding in self._survey() if finding.problem is not None]

    async def repair(self) -> list[Problem]:
        """List what no index knows, and remove entries of what is gone; what is stored is left as it is."""
        self._check_writable()
        with self._calls:
            mended = [await mend(self._caller, finding) async for finding in self._survey() if finding.has_remedy]
        return [problem for problem in mended if problem is not None]

    async def strays_of(self, user_id: str) -> list[str]:
        """The sessions that no listing shows, but for those that certainly are another user's."""
        with self._calls:
            suspects = await sessions_that_may_be_of(self._caller, self._keys, user_id)
        if not suspects:
            return []
        listed = await self.list_sessions(SessionQuery(user_id=user_id))
        return strays_among(self._keys, suspects, {summary.id for summary in listed})

    def _survey(self) -> AsyncIterator[Finding]:
        return survey(self._caller, self._keys, is_durable=self._is_durable)
