"""`StateStoreStore`: LangGraph's long-term memory in a state store, an item in a document."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from langgraph.store.base import BaseStore, IndexConfig, Op, Result, TTLConfig, ensure_embeddings

from statestore.adapters.access import Access, ClosesEitherWay, Target
from statestore.adapters.langgraph.memories import Shelf
from statestore.adapters.langgraph.memory_ops import MemoryBatch
from statestore.errors import InvalidValue
from statestore.store.logs import log


class StateStoreStore(ClosesEitherWay, BaseStore):
    """Keeps LangGraph's long-term memory: ``graph = builder.compile(store=StateStoreStore(store))``.

    ``store`` is an open `StateStore` or `AsyncStateStore`, or a URL to open one; what is opened here is closed by
    `close`, or by using this in ``with`` or ``async with``. Items are JSON documents below the category ``root``.

    With an ``index`` (an embedding function and the fields to embed), searches go by meaning. Without one they go by
    words: what holds more of them comes first. ``ttl`` says how long items live by default; `start_ttl_sweeper` removes
    those whose time is over, now and then.
    """

    supports_ttl = True

    def __init__(
        self,
        store: Target,
        *,
        root: str = "memories",
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        self._access = Access(store, opens="plain")
        self._shelf = Shelf(root)
        self.ttl_config = ttl
        self.index_config = index
        self._embeddings = None if index is None else ensure_embeddings(index.get("embed"))
        self._sweeper: threading.Thread | None = None
        self._enough = threading.Event()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        batch = self._batch(ops)
        vectors: dict[str, list[float]] = {}
        if self._embeddings is not None:
            if texts := batch.texts():
                vectors |= zip(texts, self._embeddings.embed_documents(texts), strict=True)
            vectors |= {query: self._embeddings.embed_query(query) for query in batch.queries()}
        return self._access.call(lambda store: batch.done(store, vectors))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        batch = self._batch(ops)
        vectors: dict[str, list[float]] = {}
        if self._embeddings is not None:
            if texts := batch.texts():
                vectors |= zip(texts, await self._embeddings.aembed_documents(texts), strict=True)
            vectors |= {query: await self._embeddings.aembed_query(query) for query in batch.queries()}
        return await self._access.run(lambda store: batch.done(store, vectors))

    def _batch(self, ops: Iterable[Op]) -> MemoryBatch:
        fields = None if self.index_config is None else self.index_config.get("fields") or ["$"]
        omits_expired = bool(self.ttl_config and self.ttl_config.get("omit_expired"))
        return MemoryBatch(self._shelf, ops, fields=fields, omits_expired=omits_expired)

    # -- Time to live

    def sweep_ttl(self) -> int:
        """Remove all items whose time is over; how many there were."""
        return self._access.call(self._shelf.sweep)

    async def asweep_ttl(self) -> int:
        """Remove all items whose time is over; how many there were."""
        return await self._access.run(self._shelf.sweep)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> None:
        """Sweep every few minutes, in a thread of its own, until `stop_ttl_sweeper` or `close`."""
        interval = sweep_interval_minutes or (self.ttl_config or {}).get("sweep_interval_minutes") or 5
        if interval <= 0:
            raise InvalidValue(f"a sweeper needs an interval of more than 0 minutes, not {interval}")
        if self._sweeper is not None and self._sweeper.is_alive():
            return
        self._enough.clear()
        self._sweeper = threading.Thread(target=self._sweep, args=(interval,), name="statestore-sweeper", daemon=True)
        self._sweeper.start()

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop sweeping; whether the sweeper has ended within so many seconds."""
        self._enough.set()
        if self._sweeper is None:
            return True
        self._sweeper.join(timeout)
        return not self._sweeper.is_alive()

    def _sweep(self, minutes: float) -> None:
        while not self._enough.wait(minutes * 60):
            try:
                self.sweep_ttl()
            except Exception:  # noqa: BLE001 - nobody waits for it, so it is told to the log
                log().warning("sweeping items whose time is over failed", exc_info=True)

    # -- The store's life

    def close(self) -> None:
        """Stop sweeping, and close the store if it was opened here."""
        self.stop_ttl_sweeper()
        self._access.close()

    async def aclose(self) -> None:
        """Stop sweeping, and close the store if it was opened here."""
        self._enough.set()
        await self._access.aclose()
