"""What cannot be read, told apart by the store that has it: whoever is to delete it must not delete the sound one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from statestore.copying.telling import Differences
from statestore.copying.walking import document_place
from statestore.copying.windows import Pace, ReadsSessions, windows
from statestore.engine import Engine
from statestore.errors import CorruptData, InvalidName
from statestore.store.reading import understanding
from statestore.store.recreating import creation
from statestore.stored import DocumentInfo, SessionSummary


class Damage:
    """Notes the items that two stores cannot be compared in."""

    def __init__(self, source: Engine, target: Engine) -> None:
        self._source = source
        self._target = target
        self.in_source = Differences()
        """What the source cannot give: it is damaged, or no store can have given it its name."""
        self.in_target = Differences()
        """What the target has and cannot read: it is left as it is."""

    def __contains__(self, where: str) -> bool:
        return where in self.in_source or where in self.in_target

    def __bool__(self) -> bool:
        return bool(self.in_source or self.in_target)

    @asynccontextmanager
    async def noting_session(self, summary: SessionSummary) -> AsyncGenerator[None]:
        """While a session is read from both stores: note it if one of them cannot, and go on."""
        try:
            yield
        except (CorruptData, InvalidName) as error:
            await self._note(f"session {summary.id}", error, lambda engine: read_through(engine, summary))

    @asynccontextmanager
    async def noting_document(self, info: DocumentInfo) -> AsyncGenerator[None]:
        """The same for a document."""
        try:
            yield
        except (CorruptData, InvalidName) as error:
            place = (info.category, info.name, info.kind)
            await self._note(document_place(info), error, lambda engine: engine.get_document(*place))

    async def _note(self, where: str, error: Exception | None, read: Callable[[Engine], Awaitable[object]]) -> None:
        """Note an item that cannot be read, once it is known whether it is the target that cannot."""
        if isinstance(error, CorruptData):
            theirs = await _failure_of(read(self._target))
            if theirs is not None:
                self.in_target.add(where, theirs)
                error = await _failure_of(read(self._source))
        if error is not None:
            self.in_source.add(where, error)


async def read_through(store: ReadsSessions, summary: SessionSummary) -> None:
    """Read all of a session, and raise `CorruptSession` if it could not be created anew."""
    async for window in windows(store, summary.id, Pace.for_session(summary)):
        with understanding(summary.id):
            creation(window.stored, is_whole=False)


async def _failure_of(reading: Awaitable[object]) -> CorruptData | None:
    try:
        await reading
    except CorruptData as error:
        return error
    return None
