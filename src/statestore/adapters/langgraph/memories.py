"""Items of long-term memory as JSON documents: a namespace is a category, a key is a name.

What a batch puts and deletes happens in one commit (one by one, where an engine's commit holds one item). What the
sweeper deletes, and what is given more time because it was read, is so only if nobody wrote it meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
from langgraph.store.base import Item
from msgspec import Struct
from msgspec.structs import replace

from statestore.adapters.identifiers import stored_category, stored_name
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

    async def below(self, store: AsyncStateStore, prefix: Sequence[str]) -> list[Found]:
        """All items of the namespaces that begin so, by namespace and key; a warning tells what cannot be read."""
        found: list[Found] = []
        for category in await engine_of(store).list_categories(self.category(prefix)):
            for name in await self._names(store, category):
                try:
                    one = await self._read(store, category, name)
                except CorruptDocument as error:
                    log().warning("%s", error)
                    continue
                if one is not None:
                    found.append(one)
        return found

    async def _names(self, store: AsyncStateStore, category: str) -> list[str]:
        names: list[str] = []
        query = DocumentQuery(category, limit=_PAGE)
        while page := await engine_of(store).list_documents(query):
            names += [info.name for info in page if info.kind == "json"]
            query = replace(query, after=(page[-1].name, page[-1].kind))
        return names

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
        for one in found:
            if one.memory.ttl_minutes is not None:
                renewed = replace(one.memory, expires_at=expiry(one.memory.ttl_minutes))
                await _try(store, self._put(renewed, Requires(version=one.version)))

    async def sweep(self, store: AsyncStateStore) -> int:
        """Remove the items whose time is over; how many."""
        swept = 0
        for one in await self.below(store, ()):
            if one.memory.is_expired():
                place = self.category(one.memory.namespace), stored_name(one.memory.key)
                swept += await _try(store, DeleteDocument(*place, "json", Requires(version=one.version)))
        return swept

    def _put(self, memory: Memory, requires: Requires | None = None) -> PutDocument:
        json_text(memory.value, f"the value of {memory.key!r}")  # which is stricter than for a struct: no bytes
        body = pretty(json_text(memory, f"the item {memory.key!r}"))
        category, name = self.category(memory.namespace), stored_name(memory.key)
        return PutDocument(category, name, "json", body, requires or Requires())


async def _try(store: AsyncStateStore, change: Change) -> bool:
    """Make a change if what it was decided on is still so; whether it was made."""
    try:
        await engine_of(store).commit([change])
    except PreconditionFailed:
        return False
    return True


def expiry(minutes: float | None) -> datetime | None:
    """When the time of something is over that begins now."""
    return None if minutes is None else datetime.now(UTC) + timedelta(minutes=minutes)
