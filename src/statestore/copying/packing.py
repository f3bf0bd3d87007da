"""Writing to the target: small changes in one batch where it can, or in one call, or each by itself."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Final

from msgspec.structs import replace

from statestore.copying.telling import CopyRefused, Difference
from statestore.engine import (
    Change,
    ChangeSession,
    Engine,
    Outcome,
    PreconditionFailed,
    PutDocument,
    Requires,
)
from statestore.errors import InvalidValue, NotSupported
from statestore.store.singly import commit_each
from statestore.stored import Version

PACK_CHANGES: Final = 100
PACK_BYTES: Final = 1 << 19


class Packer:
    """Gathers changes to items that the target does not have yet, and commits them before they become too many."""

    def __init__(self, target: Engine, on_commit: Callable[[], None]) -> None:
        self._target = target
        self._on_commit = on_commit
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
            await (self._commit(changes) if self._spans else self._commit_singly(changes))
            self._on_commit()

    async def commit(self, change: ChangeSession, version: Version | None = None) -> Version:
        """Write one change, to a session at this version; the version it has then."""
        await self.flush()
        if version is not None:
            change = replace(change, requires=Requires(version=version))
        (outcome,) = await self._commit([change])
        self._on_commit()
        assert outcome.version is not None
        return outcome.version

    async def _commit_singly(self, changes: Sequence[Change]) -> None:
        """Write changes that cannot share a batch. There are several only if the target takes them in one call."""
        if len(changes) == 1:
            await self._commit(changes)
            return
        for change, result in zip(changes, await commit_each(self._target, changes), strict=True):
            if isinstance(result, Exception):
                with self._explaining([change]):
                    raise result

    async def _commit(self, changes: Sequence[Change]) -> list[Outcome]:
        try:
            with self._explaining(changes):
                return await self._target.commit(changes)
        except (NotSupported, InvalidValue):
            if len(changes) == 1:
                raise
        return [outcome for change in changes for outcome in await self._commit([change])]  # which one it is

    @contextmanager
    def _explaining(self, changes: Sequence[Change]) -> Generator[None]:
        """While changes are made: what a copy says if they cannot be."""
        try:
            yield
        except PreconditionFailed as failed:
            found = [Difference(_place(changes[failure.index]), failure.reason) for failure in failed.failures]
            raise CopyRefused(
                f"somebody else writes to {self._target.url}: {', '.join(each.where for each in found)} changed there "
                "while it was being copied; let nobody write there, and run the copy again",
                found,
            ) from failed
        except (NotSupported, InvalidValue) as error:
            kind = NotSupported if isinstance(error, NotSupported) else InvalidValue
            raise kind(f"{self._target.url} cannot hold {_place(changes[0])}: {error}") from error


def _place(change: Change) -> str:
    if isinstance(change, PutDocument):
        return f"document {change.category}/{change.name}.{change.kind}"
    assert isinstance(change, ChangeSession)
    return f"session {change.id}"
