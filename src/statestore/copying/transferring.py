"""Copying what the target lacks: new sessions and documents, and the rest of sessions that are behind."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from statestore.copying.ahead import ReadAhead, documents_ahead, sessions_ahead
from statestore.copying.changes import catching_up, continuation, prop, unprop, whole_rest
from statestore.copying.packing import Packer, Unfit
from statestore.copying.standing import headers_are_equal, standing_of
from statestore.copying.surveying import Survey
from statestore.copying.telling import UNREADABLE, Differences, Teller
from statestore.copying.walking import check_place, document_pages, document_place, session_pages, sessions_between
from statestore.copying.windows import Pace, has_records, windows
from statestore.engine import ChangeSession, PutDocument, Requires, SessionQuery
from statestore.names import check_session_id
from statestore.store.reading import understanding
from statestore.store.recreating import creation
from statestore.stored import DocumentInfo, SessionSummary, StoredSession, Version


class Transfer:
    """Goes through the source, and writes to the target."""

    def __init__(self, source: ReadAhead, target: ReadAhead, teller: Teller, survey: Survey) -> None:
        self._source = source
        self._target = target
        self._teller = teller
        self._survey = survey
        self.skipped = 0
        """How many items the target had already."""
        self.unreadable = Differences()
        """What the source cannot give."""
        self.unfit = Differences()
        """What the target cannot hold."""
        self._packer = Packer(target.engine, teller.tell, self.unfit)

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
                with self._noting(f"session {summary.id}"):
                    await self._copy_session(summary, is_there=summary.id in there)
                self._teller.sessions += 1
        stores = (self._source,) if self._survey.is_fresh else (self._source, self._target)
        async for infos in document_pages(source):
            async for info in documents_ahead(infos, *stores):
                with self._noting(document_place(info)):
                    await self._copy_document(info)
                self._teller.documents += 1
        await self._packer.flush()
        self._teller.tell()

    @contextmanager
    def _noting(self, where: str) -> Generator[None]:
        """Note what cannot be read or held, and go on."""
        with self.unreadable.noting(where, *UNREADABLE), self.unfit.noting(where, Unfit):
            yield

    async def _copy_session(self, summary: SessionSummary, *, is_there: bool) -> None:
        check_session_id(summary.id)
        if summary.id in self._survey.unsure:
            raise self._survey.unsure[summary.id]
        if is_there:
            await self._continue_session(summary)
        elif Pace.for_session(summary).width is None:
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
            standing = await standing_of(self._source, self._target, ours, theirs, pace, is_trusted=True)
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
        check_place(info)
        place = (info.category, info.name, info.kind)
        if not self._survey.is_fresh and await self._target.get_document(*place) is not None:
            self.skipped += 1
            return
        document = await self._source.get_document(*place)
        if document is not None:  # or it was deleted meanwhile
            self._teller.bytes += len(document.body)
            await self._packer.add(PutDocument(*place, document.body, Requires(absent=True)), len(document.body))


def _last_seq(change: ChangeSession, before: int) -> int:
    """The number of the last record that a change adds, or what it was before."""
    return before if not change.append or change.append[-1].seq is None else change.append[-1].seq
