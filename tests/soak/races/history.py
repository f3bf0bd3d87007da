"""What was done, when, and what came of it: as workers note it, and as the checker gets it."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from statestore import DocumentConflict, SessionConflict, SessionNotFound, WrongUser

REFUSALS: dict[type[Exception], str] = {
    SessionNotFound: "missing",
    SessionConflict: "conflict",
    WrongUser: "wrong user",
    DocumentConflict: "document conflict",
}


class Answer(NamedTuple):
    """What came of an operation: a value, or the reason why it was refused."""

    value: Any = None
    refused: str | None = None


UNKNOWN = Answer(refused="unknown")
"""What a worker goes on with that did not wait for the answer; it notes none."""


class Seen(NamedTuple):
    """A session as an answer shows it."""

    id: str
    user: str
    created: str
    version: str | None
    records: tuple[tuple[int, str], ...]
    metadata: tuple[tuple[str, int], ...]
    parent: str | None


class Listed(NamedTuple):
    """A session as a listing shows it."""

    id: str
    user: str
    created: str
    version: str
    messages: int
    title: str | None
    parent: str | None


class Operation(NamedTuple):
    """Something that a worker did to a store."""

    number: int
    history: int
    lane: str
    name: str
    about: dict[str, Any]
    start: int
    end: int | None = None
    answer: Answer | None = None
    """``None``: nobody knows. The worker was killed, or did not wait."""

    def __str__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in self.about.items())
        told = "?" if self.answer is None else self.answer.refused or repr(self.answer.value)
        times = f"{self.start}-{self.end or '?'}"
        return f"[{self.lane} {times}] #{self.number} {self.name}({said}) -> {told}"


class Notes:
    """A worker's notes, in a file, so that they outlive it: what it is about to do, then what came of it."""

    def __init__(self, path: Path, lane: str, lane_number: int) -> None:
        self._lane = lane
        self._number = lane_number * 1_000_000
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    async def take(self, history: int, name: str, about: dict[str, Any], do: Callable[[], Awaitable[Any]]) -> Answer:
        """Do something and note it."""
        self._number += 1
        operation = Operation(self._number, history, self._lane, name, about, time.monotonic_ns())
        self._write(operation)
        try:
            answer = Answer(await do())
        except tuple(REFUSALS) as error:
            answer = Answer(refused=reason_of(error))
        except TimeoutError:
            return UNKNOWN
        end = time.monotonic_ns()
        self._write(operation._replace(end=end, answer=answer))
        return answer

    def _write(self, operation: Operation) -> None:
        os.write(self._file, pickle.dumps(operation))

    def close(self) -> None:
        """Nothing more is noted."""
        os.close(self._file)


def reason_of(error: Exception) -> str:
    """Why an operation was refused."""
    if "restored, and deleted again" in str(error):
        return "restored"
    return next(reason for kind, reason in REFUSALS.items() if isinstance(error, kind))


def noted_in(paths: Iterable[Path]) -> dict[int, list[Operation]]:
    """All operations of all workers, by history."""
    last: dict[int, Operation] = {}
    for path in paths:
        for operation in _read(path):
            last[operation.number] = operation
    histories: dict[int, list[Operation]] = {}
    for operation in last.values():
        histories.setdefault(operation.history, []).append(operation)
    return histories


def _read(path: Path) -> Iterable[Operation]:
    with path.open("rb") as file:
        while True:
            try:
                yield pickle.load(file)
            except (EOFError, pickle.UnpicklingError):
                return  # the last note of a worker that was killed may be cut off


def apart(operations: Sequence[Operation], items_of: Callable[[Operation], Iterable[str]]) -> list[list[Operation]]:
    """A history in parts that have no item in common: each can be explained by itself."""
    parts: list[tuple[set[str], list[Operation]]] = []
    for operation in operations:
        items, together = set(items_of(operation)), [operation]
        others: list[tuple[set[str], list[Operation]]] = []
        for part in parts:
            if part[0] & items:
                items, together = items | part[0], part[1] + together
            else:
                others.append(part)
        parts = [*others, (items, together)]
    return [part for _, part in parts]
