"""Copying what the target lacks: new sessions and documents, and the rest of sessions that are behind.

A mirror also gets what the target has otherwise: a document is overwritten, a session is deleted and created anew.
"""

from __future__ import annotations

from statestore.copying.ahead import ReadAhead, documents_ahead, sessions_ahead
from statestore.copying.changes import catching_up, continuation, prop, unprop, whole_rest
from statestore.copying.damage import Damage, read_through
from statestore.copying.packing import Packer
from statestore.copying.standing import headers_are_equal, standing_of
from statestore.copying.surveying import Survey
from statestore.copying.telling import Differences, Teller
from statestore.copying.walking import check_place, document_pages, document_place, session_pages, sessions_between
from statestore.copying.windows import Pace, has_records, windows
from statestore.engine import ChangeSession, DeleteSession, PutDocument, Requires, SessionQuery
from statestore.names import check_session_id
from statestore.store.reading import understanding
from statestore.store.recreating import creation
from statestore.stored import DocumentInfo, SessionSummary, StoredSession, Version


class Transfer:
    """Goes through the source, and writes to the target."""

    def __init__(
        self,
        source: ReadAhead,
        target: ReadAhead,
        teller: Teller,
        survey: Survey,
        packer: Packer,
        damage: Damage,
        *,
        mirror: bool,
    ) -> None:
        self._source = source
        self._target = target
        self._teller = teller
        self._survey = survey
        self._packer = packer
        self._damage = damage
        self._mirror = mirror
        self.skipped = 0
        """How many items the target had already."""
        self.replaced = Differences()
        """What the target had otherwise."""

    async def run(self) -> None:
        """Copy everything that can be read and held."""
        source, target = self._source.engine, self._target.engine
        self._teller.begin("copying", await source.count_sessions(SessionQuery()))
        after: str | None = None
        async for page in session_pages(source):
            theirs = [] if self._survey.is_fresh else await sessions_between(target, after, page[-1].id)
            there = {summary.id for summary in theirs}
            after = page[-1].id
            async for summary in sessions_ahead(page, (self._source, page), (self._target, theirs)):
                await self._copy_session(summary, is_there=summary.id in there)
                self._teller.sessions += 1
        stores = (self._source,) if self._survey.is_fresh else (self._source, self._target)
        async for infos in document_pages(source):
            async for info in documents_ahead(infos, *stores):
                await self._copy_document(info)
                self._teller.documents += 1
        await self._packer.flush()
        self._teller.tell()

    async def _copy_session(self, summary: SessionSummary, *, is_there: bool) -> None:
        where = f"session {summary.id}"
        if where in self._damage:
            return
        async with self._damage.noting_session(summary):
            check_session_id(summary.id)
            with self._packer.noting(where):
                await (self._continue_session(summary) if is_there else self._create_session(summary))

    async def _create_session(self, summary: SessionSummary) -> None:
        if Pace.for_session(summary).width is None:
            await self._create_whole(summary)
        else:
            await self._create_in_parts(summary)

    async def _create_whole(self, summary: SessionSummary) -> None:
        stored = await self._source.read_session(summary.id)
        if stored is not None:  # or it was deleted meanwhile
            with understanding(summary.id):
                change = creation(stored, is_whole=True)
            await self._packer.add(change, self._counted(change))

    async def _create_in_parts(self, summary: SessionSummary) -> None:
        head: StoredSession | None = None
        version: Version | None = None
        last_seq = 0
        async for window in windows(self._source, summary.id, Pace.for_session(summary)):
            part = window.stored
            head = head or part
            if version is None or has_records(part):
                with understanding(summary.id):
                    change = creation(part, is_whole=False) if version is None else continuation(head, part)
                version = await self._commit(change, version)
                last_seq = _last_seq(change, last_seq)
        if head is not None and version is not None:
            await self._take_numbers(head, version, last_seq, last_seq + 1)

    async def _continue_session(self, summary: SessionSummary) -> None:
        ours = await self._source.read_session(summary.id, last=0)
        theirs = await self._target.read_session(summary.id, last=0)
        if ours is None or theirs is None:
            return  # gone meanwhile: verifying tells
        pace = Pace.for_session(summary)
        with understanding(summary.id):
            standing = await standing_of(self._source, self._target, ours, theirs, pace, is_trusted=not self._mirror)
        if standing.difference is not None:
            if self._mirror:
                await self._replace_session(summary, theirs.version, standing.difference)
            return  # else it was changed meanwhile: verifying tells
        if standing.is_same:
            self.skipped += 1
            return
        if not standing.is_propped and pace.width is None:
            change = await self._whole_rest(ours, theirs, standing.last_seq)
            if change is not None:
                await self._packer.add(change, self._counted(change))
                return
        version, last_seq, next_seq = theirs.version, standing.last_seq, theirs.next_seq
        if standing.is_propped:
            version = await self._commit(unprop(ours, last_seq), version)
        if not headers_are_equal(ours, theirs):
            for change in catching_up(ours, theirs):
                version = await self._commit(change, version)
        async for window in windows(self._source, summary.id, pace, after=last_seq):
            if has_records(window.stored):
                with understanding(summary.id):
                    change = continuation(ours, window.stored)
                version = await self._commit(change, version)
                last_seq = _last_seq(change, last_seq)
                next_seq = last_seq + 1
        await self._take_numbers(ours, version, last_seq, next_seq)

    async def _replace_session(self, summary: SessionSummary, version: Version, difference: str) -> None:
        """Create a session anew in the place of another one, which goes only when all of the source's can be read."""
        await read_through(self._source, summary)
        await self._packer.add(DeleteSession(summary.id, Requires(version=version)), 0)
        await self._packer.flush()  # since a batch names an item once
        self.replaced.add(f"session {summary.id}", difference)
        await self._create_session(summary)

    async def _whole_rest(self, ours: StoredSession, theirs: StoredSession, last_seq: int) -> ChangeSession | None:
        """The one change that brings a session up to date, if one is enough."""
        rest = await self._source.read_session(ours.id, after=last_seq)
        if rest is None:
            return None
        with understanding(ours.id):
            change = whole_rest(ours, theirs, rest)
        next_seq = _last_seq(change, theirs.next_seq - 1) + 1 if change is not None else None
        return change if next_seq == ours.next_seq else None

    async def _take_numbers(self, head: StoredSession, version: Version, last_seq: int, next_seq: int) -> None:
        """Numbers that were given out in the source to records that are gone are not given out in the target."""
        if head.next_seq > next_seq:
            version = await self._commit(prop(head), version)
            await self._commit(unprop(head, last_seq), version)

    async def _commit(self, change: ChangeSession, version: Version | None) -> Version:
        self._counted(change)
        return await self._packer.commit(change, version)

    def _counted(self, change: ChangeSession) -> int:
        """The bytes of a change, which are noted as copied."""
        size = sum(len(record.body) for record in change.append) + sum(map(len, change.set_metadata.values()))
        self._teller.bytes += size
        return size

    async def _copy_document(self, info: DocumentInfo) -> None:
        if document_place(info) in self._damage:
            return
        async with self._damage.noting_document(info):
            await self._transfer_document(info)

    async def _transfer_document(self, info: DocumentInfo) -> None:
        check_place(info)
        place = (info.category, info.name, info.kind)
        theirs = None if self._survey.is_fresh else await self._target.get_document(*place)
        if theirs is not None and not self._mirror:
            self.skipped += 1
            return
        ours = await self._source.get_document(*place)
        if ours is None:
            return  # deleted meanwhile
        if theirs is not None and theirs.body == ours.body:
            self.skipped += 1
            return
        requires = Requires(absent=True)
        if theirs is not None:
            requires = Requires(version=theirs.version)
            self.replaced.add(document_place(info), "its contents are not the same")
        self._teller.bytes += len(ours.body)
        await self._packer.add(PutDocument(*place, ours.body, requires), len(ours.body))


def _last_seq(change: ChangeSession, before: int) -> int:
    """The number of the last record that a change adds, or what it was before."""
    return before if not change.append or change.append[-1].seq is None else change.append[-1].seq
