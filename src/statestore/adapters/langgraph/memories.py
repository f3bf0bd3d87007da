"""Items of long-term memory as JSON documents: a namespace is a category, a key is a name.

What a batch puts and deletes happens in one commit (one by one, where an engine's commit holds one item). What the
sweeper deletes, and what is given more time because it was read, is so only if nobody wrote it meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
from langgraph.store.base import Item
from msgspec import Struct
from msgspec.structs import replace

from statestore.adapters.identifiers import stored_category, stored_name
from statestore.adapters.several import AT_ONCE, for_each
from statestore.engine import Change, DeleteDocument, DocumentQuery, PreconditionFailed, PutDocument, Requires
from statestore.errors import CorruptDocument
from statestore.jsontext import json_text, pretty
from statestore.store.async_store import AsyncStateStore
from statestore.store.beneath import engine_of
from statestore.store.logs import log

Namespace = tuple[str, ...]
_PAGE: Final = 500


class Memory(Struct, omit_defaults=True):
    """An item as it is stored."""

    namespace: Namespace
    key: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    ttl_minutes: float | None = None
    expires_at: datetime | None = None
    vectors: dict[str, list[float]] = {}
    """What it is found by, by the path of the text."""

    def item(self) -> Item:
        """The item as the framework knows it."""
        return Item(
            value=self.value,
            key=self.key,
            namespace=self.namespace,
            created_at=self.created_at,
            updated_at=self.updated_at,
        )

    def is_expired(self) -> bool:
        """Whether its time is over."""
        return self.expires_at is not None and self.expires_at < datetime.now(UTC)


class Found(Struct):
    """An item, and the version of the document that it was read from."""

    memory: Memory
    version: str


Wanted = Callable[[Found], bool]


class Shelf:
    """Where items are kept: the categories below one."""

    def __init__(self, root: str) -> None:
        self._root = root

    def category(self, namespace: Sequence[str]) -> str:
        """The category of a namespace."""
        return stored_category(self._root, *namespace)

    async def get(self, store: AsyncStateStore, namespace: Namespace, key: str) -> Found | None:
        """One item."""
        found = await self._read(store, self.category(namespace), stored_name(key))
        return found if found is not None and found.memory.key == key else None

    async def below(
        self, store: AsyncStateStore, prefix: Sequence[str], wanted: Wanted, *, enough: int | None = None
    ) -> list[Found]:
        """The wanted items of the namespaces that begin so, by namespace and key: all, or no fewer than enough.

        A warning tells what cannot be read.
        """
        found: list[Found] = []
        categories = await self._categories(store, prefix)
        size = _PAGE if enough is None else max(enough, 1)
        for start in range(0, len(categories), AT_ONCE):
            places = await self._places(store, categories[start : start + AT_ONCE])
            while places:
                some, places = places[:size], places[size:]
                read = await for_each(store, some, lambda place: self._readable(store, *place))
                found += [one for one in read if one is not None and wanted(one)]
                if enough is not None and len(found) >= enough:
                    return found
                size *= 2  # not many were wanted
        return found

    async def namespaces(self, store: AsyncStateStore, wanted: Wanted) -> set[Namespace]:
        """The namespaces that hold a wanted item; of most, one item is read."""
        categories = await self._categories(store, ())
        found = await for_each(store, categories, lambda category: self._first(store, category, wanted))
        return {one.memory.namespace for one in found if one is not None}

    async def _first(self, store: AsyncStateStore, category: str, wanted: Wanted) -> Found | None:
        for name in await self._names(store, category):
            one = await self._readable(store, category, name)
            if one is not None and wanted(one):
                return one
        return None

    async def _categories(self, store: AsyncStateStore, prefix: Sequence[str]) -> list[str]:
        return await engine_of(store).list_categories(self.category(prefix))

    async def _places(self, store: AsyncStateStore, categories: Sequence[str]) -> list[tuple[str, str]]:
        """Where the items of some categories are, in order."""
        names = await for_each(store, categories, lambda category: self._names(store, category))
        return [(category, name) for category, held in zip(categories, names, strict=True) for name in held]

    async def _names(self, store: AsyncStateStore, category: str) -> list[str]:
        names: list[str] = []
        query = DocumentQuery(category, limit=_PAGE)
        while True:
            page = await engine_of(store).list_documents(query)
            names += [info.name for info in page if info.kind == "json"]
            if len(page) < _PAGE:
                return names
            query = replace(query, after=(page[-1].name, page[-1].kind))

    async def _readable(self, store: AsyncStateStore, category: str, name: str) -> Found | None:
        try:
            return await self._read(store, category, name)
        except CorruptDocument as error:
            log().warning("%s", error)
            return None

    async def _read(self, store: AsyncStateStore, category: str, name: str) -> Found | None:
        document = await engine_of(store).get_document(category, name, "json")
        if document is None:
            return None
        try:
            return Found(msgspec.json.decode(document.body, type=Memory), document.version)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise CorruptDocument(f"{category}/{name}.json is not an item of memory: {error}") from error

    async def write(
        self, store: AsyncStateStore, puts: Iterable[Memory], deletes: Iterable[tuple[Namespace, str]]
    ) -> None:
        """Store and remove items, all or none."""
        changes: list[Change] = [self._put(memory) for memory in puts]
        changes += [DeleteDocument(self.category(namespace), stored_name(key), "json") for namespace, key in deletes]
        if engine_of(store).atomic_scope == "store":
            if changes:
                await engine_of(store).commit(changes)
            return
        for change in changes:
            await engine_of(store).commit([change])

    async def renew(self, store: AsyncStateStore, found: Iterable[Found]) -> None:
        """Begin the time of items anew; those that somebody changed meanwhile have begun theirs."""
        await _make(
            store,
            [
                self._put(replace(one.memory, expires_at=expiry(one.memory.ttl_minutes)), Requires(version=one.version))
                for one in found
                if one.memory.ttl_minutes is not None
            ],
        )

    async def sweep(self, store: AsyncStateStore) -> int:
        """Remove the items whose time is over; how many."""
        doomed = [
            DeleteDocument(
                self.category(one.memory.namespace),
                stored_name(one.memory.key),
                "json",
                Requires(version=one.version),
            )
            for one in await self.below(store, (), lambda one: one.memory.is_expired())
        ]
        return sum([await _make(store, doomed[start : start + _PAGE]) for start in range(0, len(doomed), _PAGE)])

    def _put(self, memory: Memory, requires: Requires | None = None) -> PutDocument:
        json_text(memory.value, f"the value of {memory.key!r}")  # which is stricter than for a struct: no bytes
        body = pretty(json_text(memory, f"the item {memory.key!r}"))
        category, name = self.category(memory.namespace), stored_name(memory.key)
        return PutDocument(category, name, "json", body, requires or Requires())


async def _make(store: AsyncStateStore, changes: Sequence[Change]) -> int:
    """Make those changes for which what they were decided on is still so, together where that can be; how many."""
    if engine_of(store).atomic_scope != "store" and len(changes) > 1:
        return sum(await for_each(store, changes, lambda change: _make(store, [change])))
    while changes:
        try:
            await engine_of(store).commit(changes)
        except PreconditionFailed as failed:
            outdated = {failure.index for failure in failed.failures}
            changes = [change for index, change in enumerate(changes) if index not in outdated]
        else:
            break
    return len(changes)


def expiry(minutes: float | None) -> datetime | None:
    """When the time of something is over that begins now."""
    return None if minutes is None else datetime.now(UTC) + timedelta(minutes=minutes)
