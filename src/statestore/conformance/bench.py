"""What a case works with: a storage of its own, an engine and a store opened on it, and ways to open more."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Coroutine, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import pytest

from statestore.conformance.capabilities import OPTIONAL_CALLS, Capability, offered_by
from statestore.conformance.faces import Face, Work
from statestore.engine import (
    Change,
    ChangePage,
    Engine,
    Failure,
    GroupCommits,
    Outcome,
    PreconditionFailed,
    ReadsSeveral,
    Searches,
    Watches,
)
from statestore.errors import NotSupported
from statestore.notices import Notice
from statestore.store.async_store import AsyncStateStore

if TYPE_CHECKING:
    from statestore.conformance.contract import Contract

T = TypeVar("T")


class Opened(NamedTuple):
    """An engine that is open, and a store over it."""

    engine: Engine
    store: AsyncStateStore


class Bench:
    """One storage and whatever is open on it."""

    def __init__(self, contract: Contract, face: Face, place: Path) -> None:
        self.face = face
        self.place = place
        self._contract = contract
        self._open: list[Opened] = []

    async def start(self) -> None:
        """Open the first engine, on an empty storage."""
        self._open = [await self._opened()]
        await self._contract.prepare(self.engine)

    async def stop(self) -> None:
        """Close whatever is open."""
        while self._open:
            await self._open.pop().store.close()

    @property
    def engine(self) -> Engine:
        """The engine under test, fit to be awaited in this face."""
        return self._open[0].engine

    @property
    def store(self) -> AsyncStateStore:
        """A store over it; in the plain face, too, its methods are awaited."""
        return self._open[0].store

    @property
    def reopens(self) -> bool:
        """Whether the storage outlives an engine."""
        return self._contract.reopens

    @property
    def spans(self) -> bool:
        """Whether a batch may name items that do not live together."""
        return self.engine.atomic_scope == "store"

    def new_engine(self) -> Engine:
        """Another engine on the same storage, not opened, as its maker made it."""
        return self._contract.make_engine(self.place)

    async def reopen(self) -> None:
        """Close, and open a new engine on the same storage. What keeps nothing is left open."""
        if self.reopens:
            await self.stop()
            self._open = [await self._opened()]

    async def crash(self) -> None:
        """Drop everything without closing it, and open a new engine. What keeps nothing is left open."""
        if self.reopens:
            self._drop()
            self._open = [await self._opened()]

    def _drop(self) -> None:
        dropped = [weakref.ref(opened.engine) for opened in self._open]
        self._open.clear()
        if any(engine() is not None for engine in dropped):
            gc.collect()  # held by a circle of references

    async def another(self) -> Opened:
        """A second engine on the same storage at the same time, as another process has it.

        For what keeps nothing, it is a second store over the one engine.
        """
        if self.reopens:
            self._open.append(await self._opened())
            return self._open[-1]
        return Opened(self.engine, self.face.store_on(self.engine))

    def interrupted(self, meanwhile: Callable[[], Coroutine[Any, Any, object]], times: int = 1) -> AsyncStateStore:
        """A store that is overtaken: before each of its first commits, somebody else does something."""
        return self.face.store_on(cast("Engine", _Interrupted(self.engine, meanwhile, times)))

    async def together(self, *workers: Work[T]) -> list[T]:
        """Do all of this at the same time."""
        return await self.face.together(list(workers))

    async def breathe(self) -> None:
        """Let others have a turn."""
        await self.face.breathe()

    async def commit(self, *changes: Change) -> list[Outcome]:
        """Make these changes, in one batch where the engine takes one, else one by one."""
        if self.spans or len(changes) == 1:
            outcomes = await self.engine.commit(changes)
        else:
            await self.assert_refused(changes)
            outcomes = [outcome for change in changes for outcome in await self.engine.commit([change])]
        assert [type(outcome) for outcome in outcomes] == [Outcome] * len(changes), "one outcome for each change"
        return outcomes

    async def assert_refused(self, batch: Sequence[Change]) -> None:
        """An engine that cannot make items that live apart change together says so."""
        with pytest.raises(NotSupported):
            await self.engine.commit(batch)

    async def failures_of(self, *changes: Change) -> list[Failure]:
        """What a batch that cannot be made is told."""
        with pytest.raises(PreconditionFailed) as caught:
            await self.engine.commit(changes)
        return list(caught.value.failures)

    # -- what not every engine offers

    @property
    def searching(self) -> Searches:
        """The engine, which searches."""
        return cast("Searches", self.engine)

    @property
    def watching(self) -> Watches:
        """The engine, which can be watched."""
        return cast("Watches", self.engine)

    @property
    def grouping(self) -> GroupCommits:
        """The engine, which commits in groups."""
        return cast("GroupCommits", self.engine)

    @property
    def several(self) -> ReadsSeveral:
        """The engine, which reads several items at once."""
        return cast("ReadsSeveral", self.engine)

    def offers(self, capability: Capability) -> bool:
        """Whether the engine is said to offer this."""
        return capability in self._contract.offers

    def assert_declared(self, *capabilities: Capability) -> None:
        """The engine has all methods of what it is said to offer, and none of what it is not."""
        found = offered_by(self.new_engine())
        for capability in capabilities or OPTIONAL_CALLS:
            where = f"{type(self._contract).__name__}.offers"
            if self.offers(capability):
                missing = [name for name in OPTIONAL_CALLS[capability] if not hasattr(self.engine, name)]
                assert not missing, f"{where} has {capability!r}, and the engine has no {missing}"
            else:
                assert capability not in found, f"the engine offers {capability!r}, and {where} does not say so"

    async def assert_not_offered(self, capability: Capability) -> None:
        """What the engine cannot do is refused, and everything else goes on."""
        store, copy = self.store, self.place.with_name("copy.db")
        attempts: dict[Capability, list[Callable[[], Coroutine[Any, Any, object]]]] = {
            "search": [lambda: store.search_sessions("word"), lambda: store.for_user("u").search_sessions("")],
            "watch": [
                lambda: store.change_cursor(),
                lambda: store.for_user("u").change_cursor(),
                lambda: _first(store.watch()),
                lambda: _first(store.for_user("u").watch("s", after="x")),
            ],
            "backup": [lambda: store.backup(copy)],
            "compact": [store.compact],
            "repair": [lambda: store.check(repair=True)],
            "group": [],
            "several": [],
            "wake": [],
            "point": [],
        }
        await store.save_json("notes", "n", 1)
        for attempt in attempts[capability]:
            with pytest.raises(NotSupported):
                await attempt()
        assert not copy.exists()
        assert await store.load_json("notes", "n") == 1

    async def notices(
        self, after: str, session_id: str | None = None, *, user_id: str | None = None, opened: Opened | None = None
    ) -> list[Notice]:
        """Everything that a store's watch tells now, without waiting for more."""
        engine = cast("Engine", _Impatient((opened or self).engine))
        store = self.face.store_on(engine)
        watch = (store if user_id is None else store.for_user(user_id)).watch(session_id, after=after)
        told: list[Notice] = []
        async with aclosing(watch) as notices:
            try:
                while True:
                    told.append(await anext(notices))
            except _NothingMore:
                return told

    async def _opened(self) -> Opened:
        engine = self.face.fit(self.new_engine())
        await engine.open()
        return Opened(engine, self.face.store_on(engine))


class _Interrupted:
    """An engine with something happening between the store's look and its commit."""

    def __init__(self, engine: Engine, meanwhile: Callable[[], Coroutine[Any, Any, object]], times: int) -> None:
        self._engine = engine
        self._meanwhile = meanwhile
        self._times = times

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._engine, name)
        return partial(self._overtaken, found) if name == "commit_group" else found

    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        return await self._overtaken(self._engine.commit, batch)

    async def _overtaken(self, commit: Callable[[Any], Coroutine[Any, Any, T]], what: Any) -> T:
        if self._times > 0:
            self._times -= 1
            await self._meanwhile()
        return await commit(what)


async def _first(notices: Any) -> Notice:
    return await anext(notices)


class _NothingMore(Exception):
    """A watch would wait now."""


class _Impatient:
    """An engine whose watchers do not wait."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def read_changes(self, after: str, **options: Any) -> ChangePage:
        page = await cast("Watches", self._engine).read_changes(after, **options)
        if page.cursor == after:
            assert not page.notices, "a page that tells something ends elsewhere"
            raise _NothingMore
        return page
