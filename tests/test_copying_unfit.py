"""`copy_store` into a store that cannot hold all of it: what does not fit is named, and keeps nothing else out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from copy_targets import OneByOne
from servers import postgres
from statestore import CopyIncomplete, InvalidName, InvalidValue, NotSupported, StateStore, copy_store
from statestore.conformance.changes import agent, appended, created, user
from statestore.copying import async_copy_store, telling, windows
from statestore.engine import Batch, Change, NewRecord, Outcome, PutDocument, SessionQuery
from statestore.engines.memory import MemoryEngine
from statestore.host import step

CHANGES: Sequence[Change] = (
    created("a", user("hello"), metadata={"a\0b": b"1"}),
    *(created(f"s{number:03}", user("hello"), agent("hi")) for number in range(120)),
    PutDocument("notes", "n", "md", b"one"),
    PutDocument("notes", "o", "md", b"two"),
)


def filled(changes: Iterable[Change]) -> MemoryEngine:
    engine = MemoryEngine()
    step(engine.open())
    for change in changes:
        step(engine.commit([change]))
    return engine


def has_nul(change: Any) -> bool:
    return any("\0" in key for key in getattr(change, "set_metadata", ()))


class Narrow(MemoryEngine):
    """Cannot hold some items, and says so with an error."""

    def __init__(self, error: Exception, is_unfit: Callable[[Any], bool] = has_nul) -> None:
        super().__init__()
        self._error = error
        self._is_unfit = is_unfit

    async def close(self) -> None:
        """It is looked at afterwards."""

    async def commit(self, batch: Batch) -> list[Outcome]:
        if any(map(self._is_unfit, batch)):
            raise self._error
        return await super().commit(batch)


class NarrowCluster(OneByOne, Narrow):
    """The same, of one item at a time."""


def sessions_in(engine: Any) -> list[str]:
    return [summary.id for summary in step(engine.list_sessions(SessionQuery(order="id")))]


@pytest.mark.parametrize("kind", [Narrow, NarrowCluster])
@pytest.mark.parametrize("error", [InvalidValue("no NUL"), NotSupported("no NUL"), InvalidName("no NUL")], ids=repr)
def test_what_the_target_cannot_hold_is_told_at_the_end_and_all_else_is_copied(
    kind: type[Narrow], error: Exception
) -> None:
    source, target = filled(CHANGES), kind(error)
    for _ in range(2):
        with pytest.raises(CopyIncomplete, match=r"cannot hold these, .*, or not wholly: session a: no NUL") as e:
            copy_store(source, target)
        assert [(each.where, each.what) for each in e.value.differences] == [("session a", "no NUL")]
        assert (e.value.report.sessions, e.value.report.documents) == (120, 2)
        assert "written to" not in str(e.value)
        assert "cannot be read" not in str(e.value)
    assert sessions_in(target) == [f"s{number:03}" for number in range(120)]


def test_a_document_that_the_target_cannot_hold_is_named_too() -> None:
    target = Narrow(InvalidValue("too large"), lambda change: getattr(change, "name", "") == "n")
    with pytest.raises(CopyIncomplete, match=r"document notes/n\.md: too large") as caught:
        copy_store(filled(CHANGES), target)
    assert (caught.value.report.sessions, caught.value.report.documents) == (121, 1)


@pytest.mark.parametrize("is_there", [False, True])
def test_a_long_session_that_the_target_cannot_hold_is_named(
    monkeypatch: pytest.MonkeyPatch, *, is_there: bool
) -> None:
    monkeypatch.setattr(windows, "WINDOW_RECORDS", 3)
    long = created("long", *(user(f"u{number}", number) for number in range(1, 12)))
    source = filled([*CHANGES[1:121], long])
    target = Narrow(NotSupported("too late"), lambda change: any(b"unfit" in new.body for new in change.append))
    if is_there:
        copy_store(source, target)
    step(source.commit([appended("long", *(agent(f"unfit {number}", 30) for number in range(5)), at=60)]))
    step(source.commit([created("z", user("hello"))]))
    with pytest.raises(CopyIncomplete, match="session long: too late") as caught:
        copy_store(source, target)
    assert [each.where for each in caught.value.differences] == ["session long"]
    assert caught.value.report.sessions == 121
    assert "z" in sessions_in(target)


def test_what_cannot_be_read_and_what_cannot_be_held_are_told_apart() -> None:
    source = filled([*CHANGES[:3], created("b", NewRecord("user", b'{"content":1}', 0))])
    with pytest.raises(CopyIncomplete) as caught:
        copy_store(source, Narrow(InvalidValue("no NUL")))
    read, held = str(caught.value).split("; ")
    assert "cannot be read from" in read
    assert "session b" in read
    assert "session a: no NUL" in held
    assert [each.where for each in caught.value.differences] == ["session b", "session a"]


def test_many_that_the_target_cannot_hold_are_counted_and_the_first_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "KEPT", 20)
    source = filled(created(f"s{number:02}", metadata={"a\0b": b"1"}) for number in range(30))
    with pytest.raises(CopyIncomplete, match=f"and {30 - telling.SHOWN} more") as caught:
        copy_store(source, Narrow(InvalidValue("no NUL")))
    assert "written to" not in str(caught.value)
    assert len(caught.value.differences) == 20


@pytest.mark.parametrize("is_async", [False, True])
def test_postgresql_takes_all_but_a_session_with_a_nul_in_a_metadata_key(*, is_async: bool) -> None:
    source = filled([CHANGES[0], *(created(f"z{number}", user("hello")) for number in range(3))])
    url = f"{postgres.shared_url()}?schema=unfit_{time.time_ns()}"
    with pytest.raises(CopyIncomplete, match=r"cannot hold these, .*, or not wholly: session a: ") as caught:
        asyncio.run(async_copy_store(source, url)) if is_async else copy_store(source, url)
    assert caught.value.report.sessions == 3
    with StateStore.open(url) as target:
        assert target.count_sessions() == 3
