"""`copy_store` and `async_copy_store`: the two faces of one copy."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack, ExitStack
from typing import TypedDict

from statestore.copying.elsewhere import check_is_elsewhere
from statestore.copying.telling import CopyReport, ReportProgress, Teller
from statestore.engine import Engine
from statestore.errors import InvalidValue
from statestore.host import step
from statestore.opening import engine_for
from statestore.store.async_store import AsyncStateStore
from statestore.store.beneath import engine_of
from statestore.store.plain import StateStore


class _Options(TypedDict, total=False):
    create: bool
    read_only: bool


def copy_store(
    source: str | os.PathLike[str] | Engine | StateStore,
    target: str | os.PathLike[str] | Engine | StateStore,
    *,
    progress: ReportProgress | None = None,
    into_existing: bool = False,
) -> CopyReport:
    """Copy everything from one store into another, whatever engines they are, and verify it.

    ``source`` and ``target`` are URLs, paths, or open stores, which stay open. Sessions keep their records byte for
    byte, with numbers, keys, layout and metadata; documents keep their bytes. A copy that was interrupted is simply run
    again: what the target has already is compared and skipped, a session that is an earlier state of the source's is
    brought up to date, and the rest is copied. `CopyRefused` if the target holds anything else, before anything is
    written; ``into_existing=True`` tolerates what only the target has. At the end everything is read from both stores:
    `CopyIncomplete` names what is not the same, because somebody wrote to it meanwhile, what the source could not give,
    and what the target cannot hold. ``progress`` is called with a `CopyProgress` now and then. `InvalidValue` if the
    target is the source, or would lie among its files.
    """
    for store in (source, target):
        if isinstance(store, AsyncStateStore):
            raise InvalidValue(f"{store!r} is for event loops: use await async_copy_store(…), or give its URL")
    with ExitStack() as opened:
        if not isinstance(source, StateStore):
            source = opened.enter_context(StateStore.open(source, **_as_source(source)))
        _check_is_apart(source.url, target)
        if not isinstance(target, StateStore):
            target = opened.enter_context(StateStore.open(target))
        return step(_copied(engine_of(source), engine_of(target), progress=progress, into_existing=into_existing))


async def async_copy_store(
    source: str | os.PathLike[str] | Engine | AsyncStateStore,
    target: str | os.PathLike[str] | Engine | AsyncStateStore,
    *,
    progress: ReportProgress | None = None,
    into_existing: bool = False,
) -> CopyReport:
    """The same as `copy_store`, for event loops; cancelling it interrupts the copy, which can be run again."""
    for store in (source, target):
        if isinstance(store, StateStore):
            raise InvalidValue(f"{store!r} is for plain code: use copy_store(…), or give its URL")
    async with AsyncExitStack() as opened:
        if not isinstance(source, AsyncStateStore):
            source = await opened.enter_async_context(AsyncStateStore.open(source, **_as_source(source)))
        _check_is_apart(source.url, target)
        if not isinstance(target, AsyncStateStore):
            target = await opened.enter_async_context(AsyncStateStore.open(target))
        return await _copied(engine_of(source), engine_of(target), progress=progress, into_existing=into_existing)


def _as_source(source: str | os.PathLike[str] | Engine) -> _Options:
    """How a source is opened: for reading alone. An engine is opened as it was made."""
    return {"create": False, "read_only": True} if isinstance(source, (str, os.PathLike)) else {}


def _check_is_apart(source_url: str, target: str | os.PathLike[str] | Engine | StateStore | AsyncStateStore) -> None:
    """Raise `InvalidValue`, before the target is made, if it would lie among the source's files, as a part of them."""
    url = target.url if isinstance(target, (StateStore, AsyncStateStore)) else engine_for(target).url
    scheme, _, place = url.partition(":")
    if scheme in ("file", "sqlite") and url != source_url:
        check_is_elsewhere(place, source_url)


async def _copied(
    source: Engine, target: Engine, *, progress: ReportProgress | None, into_existing: bool
) -> CopyReport:
    if source.url == target.url:
        raise InvalidValue(f"{source.url} cannot be copied into itself")
    # Loaded when somebody copies: few who import the package do.
    from statestore.copying.ahead import ReadAhead  # noqa: PLC0415
    from statestore.copying.surveying import Survey  # noqa: PLC0415
    from statestore.copying.transferring import Transfer  # noqa: PLC0415
    from statestore.copying.verifying import Verification  # noqa: PLC0415

    teller = Teller(progress)
    ours, theirs = ReadAhead(source), ReadAhead(target)
    survey = Survey(ours, theirs, teller, into_existing=into_existing)
    await survey.run()
    transfer = Transfer(ours, theirs, teller, survey)
    await transfer.run()
    verification = Verification(
        ours, theirs, teller, unreadable=transfer.unreadable, unfit=transfer.unfit, into_existing=into_existing
    )
    return await verification.run(skipped=transfer.skipped)
