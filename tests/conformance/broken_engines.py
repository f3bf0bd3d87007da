"""Engines with one promise broken each, and the case of the suite that must notice."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

from msgspec.structs import replace

from statestore.engine import (
    Change,
    Changed,
    ChangePage,
    ChangeSession,
    DeleteCategory,
    DeleteSession,
    DocumentQuery,
    Failure,
    NewRecord,
    Outcome,
    PreconditionFailed,
    PutDocument,
    SearchQuery,
    SessionQuery,
)
from statestore.engines.memory import MemoryEngine
from statestore.engines.sqlite import SqliteEngine, finding
from statestore.engines.sqlite.indexing import has_seen, last_change
from statestore.errors import CursorExpired, InvalidCursor, InvalidValue, NotSupported
from statestore.stored import (
    DOCUMENT_KINDS,
    Document,
    DocumentInfo,
    DocumentKind,
    Problem,
    Records,
    SearchHit,
    SessionSummary,
    StoredNotice,
    StoredSession,
)
from statestore.timestamps import nanoseconds

NOTICED_BY: dict[type[Any], str] = {}
E = TypeVar("E")


def noticed_by(case: str) -> Callable[[type[E]], type[E]]:
    """Say which case must fail for an engine."""

    def note(engine: type[E]) -> type[E]:
        NOTICED_BY[engine] = case
        return engine

    return note


class Altering(MemoryEngine):
    """Alters each change before it is made, and then stays correct."""

    def altered(self, change: Change) -> Change:
        return change

    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        return await super().commit([self.altered(change) for change in batch])


class Forgetful(Altering):
    """Drops some of what is required."""

    forgotten: dict[str, Any] = {}

    def altered(self, change: Change) -> Change:
        if isinstance(change, DeleteCategory):
            return change
        return replace(change, requires=replace(change.requires, **self.forgotten))


@noticed_by("test_absent_holds_for_what_is_not_there")
class IgnoresAbsent(Forgetful):
    forgotten = {"absent": False}


@noticed_by("test_present_holds_for_what_is_there")
class IgnoresPresent(Forgetful):
    forgotten = {"present": False}


@noticed_by("test_a_version_holds_for_that_version_alone")
class IgnoresVersions(Forgetful):
    forgotten = {"version": None}


@noticed_by("test_an_owner_holds_for_that_user_alone")
class IgnoresOwners(Forgetful):
    forgotten = {"owner": None}


@noticed_by("test_the_wrong_owner_hears_nothing_else")
class TellsStrangersTooMuch(MemoryEngine):
    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        try:
            return await super().commit(batch)
        except PreconditionFailed as failed:
            raise PreconditionFailed(
                [self._told(failure, batch[failure.index]) for failure in failed.failures]
            ) from None

    def _told(self, failure: Failure, change: Change) -> Failure:
        if isinstance(change, DeleteSession) and change.requires.version is not None:
            return Failure(failure.index, "version")
        return failure


@noticed_by("test_every_failure_is_named")
class NamesOnlyTheFirstFailure(MemoryEngine):
    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        try:
            return await super().commit(batch)
        except PreconditionFailed as failed:
            raise PreconditionFailed(failed.failures[:1]) from None


@noticed_by("test_a_failing_change_stops_its_batch_at_every_position")
class AppliesHalfABatch(MemoryEngine):
    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        try:
            return await super().commit(batch)
        except PreconditionFailed as failed:
            await super().commit(batch[: failed.failures[0].index])
            raise


@noticed_by("test_a_batch_names_each_item_once")
class TakesAnItemTwice(MemoryEngine):
    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        try:
            return await super().commit(batch)
        except InvalidValue:
            return [outcome for change in batch for outcome in await super().commit([change])]


@noticed_by("test_a_batch_of_everything_happens")
class SaysItReachesLessFar(MemoryEngine):
    atomic_scope = "item"


@noticed_by("test_readers_never_see_half_a_batch")
class CommitsOneByOne(MemoryEngine):
    runs_in = "loop"

    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for change in batch:
            outcomes += await super().commit([change])
            await asyncio.sleep(0)
        return outcomes


@noticed_by("test_many_appends_to_one_session_are_all_kept")
class LosesUpdates(MemoryEngine):
    runs_in = "loop"

    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        working = MemoryEngine()
        working._sessions, working._documents = copy.deepcopy(self._sessions), dict(self._documents)
        await asyncio.sleep(0)
        outcomes = await working.commit(batch)
        self._sessions, self._documents = working._sessions, working._documents
        return outcomes


@noticed_by("test_a_cancelled_write_is_all_or_nothing")
class IsTornByCancelling(MemoryEngine):
    runs_in = "loop"

    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        await super().commit(batch[:1])
        await asyncio.sleep(0)
        if batch[1:]:
            await super().commit(batch[1:])
        return [Outcome(None, "1")] * len(batch)


@noticed_by("test_a_cancelled_write_is_all_or_nothing")
class WritesBeforeItIsAwaited(MemoryEngine):
    def commit(self, batch: Sequence[Change]) -> Coroutine[Any, Any, list[Outcome]]:
        first = super().commit(batch[:1])
        with suppress(StopIteration):
            first.send(None)

        async def rest() -> list[Outcome]:
            return [Outcome(None, "1"), *await MemoryEngine.commit(self, batch[1:])]

        return rest()


@noticed_by("test_a_batch_of_everything_happens")
class SuspendsThoughItSaysItNeverDoes(MemoryEngine):
    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        await _Pause()
        return await super().commit(batch)


class _Pause:
    def __await__(self) -> Any:
        yield


@noticed_by("test_numbers_are_never_given_out_twice")
class ReusesNumbers(MemoryEngine):
    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        for change in batch:
            if isinstance(change, ChangeSession) and change.id in self._sessions and not change.append:
                outcomes = await super().commit(batch)
                session = self._sessions[change.id]
                session.next_seq = max((record.seq for record in session.records), default=0) + 1
                return outcomes
        return await super().commit(batch)


@noticed_by("test_a_copy_keeps_its_numbers")
class NumbersAnew(Altering):
    def altered(self, change: Change) -> Change:
        if not isinstance(change, ChangeSession):
            return change
        return replace(change, append=tuple(replace(record, seq=None) for record in change.append))


@noticed_by("test_a_copy_made_in_pieces_keeps_its_numbers")
class NumbersLaterPiecesAnew(Altering):
    def altered(self, change: Change) -> Change:
        if not isinstance(change, ChangeSession) or change.create is not None:
            return change
        return replace(change, append=tuple(replace(record, seq=None) for record in change.append))


@noticed_by("test_a_copy_made_in_pieces_keeps_its_numbers")
class GoesOnFromTheOldNumber(MemoryEngine):
    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        numbers = {name: session.next_seq for name, session in self._sessions.items()}
        outcomes = await super().commit(batch)
        for change in batch:
            if isinstance(change, ChangeSession) and any(record.seq is not None for record in change.append):
                self._sessions[change.id].next_seq = numbers.get(change.id, 1) + len(change.append)
        return outcomes


@noticed_by("test_a_number_that_is_taken_is_refused")
class TakesAnyNumber(MemoryEngine):
    def _check_numbers(self, batch: Sequence[Change]) -> None:
        """Whatever is asked for is free."""


@noticed_by("test_a_number_that_is_taken_is_refused")
class TakesTheNumbersOfWhatIsGone(MemoryEngine):
    def _check_numbers(self, batch: Sequence[Change]) -> None:
        known = {name: session.next_seq for name, session in self._sessions.items()}
        for session in self._sessions.values():
            session.next_seq = max((record.seq for record in session.records), default=0) + 1
        try:
            super()._check_numbers(batch)
        finally:
            for name, next_seq in known.items():
                self._sessions[name].next_seq = next_seq


@noticed_by("test_a_number_that_is_taken_is_refused")
class FindsTheTakenNumberTooLate(MemoryEngine):
    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        try:
            return await super().commit(batch)
        except InvalidValue:
            await super().commit(batch[:-1])
            raise


@noticed_by("test_a_known_key_is_acknowledged_and_not_stored")
class LosesKeys(MemoryEngine):
    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        for session in self._sessions.values():
            session.seq_of_key.clear()
        return await super().commit(batch)


@noticed_by("test_a_key_goes_with_its_record")
class KeepsKeysOfWhatIsGone(MemoryEngine):
    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        known = {name: dict(session.seq_of_key) for name, session in self._sessions.items()}
        outcomes = await super().commit(batch)
        for name, keys in known.items():
            if name in self._sessions:
                self._sessions[name].seq_of_key |= keys
        return outcomes


@noticed_by("test_order_is_the_order_of_arrival")
class SortsByTimestamp(MemoryEngine):
    async def read_session(self, session_id: str, **window: int | None) -> StoredSession | None:
        stored = await super().read_session(session_id, **window)
        if stored is None:
            return None
        records = stored.records.in_order()
        told = sorted(records, key=lambda record: nanoseconds(json.loads(record.body)["timestamp"]))
        numbered = [replace(record, seq=place.seq) for record, place in zip(told, records, strict=True)]
        return replace(stored, records=Records.of(numbered))


@noticed_by("test_a_window_is_the_part_that_was_asked_for")
class CountsOnlyWhatItLoads(MemoryEngine):
    async def read_session(self, session_id: str, **window: int | None) -> StoredSession | None:
        stored = await super().read_session(session_id, **window)
        return stored and replace(stored, message_count=len(stored.records.decoded().users))


@noticed_by("test_bodies_are_kept_verbatim")
class ParsesBodies(Altering):
    def altered(self, change: Change) -> Change:
        if not isinstance(change, ChangeSession):
            return change
        return replace(change, append=tuple(map(self._parsed, change.append)))

    def _parsed(self, record: NewRecord) -> NewRecord:
        return replace(record, body=json.dumps(json.loads(record.body), separators=(",", ":")).encode())


@noticed_by("test_a_layout_is_kept_verbatim")
class DropsUnknownFields(Altering):
    def altered(self, change: Change) -> Change:
        if isinstance(change, ChangeSession) and change.create is not None:
            return replace(change, create=replace(change.create, layout=None))
        return change


@noticed_by("test_fields_and_metadata_merge_by_name")
class ReplacesMetadataWhole(MemoryEngine):
    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        for change in batch:
            if isinstance(change, ChangeSession) and change.id in self._sessions and change.set_metadata:
                self._sessions[change.id].metadata = b"{}"
        return await super().commit(batch)


@noticed_by("test_metadata_keep_their_order_and_text")
class SortsMetadata(MemoryEngine):
    async def read_session(self, session_id: str, **window: int | None) -> StoredSession | None:
        stored = await super().read_session(session_id, **window)
        if stored is None:
            return None
        metadata = json.dumps(json.loads(stored.metadata), sort_keys=True, separators=(",", ":"))
        return replace(stored, metadata=metadata.encode())


@noticed_by("test_updated_never_goes_back")
class LetsTimeGoBack(MemoryEngine):
    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        outcomes = await super().commit(batch)
        for change in batch:
            if isinstance(change, ChangeSession):
                self._sessions[change.id].updated = change.updated
        return outcomes


@noticed_by("test_a_documents_version_never_comes_back")
class HashesDocuments(MemoryEngine):
    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        outcomes = await super().commit(batch)
        for index, change in enumerate(batch):
            if isinstance(change, PutDocument):
                version = f"{crc32(change.body):x}"
                key = (change.category, change.name, change.kind)
                self._documents[key] = replace(self._documents[key], version=version)
                outcomes[index] = replace(outcomes[index], version=version)
        return outcomes


@noticed_by("test_a_sessions_version_never_comes_back")
class CountsVersions(MemoryEngine):
    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        before = {name: session.version for name, session in self._sessions.items()}
        outcomes = await super().commit(batch)
        for index, change in enumerate(batch):
            if isinstance(change, ChangeSession):
                version = str(int(before.get(change.id, "0")) + 1)  # from 1 again for a session created anew
                self._sessions[change.id].version = version
                outcomes[index] = replace(outcomes[index], version=version)
        return outcomes


@noticed_by("test_changing_what_was_read_changes_nothing_stored")
class HandsOutItsOwnLists(MemoryEngine):
    def __init__(self) -> None:
        super().__init__()
        self._read: dict[tuple[object, ...], StoredSession] = {}

    async def read_session(self, session_id: str, **window: int | None) -> StoredSession | None:
        stored = await super().read_session(session_id, **window)
        if stored is None:
            return None
        return self._read.setdefault((stored.version, *sorted(window.items())), stored)


class Listing(MemoryEngine):
    """Alters what is listed."""

    def shown(self, summaries: list[SessionSummary], query: SessionQuery) -> list[SessionSummary]:
        return summaries

    async def list_sessions(self, query: SessionQuery) -> list[SessionSummary]:
        return self.shown(await super().list_sessions(query), query)


@noticed_by("test_newest_first_to_the_nanosecond")
class ListsOldestFirst(Listing):
    def shown(self, summaries: list[SessionSummary], query: SessionQuery) -> list[SessionSummary]:
        return summaries[::-1]


@noticed_by("test_newest_first_to_the_nanosecond")
class RoundsToMicroseconds(Listing):
    def shown(self, summaries: list[SessionSummary], query: SessionQuery) -> list[SessionSummary]:
        return sorted(summaries, key=lambda summary: (-(nanoseconds(summary.updated_text) // 1000), summary.id))


@noticed_by("test_newest_first_to_the_nanosecond")
class SortsMomentsAsText(Listing):
    def shown(self, summaries: list[SessionSummary], query: SessionQuery) -> list[SessionSummary]:
        return sorted(summaries, key=lambda summary: summary.updated_text, reverse=True)


@noticed_by("test_ties_go_by_id")
class ComparesIdsWithoutCase(Listing):
    def shown(self, summaries: list[SessionSummary], query: SessionQuery) -> list[SessionSummary]:
        return sorted(summaries, key=lambda summary: (-nanoseconds(summary.updated_text), summary.id.casefold()))


@noticed_by("test_pages_of_any_size_make_the_whole")
class BeginsPagesByTimeAlone(MemoryEngine):
    async def list_sessions(self, query: SessionQuery) -> list[SessionSummary]:
        if query.after is None or query.order == "id":
            return await super().list_sessions(query)
        rest = await super().list_sessions(replace(query, after=None, limit=None))
        older = [summary for summary in rest if nanoseconds(summary.updated_text) < query.after.updated_ns]
        return older[: query.limit]


@noticed_by("test_what_nobody_touched_appears_exactly_once")
class PagesByOffset(MemoryEngine):
    def __init__(self) -> None:
        super().__init__()
        self._handed_out = 0

    async def list_sessions(self, query: SessionQuery) -> list[SessionSummary]:
        if query.limit is None or query.order == "id":
            return await super().list_sessions(query)
        whole = await super().list_sessions(replace(query, after=None, limit=None))
        start = 0 if query.after is None else self._handed_out
        self._handed_out = start + query.limit
        return whole[start : self._handed_out]


@noticed_by("test_a_limit_limits")
class TakesNoLimitForNone(MemoryEngine):
    async def list_sessions(self, query: SessionQuery) -> list[SessionSummary]:
        return await super().list_sessions(replace(query, limit=query.limit or None))


@noticed_by("test_filters_select_exactly")
class CountsEverything(MemoryEngine):
    async def count_sessions(self, query: SessionQuery) -> int:
        return await super().count_sessions(SessionQuery(user_id=query.user_id))


@noticed_by("test_three_kinds_share_a_name")
class KnowsNoKinds(MemoryEngine):
    async def get_document(self, category: str, name: str, kind: DocumentKind) -> Document | None:
        for other in (kind, "json", "md", "bin"):
            if document := await super().get_document(category, name, other):
                return document
        return None


@noticed_by("test_markdown_keeps_every_byte")
class TranslatesLineEnds(Altering):
    def altered(self, change: Change) -> Change:
        if isinstance(change, PutDocument) and change.kind == "md":
            return replace(change, body=change.body.replace(b"\r\n", b"\n"))
        return change


@noticed_by("test_deleting_a_category_leaves_those_below_and_beside")
class DeletesBelow(MemoryEngine):
    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        outcomes = await super().commit(batch)
        for change in batch:
            if isinstance(change, DeleteCategory):
                for key in [key for key in self._documents if key[0].startswith(change.category)]:
                    del self._documents[key]
        return outcomes


@noticed_by("test_names_that_look_alike_are_two_names")
class FoldsCase(Altering):
    def altered(self, change: Change) -> Change:
        if isinstance(change, PutDocument):
            return replace(change, name=change.name.casefold())
        return change

    async def get_document(self, category: str, name: str, kind: DocumentKind) -> Document | None:
        document = await super().get_document(category, name.casefold(), kind)
        return document and replace(document, name=name)


@noticed_by("test_a_listing_is_by_name_then_kind")
class ListsDocumentsAsTheyCome(MemoryEngine):
    async def list_documents(self, query: DocumentQuery) -> list[DocumentInfo]:
        infos = await super().list_documents(query)
        return sorted(infos, key=lambda info: list(self._documents).index((info.category, info.name, info.kind)))


class Paging(MemoryEngine):
    """Makes pages of documents out of whole listings."""

    def place(self, info: DocumentInfo) -> Any:
        return info.name, info.kind

    async def list_documents(self, query: DocumentQuery) -> list[DocumentInfo]:
        infos = await super().list_documents(DocumentQuery(query.category))
        if query.after is not None:
            after = self.place(DocumentInfo(query.category, *query.after, 0))
            infos = [info for info in infos if self.place(info) > after]
        return infos[: query.limit]


@noticed_by("test_pages_of_documents_make_the_whole")
class BeginsPagesByNameAlone(Paging):
    def place(self, info: DocumentInfo) -> Any:
        return info.name


@noticed_by("test_pages_of_documents_make_the_whole")
class BeginsPagesByUtf16(Paging):
    def place(self, info: DocumentInfo) -> Any:
        return info.name.encode("utf-16-be", "surrogatepass"), info.kind


@noticed_by("test_pages_of_documents_make_the_whole")
class BeginsPagesByFileName(Paging):
    def place(self, info: DocumentInfo) -> Any:
        return f"{info.name}.{info.kind}"


@noticed_by("test_pages_of_documents_make_the_whole")
class TakesNoLimitOfDocumentsForNone(MemoryEngine):
    async def list_documents(self, query: DocumentQuery) -> list[DocumentInfo]:
        return await super().list_documents(replace(query, limit=query.limit or None))


@noticed_by("test_a_page_of_documents_goes_on_after_one_that_is_gone")
class LooksForTheLastDocument(MemoryEngine):
    async def list_documents(self, query: DocumentQuery) -> list[DocumentInfo]:
        infos = await super().list_documents(DocumentQuery(query.category))
        places = [(info.name, info.kind) for info in infos]
        start = places.index(query.after) + 1 if query.after in places else 0
        return infos[start:][: query.limit]


# -- engines that offer more, on a database


class Whole(SqliteEngine):
    """Keeps every promise and offers everything: what the broken ones below are compared with."""

    async def wait_for_changes(self, after: str, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end and (await self.read_changes(after)).cursor == after:
            time.sleep(0.001)  # noqa: ASYNC251 - it runs in a thread

    async def repair(self) -> list[Problem]:
        return []

    async def read_sessions(self, ids: Sequence[str]) -> list[StoredSession]:
        found = [await self.read_session(session_id) for session_id in ids]
        return [stored for stored in found if stored is not None]

    async def get_documents(self, category: str, places: Sequence[tuple[str, DocumentKind]]) -> list[Document]:
        found = [await self.get_document(category, *place) for place in places]
        return [document for document in found if document is not None]


@noticed_by("test_sessions_that_are_read_together_are_as_they_are_alone")
class ReadsOnlyTheNewestTogether(Whole):
    async def read_sessions(self, ids: Sequence[str]) -> list[StoredSession]:
        found = [await self.read_session(session_id, last=20) for session_id in ids]
        return [stored for stored in found if stored is not None]


@noticed_by("test_documents_that_are_read_together_are_as_they_are_alone")
class ReadsAnyKindTogether(Whole):
    async def get_documents(self, category: str, places: Sequence[tuple[str, DocumentKind]]) -> list[Document]:
        anyhow: list[tuple[str, DocumentKind]] = [(name, kind) for name, _ in places for kind in DOCUMENT_KINDS]
        return await super().get_documents(category, anyhow)


@noticed_by("test_a_change_wakes_who_waits_for_it")
class SleepsThroughChanges(Whole):
    async def wait_for_changes(self, after: str, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251 - the same


@noticed_by("test_a_repair_changes_nothing_that_is_sound")
class RepairsWhatIsSound(Whole):
    async def repair(self) -> list[Problem]:
        for summary in await self.list_sessions(SessionQuery()):
            await self.commit([ChangeSession(summary.id, summary.updated_text)])
        return []


@noticed_by("test_a_repair_changes_nothing_that_is_sound")
class RepairsWithoutEnd(Whole):
    async def repair(self) -> list[Problem]:
        return [Problem("the index", "may be wrong", "was made anew")]


@noticed_by("test_what_was_acknowledged_is_found_at_once")
class FindsTheNewestOnlyNextTime(Whole):
    async def search_sessions(self, query: SearchQuery) -> list[SearchHit]:
        hits = self._read(lambda connection: finding.search(connection, query))
        await self.update_search_index()
        return hits


@noticed_by("test_what_is_gone_is_not_found")
class FindsWhatIsGone(Whole):
    _known: dict[tuple[str, SearchQuery], list[SearchHit]] = {}

    async def search_sessions(self, query: SearchQuery) -> list[SearchHit]:
        hits = await super().search_sessions(query)
        places = {(hit.session_id, hit.seq) for hit in hits}
        known = self._known.get((self.url, query), [])
        hits += [hit for hit in known if (hit.session_id, hit.seq) not in places]
        self._known[self.url, query] = hits
        return hits


@noticed_by("test_a_users_store_finds_that_users_words_alone")
class FindsEverybodysWords(Whole):
    async def search_sessions(self, query: SearchQuery) -> list[SearchHit]:
        return await super().search_sessions(replace(query, user_id=None))


@noticed_by("test_filters_of_a_search")
class FindsInEveryProject(Whole):
    async def search_sessions(self, query: SearchQuery) -> list[SearchHit]:
        return await super().search_sessions(replace(query, project_id=None))


@noticed_by("test_pages_of_hits_make_the_whole")
class RepeatsAHit(Whole):
    async def search_sessions(self, query: SearchQuery) -> list[SearchHit]:
        if query.after is None or query.limit < 2:
            return await super().search_sessions(query)
        whole = await super().search_sessions(replace(query, after=None, limit=1000))
        place = [hit.cursor for hit in whole].index(query.after)
        return whole[place:][: query.limit] if whole[place + 1 :] else []


@noticed_by("test_all_words_must_occur")
class FindsAnyOfTheWords(Whole):
    async def search_sessions(self, query: SearchQuery) -> list[SearchHit]:
        hits = [await super(FindsAnyOfTheWords, self).search_sessions(replace(query, terms=(t,))) for t in query.terms]
        return list({(hit.session_id, hit.seq): hit for some in hits for hit in some}.values())


@noticed_by("test_the_best_comes_first")
class FindsTheWorstFirst(Whole):
    async def search_sessions(self, query: SearchQuery) -> list[SearchHit]:
        return (await super().search_sessions(query))[::-1]


@noticed_by("test_a_hit_tells_where_and_shows_the_words")
class MarksTheWrongPlace(Whole):
    async def search_sessions(self, query: SearchQuery) -> list[SearchHit]:
        hits = await super().search_sessions(query)
        return [replace(hit, marks=tuple((start + 1, end + 1) for start, end in hit.marks)) for hit in hits]


@noticed_by("test_bringing_the_index_up_to_date_is_always_safe")
class CannotBringItsIndexUpToDate(Whole):
    async def update_search_index(self) -> None:
        if self._read(lambda connection: has_seen(connection, last_change(connection))):
            raise NotSupported("it is up to date")
        await super().update_search_index()


class Telling(Whole):
    """Alters what is told."""

    def told(self, notices: list[StoredNotice]) -> list[StoredNotice]:
        return notices

    async def read_changes(self, after: str, **options: Any) -> ChangePage:
        page = await super().read_changes(after, **options)
        return replace(page, notices=self.told(page.notices))


@noticed_by("test_every_record_is_told_once_and_in_order")
class SkipsARecord(Telling):
    def told(self, notices: list[StoredNotice]) -> list[StoredNotice]:
        return [notice for notice in notices if notice.seq != 5]


@noticed_by("test_every_record_is_told_once_and_in_order")
class TellsARecordTwice(Telling):
    def told(self, notices: list[StoredNotice]) -> list[StoredNotice]:
        return [notice for notice in notices for _ in range(2 if notice.seq == 5 else 1)]


@noticed_by("test_every_record_is_told_once_and_in_order")
class TellsOutOfOrder(Telling):
    def told(self, notices: list[StoredNotice]) -> list[StoredNotice]:
        return sorted(notices, key=lambda notice: notice.record.kind if notice.record else "")


@noticed_by("test_a_watch_of_one_session_tells_of_that_one")
class TellsOfEverySession(Whole):
    async def read_changes(self, after: str, *, session_id: str | None = None, **options: Any) -> ChangePage:
        return await super().read_changes(after, **options)


@noticed_by("test_a_users_watch_tells_of_that_user_alone")
class TellsEverybody(Whole):
    async def read_changes(self, after: str, *, user_id: str | None = None, **options: Any) -> ChangePage:
        return await super().read_changes(after, **options)


@noticed_by("test_a_users_watch_tells_of_that_user_alone")
class TellsEverybodyOfDeletions(Whole):
    async def read_changes(self, after: str, *, user_id: str | None = None, **options: Any) -> ChangePage:
        page = await super().read_changes(after, user_id=user_id, **options)
        whole = await super().read_changes(after, **options)
        return replace(whole, notices=[n for n in whole.notices if n.what == "deleted" or n in page.notices])


@noticed_by("test_a_watch_goes_on_after_any_notice")
class GoesOnAfterTheBatch(Telling):
    def told(self, notices: list[StoredNotice]) -> list[StoredNotice]:
        last = {notice.session_id: notice.cursor for notice in notices}
        return [replace(notice, cursor=last[notice.session_id]) for notice in notices]


@noticed_by("test_a_rewind_is_told")
class KeepsRewindsToItself(Telling):
    def told(self, notices: list[StoredNotice]) -> list[StoredNotice]:
        return [notice for notice in notices if notice.what != "rewound"]


@noticed_by("test_a_deletion_is_told")
class KeepsDeletionsToItself(Telling):
    def told(self, notices: list[StoredNotice]) -> list[StoredNotice]:
        return [notice for notice in notices if notice.what != "deleted"]


@noticed_by("test_another_engines_writes_are_told")
class TellsItsOwnWritesAlone(Whole):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._written: set[tuple[str, int]] = set()

    async def commit_group(self, batches: Sequence[Sequence[Change]]) -> list[list[Outcome] | Exception]:
        results = await super().commit_group(batches)
        for batch, result in zip(batches, results, strict=True):
            if not isinstance(result, Exception):
                for change, outcome in zip(batch, result, strict=True):
                    self._written |= {(getattr(change, "id", ""), seq) for seq in outcome.seqs}
        return results

    async def read_changes(self, after: str, **options: Any) -> ChangePage:
        page = await super().read_changes(after, **options)
        return replace(page, notices=[n for n in page.notices if (n.session_id, n.seq) in self._written])


@noticed_by("test_what_is_no_cursor_of_a_watch_is_refused")
class TakesAnyCursor(Whole):
    async def read_changes(self, after: str, **options: Any) -> ChangePage:
        try:
            return await super().read_changes(after, **options)
        except InvalidCursor:
            return ChangePage([], after)


@noticed_by("test_who_is_not_pointed_out_has_nothing_to_be_told")
class PointsOutNothingThatIsGone(Whole):
    async def changed_since(self, after: str) -> Changed:
        changed = await super().changed_since(after)
        there = {summary.id for summary in await self.list_sessions(SessionQuery())}
        return replace(changed, sessions=changed.sessions & there)


@noticed_by("test_who_is_not_pointed_out_has_nothing_to_be_told")
class PointsOutNoFormerOwners(Whole):
    async def changed_since(self, after: str) -> Changed:
        changed = await super().changed_since(after)
        there = await self.list_sessions(SessionQuery())
        return replace(changed, users=frozenset(summary.user_id for summary in there if summary.id in changed.sessions))


@noticed_by("test_looks_end_where_there_is_nothing_left_to_be_told")
class AlwaysPointsOutEverybody(Whole):
    async def changed_since(self, after: str) -> Changed:
        changed = await super().changed_since(after)
        return replace(changed, users=changed.users | {"alice"})


@noticed_by("test_nobody_is_pointed_out_after_what_is_no_cursor")
class LooksAfterAnyCursor(Whole):
    async def changed_since(self, after: str) -> Changed:
        try:
            return await super().changed_since(after)
        except (InvalidCursor, CursorExpired):
            return Changed(frozenset(), frozenset(), after)


@noticed_by("test_who_reads_only_when_it_is_pointed_out_misses_nothing")
class GoesPastWhatHappensMeanwhile(Whole):
    async def changed_since(self, after: str) -> Changed:
        changed = await super().changed_since(after)
        time.sleep(0.01)  # noqa: ASYNC251 - in which others write
        return replace(changed, cursor=await self.change_cursor())


@noticed_by("test_a_failed_precondition_takes_no_other_batch_down")
class FailsAllTogether(Whole):
    async def commit_group(self, batches: Sequence[Sequence[Change]]) -> list[list[Outcome] | Exception]:
        results = await super().commit_group(batches)
        error = next((result for result in results if isinstance(result, PreconditionFailed)), None)
        return results if error is None else [error for _ in batches]


@noticed_by("test_a_later_batch_sees_the_earlier_ones")
class JudgesAllBeforehand(Whole):
    async def commit_group(self, batches: Sequence[Sequence[Change]]) -> list[list[Outcome] | Exception]:
        known = {summary.id for summary in await self.list_sessions(SessionQuery())}
        sound = [all(self._is_sound(change, known) for change in batch) for batch in batches]
        results = iter(await super().commit_group([b for b, is_sound in zip(batches, sound, strict=True) if is_sound]))
        return [next(results) if is_sound else PreconditionFailed([Failure(0, "missing")]) for is_sound in sound]

    def _is_sound(self, change: Change, known: set[str]) -> bool:
        return not isinstance(change, ChangeSession) or change.create is not None or change.id in known


@noticed_by("test_each_batch_of_a_group_has_its_result")
class MixesUpResults(Whole):
    async def commit_group(self, batches: Sequence[Sequence[Change]]) -> list[list[Outcome] | Exception]:
        return (await super().commit_group(batches))[::-1]


@noticed_by("test_a_group_is_its_batches_one_after_the_other")
class MakesAGroupBackwards(Whole):
    async def commit_group(self, batches: Sequence[Sequence[Change]]) -> list[list[Outcome] | Exception]:
        return (await super().commit_group(batches[::-1]))[::-1]


@noticed_by("test_a_backup_holds_everything")
class CopiesNothing(Whole):
    async def backup(self, to: str) -> None:
        empty = SqliteEngine(to)
        await empty.open()
        await empty.close()


@noticed_by("test_a_backup_writes_over_nothing")
class WritesOverAnything(Whole):
    async def backup(self, to: str) -> None:
        os.unlink(to)
        await super().backup(to)


class Nothing:
    """An engine that implements nothing."""


def open_broken(_: str, **__: object) -> MemoryEngine:
    """For the command line: an engine with one promise broken."""
    return TakesAnItemTwice()


def open_nothing(_: str, **__: object) -> Nothing:
    """For the command line: no engine at all."""
    return Nothing()
