"""Before anything is written: whether all that the target holds fits what the source has."""

from __future__ import annotations

from statestore.copying.ahead import ReadAhead, documents_ahead, sessions_ahead
from statestore.copying.standing import standing_of
from statestore.copying.telling import CopyRefused, Differences, Teller
from statestore.copying.walking import document_pages, document_place, session_pages, sessions_between
from statestore.copying.windows import Pace
from statestore.engine import SessionQuery
from statestore.errors import CorruptData
from statestore.store.reading import understanding
from statestore.stored import DocumentInfo, SessionSummary


class Survey:
    """Looks at every item of the target."""

    def __init__(self, source: ReadAhead, target: ReadAhead, teller: Teller, *, into_existing: bool) -> None:
        self._source = source
        self._target = target
        self._teller = teller
        self._into_existing = into_existing
        self._refused = Differences()
        self.is_fresh = True
        """Whether the target holds nothing at all."""
        self.unsure: dict[str, CorruptData] = {}
        """The sessions that both have and that could not be compared: they are left as they are."""

    async def run(self) -> None:
        """Raise `CopyRefused`, naming what does not fit."""
        source, target = self._source.engine, self._target.engine
        self._teller.begin("comparing", await target.count_sessions(SessionQuery()))
        after: str | None = None
        async for page in session_pages(target):
            self.is_fresh = False
            ours = await sessions_between(source, after, page[-1].id)
            after = page[-1].id
            async for summary in sessions_ahead(page, (self._source, ours), (self._target, page)):
                await self._look_at_session(summary)
                self._teller.sessions += 1
            self._teller.tell()
        async for infos in document_pages(target):
            self.is_fresh = False
            async for info in documents_ahead(infos, self._source, self._target):
                await self._look_at_document(info)
                self._teller.documents += 1
            self._teller.tell()
        if self._refused:
            hint = "" if self._into_existing else "; into_existing=True leaves alone what only the target has"
            raise CopyRefused(
                f"{target.url} cannot become a copy of {source.url}, and nothing was written: "
                f"{self._refused.shown()}. Delete these from the target, or copy into an empty store{hint}",
                self._refused.found,
            )

    async def _look_at_session(self, summary: SessionSummary) -> None:
        try:
            ours = await self._source.read_session(summary.id, last=0)
            theirs = await self._target.read_session(summary.id, last=0)
            if ours is None:
                self._only_in_target(f"session {summary.id}")
            elif theirs is not None:
                with understanding(summary.id):
                    found = await standing_of(self._source, self._target, ours, theirs, Pace.for_session(summary))
                if found.difference is not None:
                    self._refused.add(f"session {summary.id}", found.difference)
        except CorruptData as error:
            self.unsure[summary.id] = error

    async def _look_at_document(self, info: DocumentInfo) -> None:
        ours = await self._source.get_document(info.category, info.name, info.kind)
        if ours is None:
            self._only_in_target(document_place(info))
            return
        theirs = await self._target.get_document(info.category, info.name, info.kind)
        if theirs is not None and theirs.body != ours.body:
            self._refused.add(document_place(info), "its contents are not the same")

    def _only_in_target(self, where: str) -> None:
        if not self._into_existing:
            self._refused.add(where, "only the target has it")
