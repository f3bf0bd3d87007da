"""After everything was copied: both stores are read, and must have the same items with the same contents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from statestore.copying.ahead import ReadAhead, documents_ahead, sessions_ahead
from statestore.copying.damage import Damage
from statestore.copying.tallying import Tally
from statestore.copying.telling import CopyIncomplete, CopyReport, Differences, Teller
from statestore.copying.walking import check_place, document_pages, document_place, session_in_question, session_pages
from statestore.engine import SessionQuery
from statestore.errors import CorruptData, InvalidName
from statestore.names import check_session_id
from statestore.store.reading import understanding
from statestore.stored import DocumentInfo, Problem, SessionSummary

_REST: Final = "All other sessions and documents were copied."


class Verification:
    """Reads everything back."""

    def __init__(
        self,
        source: ReadAhead,
        target: ReadAhead,
        teller: Teller,
        *,
        damage: Damage,
        unfit: Differences,
        into_existing: bool,
    ) -> None:
        self._source = source
        self._target = target
        self._teller = teller
        self._into_existing = into_existing
        self._damage = damage
        self._unfit = unfit
        self._differing = Differences()
        self._tally = Tally()

    async def run(self, *, skipped: int, replaced: Differences, removed: Differences) -> CopyReport:
        """Raise `CopyIncomplete`, naming what is not the same in both, or could not be read or held."""
        source, target = self._source.engine, self._target.engine
        self._teller.begin("verifying", await source.count_sessions(SessionQuery()))
        async for page in session_pages(source):
            async for summary in sessions_ahead(page, (self._source, page), (self._target, page)):
                await self._verify_session(summary)
            self._tell()
        async for infos in document_pages(source):
            async for info in documents_ahead(infos, self._source, self._target):
                await self._verify_document(info)
            self._tell()
        problems = await source.check()
        await self._note_what_no_listing_shows(problems)
        if not self._into_existing and not self._damage and not self._unfit:
            await self._compare_counts()
        tally = self._tally
        report = CopyReport(
            source=source.url,
            target=target.url,
            sessions=tally.sessions,
            records=tally.records,
            documents=tally.documents,
            bytes=tally.bytes,
            skipped=skipped,
            replaced=len(replaced),
            removed=len(removed),
            digest=tally.digest,
            problems=tuple(problems),
            differences=(*replaced.found, *removed.found),
        )
        self._raise_if_incomplete(report, replaced)
        return report

    async def _verify_session(self, summary: SessionSummary) -> None:
        where = f"session {summary.id}"
        if where in self._unfit or where in self._damage:
            return
        async with self._damage.noting_session(summary):
            check_session_id(summary.id)
            with understanding(summary.id):
                difference = await self._tally.add_session(self._source, self._target, summary)
            if difference is not None:
                self._differing.add(where, difference)

    async def _verify_document(self, info: DocumentInfo) -> None:
        where = document_place(info)
        if where in self._unfit or where in self._damage:
            return
        async with self._damage.noting_document(info):
            check_place(info)
            place = (info.category, info.name, info.kind)
            difference = self._tally.add_document(
                await self._source.get_document(*place), await self._target.get_document(*place)
            )
            if difference is not None:
                self._differing.add(where, difference)

    def _tell(self) -> None:
        teller, tally = self._teller, self._tally
        teller.sessions, teller.documents, teller.bytes = tally.sessions, tally.documents, tally.bytes
        teller.tell()

    async def _compare_counts(self) -> None:
        """The target has nothing more: what was deleted from the source meanwhile is still there."""
        target = self._target.engine
        sessions = await target.count_sessions(SessionQuery())
        documents = 0
        async for infos in document_pages(target):
            documents += len(infos)
        for what, ours, theirs in (
            ("sessions", self._tally.sessions, sessions),
            ("documents", self._tally.documents, documents),
        ):
            if ours < theirs and not self._differing:
                self._differing.add(f"the {what}", f"the source has {ours}, the target has {theirs}")

    async def _note_what_no_listing_shows(self, problems: Sequence[Problem]) -> None:
        """Listings leave out sessions that cannot be read; the source's own check names them."""
        for problem in problems:
            session_id = session_in_question(problem)
            if session_id is None:
                continue
            try:
                check_session_id(session_id)
                await self._source.engine.read_session(session_id, last=0)
            except CorruptData as error:
                self._damage.in_source.add(f"session {session_id}", error)
            except InvalidName as error:
                self._damage.in_source.add(problem.where, error)

    def _raise_if_incomplete(self, report: CopyReport, replaced: Differences) -> None:
        texts: list[str] = []
        if self._differing:
            texts.append(
                f"these are not the same in {report.source} and {report.target}, so they were written to while they "
                f"were being copied: {self._differing.shown()}. Let nobody write there, and run the copy again"
            )
        damage = self._damage
        if damage.in_source:
            texts.append(
                f"these cannot be read from {report.source}, and were not copied: {damage.in_source.shown()}. "
                f"{_REST} Mend or delete them in the source, and run the copy again"
            )
        if damage.in_target:
            texts.append(
                f"these are damaged in {report.target}, and were left there as they are: {damage.in_target.shown()}. "
                f"{_REST} Mend or delete them in the target, and run the copy again"
            )
        if self._unfit:
            texts.append(
                f"{report.target} cannot hold these, and they were not copied, or not wholly: {self._unfit.shown()}. "
                f"{_REST} Change or delete them in the source, and run the copy again, or copy to another engine"
            )
        if lost := [each.where for each in self._unfit.found if each.where in replaced]:
            texts.append(f"what {report.target} had in the place of these was removed: {', '.join(lost)}")
        if texts:
            kinds = (self._differing, damage.in_source, damage.in_target, self._unfit)
            raise CopyIncomplete("; ".join(texts), report, [each for kind in kinds for each in kind.found])
