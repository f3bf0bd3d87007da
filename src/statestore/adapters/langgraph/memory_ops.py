"""One batch of operations on long-term memory: what it reads, what it writes, which texts must be embedded for it.

As in the framework's own stores, reads see what was there before the batch, and of several writes to one key the last
one counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from langgraph.store.base import (
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    get_text_at_path,
)

from statestore.adapters.langgraph.memories import Found, Memory, Namespace, Shelf, expiry
from statestore.adapters.langgraph.ranking import closeness, is_in, matches, share_of_words
from statestore.adapters.several import for_each
from statestore.errors import InvalidValue
from statestore.store.async_store import AsyncStateStore

Vectors = Mapping[str, Sequence[float]]
"""Texts and what they were embedded to."""


class MemoryBatch:
    """The operations of one batch, in their order."""

    def __init__(self, shelf: Shelf, ops: Iterable[Op], *, fields: Sequence[str] | None, omits_expired: bool) -> None:
        self._shelf = shelf
        self._ops = list(ops)
        self._fields = fields
        self._omits_expired = omits_expired
        self._renewed: dict[tuple[Namespace, str], Found] = {}
        self._puts: dict[tuple[Namespace, str], PutOp] = {}
        for op in self._ops:
            if isinstance(op, PutOp):
                self._puts[op.namespace, op.key] = op

    def texts(self) -> list[str]:
        """What must be embedded to put items, each text once."""
        found = [text for op in self._puts.values() for text in self._texts_of(op).values()]
        return list(dict.fromkeys(found))

    def queries(self) -> list[str]:
        """What must be embedded to search, each text once."""
        asked = [op.query for op in self._ops if isinstance(op, SearchOp) and op.query]
        return list(dict.fromkeys(asked)) if self._fields is not None else []

    async def done(self, store: AsyncStateStore, vectors: Vectors) -> list[Result]:
        """Do it all; what each operation gives back."""
        results = await self._read(store, vectors)
        await self._shelf.renew(store, self._renewed.values())
        if self._puts:
            await self._write(store, vectors)
        return results

    async def _read(self, store: AsyncStateStore, vectors: Vectors) -> list[Result]:
        """What each operation gives back. Items are got together, before anything else is looked for."""
        places = dict.fromkeys((op.namespace, op.key) for op in self._ops if isinstance(op, GetOp))
        found = await for_each(store, places, lambda place: self._shelf.get(store, *place))
        items = dict(zip(places, found, strict=True))
        results: list[Result] = []
        for op in self._ops:
            if isinstance(op, GetOp):
                results.append(self._got(op, items[op.namespace, op.key]))
            elif isinstance(op, SearchOp):
                results.append(await self._search(store, op, vectors))
            elif isinstance(op, ListNamespacesOp):
                results.append(await self._list(store, op))
            elif isinstance(op, PutOp):  # pyright: ignore[reportUnnecessaryIsInstance]
                results.append(None)
            else:
                raise InvalidValue(f"a store of memory does not know the operation {type(op).__name__}")
        return results

    def _got(self, op: GetOp, found: Found | None) -> Item | None:
        if found is None or self._is_over(found):
            return None
        if op.refresh_ttl:
            self._renew(found)
        return found.memory.item()

    async def _search(self, store: AsyncStateStore, op: SearchOp, vectors: Vectors) -> list[SearchItem]:
        wanted = op.filter or {}

        def is_wanted(one: Found) -> bool:
            return not self._is_over(one) and all(matches(one.memory.value.get(key), wanted[key]) for key in wanted)

        enough = None if op.query else op.offset + op.limit
        found = await self._shelf.below(store, op.namespace_prefix, is_wanted, enough=enough)
        scored = [(one, _score(op.query, one.memory, vectors)) for one in found]
        if op.query:
            scored.sort(key=lambda pair: -2.0 if pair[1] is None else pair[1], reverse=True)
        page = scored[op.offset : op.offset + op.limit]
        if op.refresh_ttl:
            for one, _ in page:
                self._renew(one)
        return [_search_item(one.memory, score) for one, score in page]

    def _renew(self, found: Found) -> None:
        self._renewed[found.memory.namespace, found.memory.key] = found

    async def _list(self, store: AsyncStateStore, op: ListNamespacesOp) -> list[Namespace]:
        namespaces = await self._shelf.namespaces(store, lambda one: not self._is_over(one))
        chosen = {ns for ns in namespaces if all(is_in(ns, condition) for condition in op.match_conditions or ())}
        cut = chosen if op.max_depth is None else {ns[: op.max_depth] for ns in chosen}
        return sorted(cut)[op.offset : op.offset + op.limit]

    async def _write(self, store: AsyncStateStore, vectors: Vectors) -> None:
        now = datetime.now(UTC)
        values = {place: op.value for place, op in self._puts.items() if op.value is not None}
        known = await for_each(store, values, lambda place: self._shelf.get(store, *place))
        memories: list[Memory] = []
        for ((namespace, key), value), before in zip(values.items(), known, strict=True):
            op = self._puts[namespace, key]
            found = {path: list(vectors[text]) for path, text in self._texts_of(op).items() if text in vectors}
            created = now if before is None else before.memory.created_at
            memories.append(Memory(namespace, key, dict(value), created, now, op.ttl, expiry(op.ttl), found))
        gone = [place for place, op in self._puts.items() if op.value is None]
        await self._shelf.write(store, memories, gone)

    def _texts_of(self, op: PutOp) -> dict[str, str]:
        """The texts that an item is found by, by their paths."""
        if self._fields is None or op.value is None or op.index is False:
            return {}
        texts: dict[str, str] = {}
        for path in self._fields if op.index is None else op.index:
            found = get_text_at_path(op.value, path)
            for number, text in enumerate(found):
                texts[path if len(found) == 1 else f"{path}.{number}"] = text
        return texts

    def _is_over(self, found: Found) -> bool:
        return self._omits_expired and found.memory.is_expired()


def _score(query: str | None, memory: Memory, vectors: Vectors) -> float | None:
    if not query:
        return None
    return closeness(vectors[query], memory) if query in vectors else share_of_words(query, memory)


def _search_item(memory: Memory, score: float | None) -> SearchItem:
    item: dict[str, Any] = {"value": memory.value, "key": memory.key, "namespace": memory.namespace}
    return SearchItem(**item, created_at=memory.created_at, updated_at=memory.updated_at, score=score)
