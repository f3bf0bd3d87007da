"""The ``Storage`` of Strands in a statestore: bytes under keys, for snapshots, memories and offloaded context.

A key is a path. ``sessions/abc/snapshot.json`` is the document ``snapshot.json`` in the category
``strands/sessions/abc``, as bytes.
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any, Final, TypeVar

from strands.types.exceptions import StorageError

from statestore.adapters.access import Access, ClosesItsStore, Target, Work
from statestore.adapters.identifiers import category_parts, is_shortened, original_name, stored_category, stored_name
from statestore.adapters.several import for_each
from statestore.errors import StateStoreError
from statestore.store.async_store import AsyncStateStore

if TYPE_CHECKING:
    from strands.storage.storage import StorageSearchResult

T = TypeVar("T")
ROOT: Final = "strands"


class StateStoreStorage(ClosesItsStore):
    """A `Storage`: bytes under keys.

    ``store`` is an open `StateStore`, which is used in threads, or a URL or path: then it is opened on first use, and
    `close` closes it. Strands has event loops of its own (an agent is restored in one, a plain call of it runs in
    another), so an `AsyncStateStore` serves only where it is not bound to its loop: not on PostgreSQL and Valkey.

    Keys are what the framework's own storages take: segments joined by ``/``, none of them ``..``; here a segment has
    at most 200 bytes.

    ``search_strategy`` is told of each write and asked by `search`, as in the framework's own storages; without one,
    keys and contents are searched for the words of a query.
    """

    def __init__(self, store: Target, *, search_strategy: Any = None) -> None:
        self._access = Access(store, opens="plain")
        self._search_strategy = search_strategy

    async def write(self, key: str, data: bytes) -> None:
        """Store bytes under a key, in place of what was there."""
        segments = _segments(key)
        category, name = _place(key, segments)
        await self._run(f"write {key!r}", lambda store: store.save_bytes(category, name, bytes(data)))
        if self._search_strategy is not None:
            try:
                await self._search_strategy.index(self, "/".join(segments), data)
            except Exception as error:
                raise StorageError(f"Wrote {key!r} but indexing failed") from error

    async def read(self, key: str) -> bytes | None:
        """The bytes under a key, or ``None``."""
        category, name = _place(key, _segments(key))
        return await self._run(f"read {key!r}", lambda store: store.load_bytes(category, name))

    async def delete(self, key: str) -> None:
        """Remove what is under a key, if there is anything."""
        category, name = _place(key, _segments(key))
        await self._run(f"delete {key!r}", lambda store: store.delete_file(category, name, kind="bin"))

    async def list(self, query: str = "") -> builtins.list[str]:
        """The keys that begin with a text, sorted."""
        prefix = "/".join(_checked(query, "prefix"))
        if prefix and query.endswith("/"):
            prefix += "/"
        whole = prefix.split("/")[:-1]

        async def find(store: AsyncStateStore) -> builtins.list[str]:
            categories = await store.list_categories(stored_category(ROOT, *whole))
            keys: builtins.list[str] = []
            listed = await for_each(store, categories, store.list_documents)
            for category, documents in zip(categories, listed, strict=True):
                parts = category_parts(category)[1:]
                keys += ["/".join((*parts, original_name(one.name))) for one in documents if one.kind == "bin"]
            return sorted(key for key in keys if key.startswith(prefix))

        return await self._run(f"list keys with prefix {query!r}", find)

    async def search(self, query: str) -> builtins.list[StorageSearchResult]:
        """Where the words of a query are, best first; by the strategy, if there is one.

        Without a strategy, the search is that of strands-agents, which has one from 1.54 on.
        """
        if self._search_strategy is not None:
            return await self._search_strategy.search(self, query)
        try:
            from strands.storage.search import KeywordSearchStrategy  # noqa: PLC0415 - not in every version
        except ImportError as error:
            raise StorageError("searching without a strategy needs strands-agents 1.54 or newer") from error
        return await KeywordSearchStrategy().search(self, query)

    async def _run(self, what: str, work: Work[T]) -> T:
        try:
            return await self._access.run(work)
        except StateStoreError as error:
            raise StorageError(f"Failed to {what}: {error}") from error


def _segments(key: str) -> builtins.list[str]:
    segments = _checked(key, "key")
    if not segments:
        raise StorageError("Storage key must not be empty")
    return segments


def _checked(text: str, what: str) -> builtins.list[str]:
    """The segments of a key or a prefix, by the rules of the framework's own storages."""
    segments = [segment for segment in text.split("/") if segment]
    if "\\" in text or ".." in segments:
        raise StorageError(f"Invalid storage {what} {text!r}: no backslashes, and no segment '..'")
    return segments


def _place(key: str, segments: builtins.list[str]) -> tuple[str, str]:
    """The category and the name of the document for a key."""
    try:
        category, name = stored_category(ROOT, *segments[:-1]), stored_name(segments[-1])
    except StateStoreError as error:
        raise StorageError(f"Invalid storage key {key!r}: {error}") from error
    if any(map(is_shortened, (*category.split("/"), name))):
        raise StorageError(f"Invalid storage key {key!r}: a segment has more than 200 bytes")
    return category, name
