"""Making groups of batches: one statement each, under a token that lets it be repeated until its outcome is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final, cast
from uuid import uuid4

import msgspec

from statestore.engine import Change, ChangeSession, DeleteCategory, Failure, Outcome, PreconditionFailed, PutDocument
from statestore.engines.judging import check_batch
from statestore.engines.postgres.batches import (
    AS_GIVEN,
    Batch,
    are_plain,
    arguments,
    check_numbers,
    new_version,
    numbering_of,
    plain_arguments,
    size_of,
)
from statestore.engines.postgres.clocks import ServerClocks
from statestore.engines.postgres.driver import Connection
from statestore.engines.postgres.failures import is_too_late
from statestore.engines.postgres.persisting import Attempt, Persistence
from statestore.engines.postgres.statements import SQL
from statestore.errors import StateStoreError, StoreUnavailable

Result = list[Outcome] | Exception

PORTION: Final = 16_000_000
"""How many bytes go into one statement, about; a batch that is larger goes alone."""

_decode_told = msgspec.json.Decoder(list[list[Any]]).decode


class Writer:
    """Makes batches."""

    def __init__(self, persistence: Persistence) -> None:
        self._persistence = persistence
        self._clocks = ServerClocks()

    async def commit_group(self, batches: Sequence[Batch]) -> list[Result]:
        """Make each batch wholly or not at all, as if in this order; its outcomes, or why it was not made."""
        results: dict[int, Result] = {}
        sound: list[int] = []
        for index, batch in enumerate(batches):
            try:
                check_batch(batch)
                check_numbers(batch)
            except StateStoreError as error:
                results[index] = error
            else:
                if batch:
                    sound.append(index)
                else:
                    results[index] = []
        for portion in _portions(sound, batches):
            made = await self._make_together([batches[index] for index in portion])
            results.update(zip(portion, made, strict=True))
        return [results[index] for index in range(len(batches))]

    async def _make_together(self, batches: Sequence[Batch]) -> list[Result]:
        try:
            return await self._make(batches)
        except Exception as error:
            if not isinstance(error, StateStoreError):
                raise
            if len(batches) == 1:
                return [error]
            if isinstance(error, StoreUnavailable) and _is_out_of_reach(error):
                return [error] * len(batches)  # no server: none of them fares better alone
        results: list[Result] = []
        for batch in batches:  # one of them cannot be stored: which one, each finds out by itself
            results += await self._make_together([batch])
        return results

    async def _make(self, batches: Sequence[Batch]) -> list[Result]:
        """Make batches in one transaction, exactly once, however often the connection is lost on the way."""
        token = uuid4()
        changes = list(chain.from_iterable(batches))
        versions = [new_version() for _ in changes]
        if are_plain(batches):
            appends = cast("list[ChangeSession]", changes)
            statement, values = SQL["append_to_sessions"], plain_arguments(appends, versions)
        else:
            statement, values = SQL["make_batches"], arguments(batches, iter(versions))

        async def make(connection: Connection, attempt: Attempt) -> str:
            deadline = await self._clocks.at(connection, attempt.deadline)
            try:
                return await connection.fetchval(statement, token, attempt.number > 1, deadline, *values)
            except Exception as error:
                if is_too_late(error):
                    self._clocks.forget(connection)
                raise

        told = _decode_told(await self._persistence.run(make))
        if statement is SQL["append_to_sessions"]:
            told = [[reason is None, reason, before, first, None, 0] for reason, before, first in told]
        return list(_results(batches, versions, told))


def _portions(indexes: Sequence[int], batches: Sequence[Batch]) -> Iterator[list[int]]:
    """The same in runs that do not carry too much at once."""
    portion: list[int] = []
    room = PORTION
    for index in indexes:
        size = size_of(batches[index])
        if portion and size > room:
            yield portion
            portion, room = [], PORTION
        portion.append(index)
        room -= size
    if portion:
        yield portion


def _is_out_of_reach(error: StoreUnavailable) -> bool:
    """Whether the server did not answer at all."""
    return not (getattr(error.__cause__, "sqlstate", None) or "").startswith(("22", "23", "42", "53", "54"))


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
