"""`copy_store` looks at several items at once: what that costs in calls, and that nobody can tell it by the result."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import msgspec
import pytest

from servers import postgres, valkey
from statestore import Engine, InvalidValue, copy_store
from statestore.conformance.changes import agent, appended, created, event, user
from statestore.copying import CopyIncomplete, CopyRefused, ahead, async_copy_store, walking, windows
from statestore.copying.ahead import ReadAhead, ReadsSeveral
from statestore.engine import Batch, Change, DocumentQuery, Outcome, PutDocument, Result, SessionQuery
from statestore.engines.memory import MemoryEngine
from statestore.errors import CorruptSession
from statestore.host import step
from statestore.opening import engine_for
from statestore.stored import Document, DocumentInfo, DocumentKind, StoredSession

MANY = 250
"""More than are fetched together, or written."""


def filled(engine: Engine, changes: Iterable[Change]) -> Any:
    step(engine.open())
    for change in changes:
        step(engine.commit([change]))
    return engine


def many() -> Iterator[Change]:
    for number in range(MANY):
        yield created(f"s{number:03}", user(f"question {number}"), agent("answer", key="k"), event("tool", number, 2))
        yield PutDocument("notes", f"n{number:03}", "md", f"note {number}".encode())


class Counting(MemoryEngine):
    """Counts what it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()

    async def close(self) -> None:
        """It is used again."""

    async def read_session(self, session_id: str, **window: Any) -> StoredSession | None:
        self.calls["read_session"] += 1
        return await super().read_session(session_id, **window)

    async def get_document(self, category: str, name: str, kind: DocumentKind) -> Document | None:
        self.calls["get_document"] += 1
        return await super().get_document(category, name, kind)

    async def commit(self, batch: Batch) -> list[Outcome]:
        self.calls["commit"] += 1
        return await super().commit(batch)


class Server(Counting):
    """Gives several items in one call, but for some that it leaves out."""

    def __init__(self, *, without: Sequence[str] = (), is_damaged: bool = False) -> None:
        super().__init__()
        self._without = without
        self._is_damaged = is_damaged

    async def read_sessions(self, ids: Sequence[str]) -> list[StoredSession]:
        self.calls["read_sessions"] += 1
        if self._is_damaged:
            raise CorruptSession("one of them cannot be read")
        wanted = [session_id for session_id in ids if session_id not in self._without]
        found = [await MemoryEngine.read_session(self, session_id) for session_id in wanted]
        return [stored for stored in found if stored is not None]

    async def get_documents(self, category: str, places: Sequence[tuple[str, DocumentKind]]) -> list[Document]:
        self.calls["get_documents"] += 1
        if self._is_damaged:
            raise CorruptSession("one of them cannot be read")
        wanted = [place for place in places if place[0] not in self._without]
        found = [await MemoryEngine.get_document(self, category, *place) for place in wanted]
        return [document for document in found if document is not None]


class Cluster(Server):
    """Makes one item at a time, many in one call."""

    atomic_scope = "item"

    async def commit_group(self, batches: Sequence[Batch]) -> list[Result]:
        self.calls["commit_group"] += 1
        results: list[Result] = []
        for batch in batches:
            assert len(batch) == 1
            try:
                results.append(await MemoryEngine.commit(self, batch))
            except Exception as error:  # noqa: BLE001
                results.append(error)
        return results


def test_many_small_items_of_servers_cost_few_calls() -> None:
    source, target = filled(Server(), many()), Server()
    source.calls.clear()
    first = copy_store(source, target)
    in_groups = -(-MANY // ahead.MOST_ITEMS)
    reads = Counter(read_sessions=in_groups, get_documents=in_groups)
    assert source.calls == Counter({name: 2 * count for name, count in reads.items()}), "to copy, and to verify"
    assert target.calls == reads + Counter(commit=-(-2 * MANY // 100)), "to verify"
    source.calls.clear()
    target.calls.clear()
    again = copy_store(source, target)
    assert (again.skipped, again.digest) == (2 * MANY, first.digest)
    assert source.calls == target.calls == Counter({name: 3 * count for name, count in reads.items()})


def test_the_same_goes_for_event_loops() -> None:
    source = filled(Server(), many())
    source.calls.clear()
    asyncio.run(async_copy_store(source, Server()))
    assert set(source.calls) == {"read_sessions", "get_documents"}


def test_a_small_session_is_read_once_in_each_phase_where_there_is_no_such_call() -> None:
    source, target = filled(Counting(), many()), Counting()
    copy_store(source, target)
    source.calls.clear()
    target.calls.clear()
    assert copy_store(source, target).skipped == 2 * MANY
    assert source.calls["read_session"] == target.calls["read_session"] == 3 * MANY


def test_a_target_whose_batches_are_single_items_gets_many_of_them_in_one_call() -> None:
    source, target = filled(MemoryEngine(), many()), Cluster()
    copy_store(source, target)
    assert (target.calls["commit"], target.calls["commit_group"]) == (0, 2 * MANY // 100)
    assert copy_store(source, target).skipped == 2 * MANY


@pytest.mark.parametrize("kind", [Server, Cluster])
def test_many_sessions_that_grew_a_little_are_brought_up_to_date_together(kind: type[Server]) -> None:
    source, target = filled(Server(), many()), kind()
    copy_store(source, target)
    for number in range(MANY):
        more = appended(f"s{number:03}", user("more", 5, key="m"), at=60)
        more = msgspec.structs.replace(more, set_metadata={"title": b'"T"'}, set_fields={"title": "T"})
        step(source.commit([more] if number % 2 else [appended(f"s{number:03}", at=60)]))
    target.calls.clear()
    report = copy_store(source, target)
    assert (report.skipped, report.records) == (MANY, 3 * MANY + MANY // 2)
    assert target.calls["commit"] + target.calls["commit_group"] == -(-MANY // 100)
    assert copy_store(source, target).skipped == 2 * MANY


class Contested(Cluster):
    """Somebody else writes to it: a session appears in the middle of a copy."""

    async def commit_group(self, batches: Sequence[Batch]) -> list[Result]:
        await MemoryEngine.commit(self, [created("s007", user_id="somebody")])
        return await super().commit_group(batches)


class Narrow(Cluster):
    """Cannot hold one of the sessions."""

    async def commit_group(self, batches: Sequence[Batch]) -> list[Result]:
        results = await super().commit_group(batches)
        places = [getattr(batch[0], "id", None) for batch in batches]
        return [
            InvalidValue("too much") if place == "s007" else made for place, made in zip(places, results, strict=True)
        ]


def test_what_of_many_could_not_be_written_is_named() -> None:
    source = filled(MemoryEngine(), (change for change in many() if not isinstance(change, PutDocument)))
    with pytest.raises(CopyRefused, match="session s007 changed there"):
        copy_store(source, Contested())
    with pytest.raises(CopyIncomplete, match="and they were not copied, or not wholly: session s007: too much"):
        copy_store(source, Narrow())


@pytest.mark.parametrize("options", [{"without": ("s000", "n001", "s249")}, {"is_damaged": True}], ids=str)
def test_what_is_not_given_with_others_is_read_by_itself(options: dict[str, Any]) -> None:
    source, target = filled(Server(**options), many()), Server(**options)
    report = copy_store(source, target)
    assert (report.sessions, report.documents) == (MANY, MANY)
    assert report.digest == copy_store(source, MemoryEngine()).digest
    assert copy_store(source, target).skipped == 2 * MANY


def test_a_part_of_what_was_fetched_is_what_the_engine_gives() -> None:
    session = created("s", user("a"), agent("b", key="k"), event("t", 1, 2, seq=5), user("c", 3, seq=9))
    engine = filled(Server(), [session, created("other"), created("empty")])
    store = ReadAhead(engine)
    store.expect(step(engine.list_sessions(SessionQuery())))
    step(store.fetch_sessions(["s", "other", "empty"]))
    numbers = (None, 0, 1, 2, 4, 5, 9, 10, 30)
    for session_id, after, before, last in product(("s", "empty"), numbers, numbers, (None, 0, 1, 2, 9)):
        ours = step(store.read_session(session_id, after=after, before=before, last=last))
        theirs = step(MemoryEngine.read_session(engine, session_id, after=after, before=before, last=last))
        assert ours is not None
        assert theirs is not None
        assert ours.records.in_order() == theirs.records.in_order(), (after, before, last)
        assert (ours.fields, ours.metadata, ours.next_seq) == (theirs.fields, theirs.metadata, theirs.next_seq)
    assert not engine.calls["read_session"]


def test_a_session_that_became_long_in_the_source_is_not_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "WINDOW_RECORDS", 3)
    longest = 0

    class Watched(Server):
        async def read_session(self, session_id: str, **window: Any) -> StoredSession | None:
            nonlocal longest
            stored = await super().read_session(session_id, **window)
            longest = max(longest, len(stored.records.in_order()) if stored is not None else 0)
            return stored

        async def read_sessions(self, ids: Sequence[str]) -> list[StoredSession]:
            nonlocal longest
            found = await super().read_sessions(ids)
            longest = max(longest, *(len(stored.records.in_order()) for stored in found))
            return found

    source, target = filled(Watched(), [created("a", user("1")), created("b", user("1"))]), Server()
    copy_store(source, target)
    step(source.commit([appended("a", *(user("more", number) for number in range(50)), at=60)]))
    source.calls.clear()
    copy_store(source, target)
    assert source.calls["read_session"] > 15
    assert longest <= 3


# -- listing documents


class Listing(MemoryEngine):
    """Notes how much it is asked to list at once."""

    def __init__(self) -> None:
        super().__init__()
        self.limits: list[int | None] = []

    async def list_documents(self, query: DocumentQuery) -> list[DocumentInfo]:
        self.limits.append(query.limit)
        return await super().list_documents(query)


async def _pages_of(engine: Engine) -> list[list[DocumentInfo]]:
    return [page async for page in walking.document_pages(engine)]


def test_a_large_category_is_listed_once_because_in_a_directory_each_listing_looks_at_all() -> None:
    names = [f"n{number:04}" for number in range(4 * walking.PAGE)]
    engine = filled(Listing(), (PutDocument("notes", name, "md", b"") for name in names))
    pages = step(_pages_of(engine))
    assert [len(page) for page in pages] == [walking.PAGE] * 4
    assert [info.name for page in pages for info in page] == names
    assert engine.limits == [walking.LISTED], "and a larger one in so many parts that they fit into memory"


@pytest.mark.parametrize("count", range(10))
def test_all_documents_are_found_wherever_a_listing_ends(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(walking, "PAGE", 2)
    monkeypatch.setattr(walking, "LISTED", 3)
    places = [(category, f"n{number}") for category in ("a", "a/b", "c") for number in range(count)]
    engine = filled(Listing(), (PutDocument(*place, "md", b"") for place in places))
    pages = step(_pages_of(engine))
    assert [(info.category, info.name) for page in pages for info in page] == places
    assert all(len(page) <= 2 and len({info.category for info in page}) == 1 for page in pages)
    assert set(engine.limits) <= {3}


# -- what engines give


SERVERS: Mapping[str, Callable[[str], str]] = {
    "postgres": lambda name: f"{postgres.shared_url()}?schema={name}",
    "valkey": lambda name: f"{valkey.shared_url()}?prefix={name}",
    "valkey-cluster": lambda name: f"{valkey.shared_cluster().url}&prefix={name}",
}


@pytest.mark.parametrize("server", SERVERS)
def test_servers_give_several_items_as_they_give_each(server: str) -> None:
    asyncio.run(_gives_several_items_as_it_gives_each(engine_for(SERVERS[server](f"several_{time.time_ns()}"))))


async def _gives_several_items_as_it_gives_each(engine: Any) -> None:
    await engine.open()
    try:
        long = "x" * 300_000
        for change in (
            created("a", user("one", key="k"), agent("two"), event("t", [1], 2), metadata={"title": b'"T"', "z": b"1"}),
            created("b", *(user(long, n) for n in range(5))),
            created("c", at=5, next_seq=9, fields={"project_id": "p"}),
            created("é", user("three")),
            PutDocument("notes", "n", "md", b"one"),
            PutDocument("notes", "n", "json", b"{}"),
            PutDocument("notes", "long", "bin", bytes(3_000_000)),
            PutDocument("other", "n", "md", b"two"),
        ):
            await engine.commit([change])
        several: ReadsSeveral = engine
        found = {each.id: each for each in await several.read_sessions(["é", "gone", "c", "b", "a", "a\0"])}
        assert set(found) == {"a", "c", "é"}, "a long one is to be read by itself, in parts"
        for session_id, stored in found.items():
            alone = await engine.read_session(session_id)
            assert stored.records.in_order() == alone.records.in_order()
            assert (stored.fields, stored.metadata, stored.layout) == (alone.fields, alone.metadata, alone.layout)
            assert (stored.next_seq, stored.version) == (alone.next_seq, alone.version)
            assert stored.message_count == alone.message_count
        places: list[tuple[str, DocumentKind]] = [("n", "md"), ("n", "json"), ("gone", "md"), ("long", "bin")]
        documents = await several.get_documents("notes", places)
        assert {(each.category, each.name, each.kind, each.body) for each in documents} == {
            ("notes", "n", "md", b"one"),
            ("notes", "n", "json", b"{}"),
        }
        assert all([each == await engine.get_document("notes", each.name, each.kind) for each in documents])
        assert await several.read_sessions([]) == []
        assert await several.get_documents("notes", []) == []
    finally:
        await engine.close()
