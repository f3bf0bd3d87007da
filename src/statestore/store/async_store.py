"""`AsyncStateStore`: the store for asynchronous code, and the place where all parts of it meet."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from msgspec.structs import replace

from statestore.engine import (
    Engine,
    PreconditionFailed,
)
from statestore.errors import StoreClosed
from statestore.host import Host
from statestore.jsontext import check_label
from statestore.opening import Durability, engine_for, path_of_database
from statestore.pruning import PruneThrottle, UserThrottles
from statestore.session import Session, ledger_of
from statestore.store.batch import AsyncBatchBlock, Collected, Drafted
from statestore.store.capabilities import backing_up, compacting, repairing
from statestore.store.documents import AsyncDocuments
from statestore.store.erasing import Erasure
from statestore.store.failures import explained
from statestore.store.sessions import AsyncSessions
from statestore.stored import Problem


class AsyncUserStore(AsyncSessions):
    """One user's sessions and nothing else: others' look absent, and no change can reach them.

    It has no documents, no check and no copy, so it is safe to hand to code that serves that user.
    """

    @property
    def user_id(self) -> str:
        """Whose sessions these are."""
        assert self._owner is not None
        return self._owner


class AsyncStateStore(AsyncSessions, AsyncDocuments):
    """Durable sessions and documents, for code that runs in an event loop.

    ``await AsyncStateStore.open(…)`` and ``async with AsyncStateStore.open(…) as store:`` both work. `StateStore`
    has the same methods for plain code.
    """

    def __init__(self, host: Host, *, prune_cooldown_secs: float = 60) -> None:
        """Use `open`: a store needs an engine that is open, and a place to run in."""
        if not isinstance(host, Host):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"use {type(self).__name__}.open({host!r})")
        self._throttles = UserThrottles(prune_cooldown_secs)
        super().__init__(host, None, PruneThrottle(prune_cooldown_secs))

    @classmethod
    def open(
        cls,
        target: str | os.PathLike[str] | Engine,
        *,
        create: bool = True,
        read_only: bool = False,
        durability: Durability = "full",
        prune_cooldown_secs: float = 60,
    ) -> Opening[Self]:
        """Open a store: a URL (``sqlite:FILE``, ``postgresql://…``, ``memory:``, …), a path, or an engine.

        ``create=False`` refuses a store that is not there; ``read_only=True`` writes nothing at all.
        ``durability="relaxed"`` survives a killed process but not a power cut. ``prune_cooldown_secs`` is how often
        `save_session_with_prune` prunes at most.
        """
        engine = engine_for(target, create=create, read_only=read_only, durability=durability)
        return Opening(cls, engine, prune_cooldown_secs)

    async def close(self) -> None:
        """Wait for background work, then let go of everything. Calling it again does nothing."""
        try:
            await self._host.drain()
        finally:
            await self._host.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def url(self) -> str:
        """The store as a URL, without any password."""
        return self._engine.url

    def batch(self) -> AsyncBatchBlock:
        """``async with store.batch() as batch:`` - what is written to ``batch`` happens together or not at all."""
        return AsyncBatchBlock(self._commit_batch)

    async def _commit_batch(self, content: Collected) -> None:
        """Make all the writes of a batch."""
        content.check_is_open()
        content.is_over = True  # what is written to it from now on would be in nobody's hands
        for session in content.sessions:
            self._check_session(session)
        async with AsyncExitStack() as turns:
            for session in sorted(content.sessions, key=lambda session: (session.id, id(session))):
                await turns.enter_async_context(self._host.turn(session))
                await self._settle(session)
            drafted = Drafted(content)
            if drafted.changes:
                await self._commit_drafted(drafted, content.sessions)

    async def _commit_drafted(self, drafted: Drafted, sessions: Sequence[Session]) -> None:
        drafted.note_unsure()  # until it is noted: whatever breaks it off, it may have happened
        try:
            outcomes = await self._engine.commit(drafted.changes)
        except PreconditionFailed as failed:
            for session in sessions:
                ledger_of(session).unsure = None
            raise explained(failed, drafted.changes) from None
        drafted.note_stored(outcomes, self._engine.url)

    def for_user(self, user_id: str) -> AsyncUserStore:
        """A store that sees and changes this user's sessions alone."""
        owner = check_label(user_id, "a user id")
        return AsyncUserStore(self._host, owner, self._throttles.of(owner))

    async def erase_user(self, user_id: str) -> int:
        """Remove all sessions of one user, trash included, whoever is writing meanwhile; how many there were.

        `CorruptData` if there are sessions that no listing can show: those are left. `SessionConflict` if others never
        stop making new ones.
        """
        return await Erasure(self._engine, self.for_user(user_id), user_id).make()

    async def check(self, *, repair: bool = False) -> list[Problem]:
        """Look at everything that is stored; what is wrong, where, and what to do. By itself it changes nothing.

        ``repair=True`` first mends what can be mended without losing anything; what it mended comes first, and is
        marked with ``is_repaired``.
        """
        mended = await repairing(self._engine).repair() if repair else []
        return [replace(problem, is_repaired=True) for problem in mended] + await self._engine.check()

    async def backup(self, to: str | os.PathLike[str]) -> None:
        """Copy the store to a new file while it is in use; the copy is of one moment, and was read back and checked.

        The file is given as a path, or as ``sqlite:FILE``.
        """
        await backing_up(self._engine).backup(path_of_database(to))

    async def compact(self) -> int:
        """Store everything anew, with nothing left of what was said in deleted sessions; how many bytes less it takes.

        Only their ids and owners stay, among the changes that are kept for watchers. Others go on reading (not
        with a rollback journal); who writes waits until it is done, for as long as its timeout says. It needs room for
        a second copy, for a while, beside the store and in the directory for temporary files.
        """
        return await compacting(self._engine).compact()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}>"


S = TypeVar("S", bound=AsyncStateStore)


class Opening(Generic[S]):
    """A store about to be opened: await it, or use it as ``async with``, once."""

    def __init__(self, kind: type[S], engine: Engine, prune_cooldown_secs: float) -> None:
        self._kind = kind
        self._engine = engine
        self._cooldown = prune_cooldown_secs
        self._store: S | None = None

    async def _open(self) -> S:
        from statestore.bridge import LoopHost  # noqa: PLC0415 - asyncio is loaded when it is used

        if self._store is not None:
            raise StoreClosed("this has opened a store already: AsyncStateStore.open(…) opens another one")
        host = LoopHost(self._engine)
        self._store = store = self._kind(host, prune_cooldown_secs=self._cooldown)
        try:
            await host.engine.open()
        except BaseException:
            self._store = None
            raise
        return store

    if not TYPE_CHECKING:  # for type checkers there is no such attribute, as there is none

        def __getattr__(self, name: str) -> Any:
            raise StoreClosed(
                f"the store is not open yet: await AsyncStateStore.open(…), or use it in async with (.{name})"
            )

    def __repr__(self) -> str:
        return f"<{self._engine.url}, not open yet>"

    def __await__(self) -> Generator[Any, None, S]:
        return self._open().__await__()

    async def __aenter__(self) -> S:
        return await self._open()

    async def __aexit__(self, *_: object) -> None:
        if self._store is None:
            raise StoreClosed("the store was never opened")
        await self._store.close()
