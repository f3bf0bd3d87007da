"""Making groups of batches: one statement each, under a token that lets it be repeated until its outcome is known."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, cast
from uuid import uuid4

import msgspec

from statestore.engine import (
    Batch,
    Change,
    ChangeSession,
    DeleteCategory,
    Failure,
    Outcome,
    PreconditionFailed,
    PutDocument,
    Result,
)
from statestore.engines.judging import check_batch
from statestore.engines.postgres.batches import (
    AS_GIVEN,
    are_plain,
    arguments,
    check_numbers,
    numbering_of,
    places_of,
    plain_arguments,
    size_of,
)
from statestore.engines.postgres.clocks import ServerClocks
from statestore.engines.postgres.driver import Connection
from statestore.engines.postgres.failures import (
    is_about_one_batch,
    is_locked,
    is_passing,
    is_passing_but_for_locks,
    is_too_late,
)
from statestore.engines.postgres.persisting import Attempt, Persistence
from statestore.engines.postgres.statements import SQL
from statestore.engines.versions import new_version
from statestore.errors import StateStoreError, StoreUnavailable

PORTION: Final = 16_000_000
"""How many bytes go into one statement, about; a batch that is larger goes alone."""

BRIEFLY: Final = " WHERE set_config('statestore.longest_wait', '500', true) IS NOT NULL"
"""At the end of a statement: it gives up when it has waited for a lock for half a second."""

_decode_told = msgspec.json.Decoder(list[list[Any]]).decode


class Locked(Exception):
    """Somebody else has locked what a batch names, and it was not waited for: nothing was written."""


class Writer:
    """Makes batches. Of those that somebody else has locked, so many wait at the same time."""

    def __init__(self, persistence: Persistence, *, waiting: int) -> None:
        self._persistence = persistence
        self._clocks = ServerClocks()
        self._room = asyncio.Semaphore(waiting)

    async def commit_group(self, batches: Sequence[Batch]) -> list[Result]:
        """Make each batch wholly or not at all, as if in this order; its outcomes, or why it was not made.

        `Locked` is for `commit_locked`: so one locked session does not hold up who shares a group with it.
        """
        results: dict[int, Result] = {}
        sizes: dict[int, int] = {}
        for index, batch in enumerate(batches):
            try:
                check_batch(batch)
                check_numbers(batch)
                if batch:
                    sizes[index] = size_of(batch)
                else:
                    results[index] = []
            except StateStoreError as error:
                results[index] = error
        end = self._persistence.end_of_call()
        for portion in _portions(sizes):
            made = await self._make_together([batches[index] for index in portion], end)
            end = self._end_after(made, end)
            results.update(zip(portion, made, strict=True))
        return [results[index] for index in range(len(batches))]

    async def commit_locked(self, batches: Sequence[Batch], end: float) -> list[Result]:
        """Make batches one after the other, waiting for locks until ``end`` by the loop's clock."""
        results: list[Result] = []
        for batch in batches:
            try:
                async with self._room:
                    results += await self._make([batch], end, waits=True)
            except StateStoreError as error:
                results.append(error)
        return results

    async def _make_together(self, batches: Sequence[Batch], end: float) -> list[Result]:
        try:
            return await self._make(batches, end, waits=False)
        except Exception as error:
            if not isinstance(error, StateStoreError):
                raise
            if len(batches) == 1:
                return [Locked() if is_locked(error.__cause__) else error]
            if _is_of_no_server(error):
                return [error] * len(batches)  # none of them fares better alone, and they may be made
        results: list[Result] = []
        locked: set[tuple[str, str]] = set()
        for batch in batches:  # one of them cannot be made: which one, each finds out by itself
            places = places_of(batch)
            result = Locked() if locked & places else (await self._make_together([batch], end))[0]
            end = self._end_after([result], end)
            if isinstance(result, Locked):
                locked |= places  # and later batches stay behind it
            results.append(result)
        return results

    def _end_after(self, results: Sequence[Result], end: float) -> float:
        """Until when the next batches may take: each have the time of a call, as long as a server answers."""
        return end if all(map(_is_of_no_server, results)) else self._persistence.end_of_call()

    async def _make(self, batches: Sequence[Batch], end: float, *, waits: bool) -> list[Result]:
        """Make batches in one transaction, exactly once, however often the connection is lost on the way.

        Locks are waited for until ``end`` or only briefly; but not briefly any more once an attempt may have happened,
        since it is only under its token that it can be made again.
        """
        token = uuid4()
        changes = list(chain.from_iterable(batches))
        versions = [new_version() for _ in changes]
        is_plain = are_plain(batches)
        if is_plain:
            appends = cast("list[ChangeSession]", changes)
            statement, values = SQL["append_to_sessions"], plain_arguments(appends, versions)
        else:
            statement, values = SQL["make_batches"], arguments(batches, iter(versions))
        at_first = statement if waits else statement + BRIEFLY

        async def make(connection: Connection, attempt: Attempt) -> str:
            deadline = await self._clocks.at(connection, attempt.deadline)
            is_retry = attempt.number > 1
            try:
                return await connection.fetchval(
                    statement if is_retry else at_first, token, is_retry, deadline, *values
                )
            except Exception as error:
                if is_too_late(error):
                    self._clocks.forget(connection)
                raise

        may_pass = is_passing if waits else is_passing_but_for_locks
        told = _decode_told(await self._persistence.run(make, may_pass=may_pass, end=end))
        if is_plain:
            told = [[reason is None, reason, before, first, None, 0] for reason, before, first in told]
        return list(_results(batches, versions, told))


def _is_of_no_server(result: Result) -> bool:
    """Whether it was not a server that said so."""
    return isinstance(result, StoreUnavailable) and not is_about_one_batch(result.__cause__)


def _portions(sizes: Mapping[int, int]) -> Iterator[list[int]]:
    """Batches of these sizes in runs that do not carry too much at once."""
    portion: list[int] = []
    room = PORTION
    for index, size in sizes.items():
        if portion and size > room:
            yield portion
            portion, room = [], PORTION
        portion.append(index)
        room -= size
    if portion:
        yield portion


def _results(batches: Sequence[Batch], versions: Sequence[str], told: Sequence[list[Any]]) -> Iterator[Result]:
    """What the database told of each change, batch by batch."""
    at = 0
    for batch in batches:
        rows = told[at : at + len(batch)]
        if rows[0][0]:
            yield [
                _outcome(change, version, row)
                for change, version, row in zip(batch, versions[at : at + len(batch)], rows, strict=True)
            ]
        else:
            yield PreconditionFailed([Failure(index, row[1]) for index, row in enumerate(rows) if row[1] is not None])
        at += len(batch)


def _outcome(change: Change, version: str, row: list[Any]) -> Outcome:
    _, _, before, first, seqs, gone = row
    if isinstance(change, ChangeSession):
        return Outcome(before, version, tuple(seqs) if seqs is not None else _seqs(change, first))
    if isinstance(change, PutDocument):
        return Outcome(before, version)
    return Outcome(None if isinstance(change, DeleteCategory) else before, deleted=gone)


def _seqs(change: ChangeSession, first: int) -> tuple[int, ...]:
    if not change.append:
        return ()
    if numbering_of(change.append) == AS_GIVEN:
        return tuple(record.seq for record in change.append if record.seq is not None)
    return tuple(range(first, first + len(change.append)))
