"""Writing to the target: small changes in one batch where it can, or in one call, or each by itself."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from msgspec.structs import replace

from statestore.copying.telling import CopyRefused, Difference, Differences
from statestore.engine import (
    Change,
    ChangeSession,
    DeleteDocument,
    DeleteSession,
    Engine,
    Outcome,
    PreconditionFailed,
    PutDocument,
    Requires,
)
from statestore.errors import CorruptData, InvalidName, InvalidValue, NotSupported
from statestore.store.singly import commit_each
from statestore.stored import Version

PACK_CHANGES: Final = 100
PACK_BYTES: Final = 1 << 19


class Unfit(Exception):
    """An item that the target cannot hold; the message says why."""


class Damaged(Exception):
    """An item that cannot be written to, since what the target has of it is damaged; the message says how."""


class Packer:
    """Gathers changes to items, each of which is named once, and commits them before they become too many."""

    def __init__(self, target: Engine, on_commit: Callable[[], None], damaged: Differences) -> None:
        self._target = target
        self._on_commit = on_commit
        self._damaged = damaged
        self.unfit = Differences()
        """What the target cannot hold; it keeps no others out."""
        self._spans = target.atomic_scope == "store"
        self._most = PACK_CHANGES if self._spans or hasattr(target, "commit_group") else 1
        self._changes: list[Change] = []
        self._bytes = 0

    async def add(self, change: Change, size: int) -> None:
        """Write this, now or with the next ones."""
        if self._bytes + size > PACK_BYTES:
            await self.flush()
        self._changes.append(change)
        self._bytes += size
        if len(self._changes) >= self._most:
            await self.flush()

    async def flush(self) -> None:
        """Write what was gathered."""
        changes, self._changes, self._bytes = self._changes, [], 0
        if changes:
            await (self._commit_together(changes) if self._spans else self._commit_singly(changes))
            self._on_commit()

    async def commit(self, change: ChangeSession, version: Version | None = None) -> Version:
        """Write one change, to a session at this version; the version it has then. Raises `Unfit`."""
        await self.flush()
        if version is not None:
            change = replace(change, requires=Requires(version=version))
        (outcome,) = await self._commit([change])
        self._on_commit()
        assert outcome.version is not None
        return outcome.version

    @contextmanager
    def noting(self, where: str) -> Generator[None]:
        """While an item is written: note it if the target cannot hold it, or cannot read what it has, and go on."""
        with self.unfit.noting(where, Unfit), self._damaged.noting(where, Damaged):
            yield

    async def _commit_singly(self, changes: Sequence[Change]) -> None:
        """Write changes that cannot share a batch. There are several only if the target takes them in one call."""
        if len(changes) == 1:
            await self._commit_together(changes)
            return
        for change, result in zip(changes, await commit_each(self._target, changes), strict=True):
            if isinstance(result, Exception):
                with self.noting(_place(change)):
                    async with self._explaining([change]):
                        raise result

    async def _commit_together(self, changes: Sequence[Change]) -> None:
        """Write changes in one batch, or one by one if there is one among them that cannot be written."""
        if len(changes) == 1:
            with self.noting(_place(changes[0])):
                await self._commit(changes)
            return
        try:
            await self._commit(changes)
        except (Unfit, Damaged):
            for change in changes:
                await self._commit_together([change])

    async def _commit(self, changes: Sequence[Change]) -> list[Outcome]:
        async with self._explaining(changes):
            return await self._target.commit(changes)

    @asynccontextmanager
    async def _explaining(self, changes: Sequence[Change]) -> AsyncGenerator[None]:
        """While changes are made: what a copy says if they cannot be."""
        try:
            yield
        except PreconditionFailed as failed:
            for failure in failed.failures:
                await self._check_is_sound(changes[failure.index])
            found = [Difference(_place(changes[failure.index]), failure.reason) for failure in failed.failures]
            raise CopyRefused(
                f"somebody else writes to {self._target.url}: {', '.join(each.where for each in found)} changed there "
                "while it was being copied; let nobody write there, and run the copy again",
                found,
            ) from failed
        except CorruptData as error:
            raise Damaged(str(error)) from error
        except (InvalidName, InvalidValue, NotSupported) as error:
            raise Unfit(str(error)) from error

    async def _check_is_sound(self, change: Change) -> None:
        """Raise `Damaged` for a session that the target had all along, though its listings do not show it."""
        if isinstance(change, ChangeSession):
            try:
                await self._target.read_session(change.id, last=0)
            except CorruptData as error:
                raise Damaged(str(error)) from error


def _place(change: Change) -> str:
    if isinstance(change, (PutDocument, DeleteDocument)):
        return f"document {change.category}/{change.name}.{change.kind}"
    assert isinstance(change, (ChangeSession, DeleteSession))
    return f"session {change.id}"
