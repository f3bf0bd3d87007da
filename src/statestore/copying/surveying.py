"""Before anything is copied: whether all that the target holds fits what the source has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from statestore.copying.ahead import ReadAhead, documents_ahead, sessions_ahead
from statestore.copying.damage import Damage
from statestore.copying.packing import Packer
from statestore.copying.standing import standing_of
from statestore.copying.telling import CopyRefused, Differences, Teller
from statestore.copying.walking import check_place, document_pages, document_place, session_pages, sessions_between
from statestore.copying.windows import Pace
from statestore.engine import Change, DeleteDocument, DeleteSession, Engine, Requires, SessionQuery
from statestore.errors import CorruptData, InvalidName
from statestore.store.reading import understanding
from statestore.stored import DocumentInfo, SessionSummary

_SURPLUS: Final = "only the target has it"


class Survey:
    """Looks at the items of the target.

    Given a ``remover``, it is there to take away what only the target has, and need not compare what the source lists.
    """

    def __init__(
        self, source: ReadAhead, target: ReadAhead, teller: Teller, damage: Damage, remover: Packer | None = None
    ) -> None:
        self._source = source
        self._target = target
        self._teller = teller
        self._damage = damage
        self._remover = remover
        self.is_fresh = True
        """Whether the target holds nothing at all."""
        self.surplus = Differences()
        """What only the target has."""
        self.removed = Differences()
        """What only the target had."""
        self.differing = Differences()
        """What both have, and what cannot become what the source has."""

    async def run(self) -> None:
        """Look at everything."""
        source, target = self._source.engine, self._target.engine
        self._teller.begin("comparing", await target.count_sessions(SessionQuery()))
        after: str | None = None
        async for page in session_pages(target):
            self.is_fresh = False
            ours = await sessions_between(source, after, page[-1].id)
            after = page[-1].id
            looked_at = page if self._remover is None else _unlisted(page, ours)
            async for summary in sessions_ahead(looked_at, (self._source, ours), (self._target, page)):
                await self._look_at_session(summary)
            self._teller.sessions += len(page)
            self._teller.tell()
        async for infos in document_pages(target):
            self.is_fresh = False
            async for info in documents_ahead(infos, self._source, self._target):
                await self._look_at_document(info)
                self._teller.documents += 1
            self._teller.tell()
        if self._remover is not None:
            await self._remover.flush()

    def check_fits(self, *, into_existing: bool) -> None:
        """Raise `CopyRefused`, naming what does not fit."""
        refused = [self.differing] if into_existing else [self.differing, self.surplus]
        if any(refused):
            hint = "" if into_existing else "; into_existing=True leaves alone what only the target has"
            raise CopyRefused(
                f"{self._target.engine.url} cannot become a copy of {self._source.engine.url}, and nothing was "
                f"written: {'; '.join(each.shown() for each in refused if each)}. Delete these from the target, copy "
                f"into an empty store, or remove and replace them with mirror=True{hint}",
                [difference for each in refused for difference in each.found],
            )

    async def _look_at_session(self, summary: SessionSummary) -> None:
        where = f"session {summary.id}"
        async with self._damage.noting_session(summary):
            ours = await self._source.read_session(summary.id, last=0)
            if ours is None:
                await self._note_surplus(where, DeleteSession(summary.id, Requires(version=summary.version)))
                return
            theirs = await self._target.read_session(summary.id, last=0)
            if theirs is None:
                return  # gone meanwhile
            with understanding(summary.id):
                found = await standing_of(self._source, self._target, ours, theirs, Pace.for_session(summary))
            if found.difference is not None:
                self.differing.add(where, found.difference)

    async def _look_at_document(self, info: DocumentInfo) -> None:
        where = document_place(info)
        place = (info.category, info.name, info.kind)
        async with self._damage.noting_document(info):
            ours = await self._source.get_document(*place)
            if ours is None and self._remover is None:
                self.surplus.add(where, _SURPLUS)  # damaged or not
                return
            theirs = await self._target.get_document(*place)
            if theirs is None:
                return  # gone meanwhile
            if ours is None:
                await self._note_surplus(where, DeleteDocument(*place, Requires(version=theirs.version)))
            elif theirs.body != ours.body:
                self.differing.add(where, "its contents are not the same")

    async def _note_surplus(self, where: str, removal: Change) -> None:
        if self._remover is None:
            self.surplus.add(where, _SURPLUS)
        else:
            self.removed.add(where, "only the target had it")
            await self._remover.add(removal, 0)


async def check_may_be_mirrored(source: Engine, target: Engine) -> None:
    """Raise `CopyRefused` if a mirror would remove all of a target, or what no store has made: that is not meant."""
    await _check_has_nothing_foreign(source, target)
    await _check_leaves_something(source, target)


async def _check_has_nothing_foreign(source: Engine, target: Engine) -> None:
    foreign = Differences()
    async for infos in document_pages(target):
        for info in infos:
            try:
                check_place(info)
            except InvalidName as error:
                if not await _may_have(source, info):
                    foreign.add(document_place(info), error)
    if foreign:
        raise CopyRefused(
            f"{target.url} holds what no store has made, and a mirror would remove it, so nothing was written: "
            f"{foreign.shown()}. Move these elsewhere, or copy into another store",
            foreign.found,
        )


async def _check_leaves_something(source: Engine, target: Engine) -> None:
    is_empty, after = True, None
    async for page in session_pages(target):
        if len(_unlisted(page, await sessions_between(source, after, page[-1].id))) < len(page):
            return
        is_empty, after = False, page[-1].id
    async for infos in document_pages(target):
        is_empty = False
        for info in infos:
            if await _may_have(source, info):
                return
    if not is_empty:
        raise CopyRefused(
            f"{source.url} has nothing of what {target.url} holds, and a mirror would remove all of it: check that "
            "these are the stores that you mean; if they are, empty the target, or copy into another store",
            (),
        )


async def _may_have(engine: Engine, info: DocumentInfo) -> bool:
    try:
        return await engine.get_document(info.category, info.name, info.kind) is not None
    except CorruptData:
        return True


def _unlisted(page: Iterable[SessionSummary], listed: Iterable[SessionSummary]) -> list[SessionSummary]:
    """Those of some sessions that a listing does not show: they may be gone, or damaged."""
    ids = {summary.id for summary in listed}
    return [summary for summary in page if summary.id not in ids]
