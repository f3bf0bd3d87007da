"""`copy_store` and `async_copy_store`: the two faces of one copy."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack, ExitStack
from typing import TypedDict

from statestore.copying.elsewhere import check_is_elsewhere
from statestore.copying.telling import CopyReport, Misfits, ReportProgress, Teller
from statestore.engine import Engine
from statestore.errors import InvalidValue, StoreNotFound
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
    mirror: bool = False,
) -> CopyReport:
    """Copy everything from one store into another, whatever engines they are, and verify it.

    ``source`` and ``target`` are URLs, paths, or open stores, which stay open. Sessions keep their records byte for
    byte, with numbers, keys, layout and metadata; documents keep their bytes. A copy that was interrupted is simply run
    again: what the target has already is compared and skipped, a session that is an earlier state of the source's is
    brought up to date, and the rest is copied. `CopyRefused` if the target holds anything else, before anything is
    written; ``into_existing=True`` tolerates what only the target has. At the end everything is read from both stores:
    `CopyIncomplete` names what is not the same, because somebody wrote to it meanwhile, what the source could not give,
    what is damaged in the target, and what the target cannot hold. ``progress`` is called with a `CopyProgress` now and
    then. `InvalidValue` if the target is the source, or would lie among its files.

    ``mirror=True`` makes the target the same as the source, whatever it holds: what only the target has is removed, and
    what it has otherwise is replaced, for good. What the source has but cannot give stays in the target as it is, and
    so does what both have and is damaged there. `CopyRefused` if the source has nothing of what the target holds, since
    one of them may not be what was meant, if the target holds files that no store has made, and if somebody writes to
    what is removed or replaced.
    """
    _check_makes_sense(into_existing=into_existing, mirror=mirror)
    for store in (source, target):
        if isinstance(store, AsyncStateStore):
            raise InvalidValue(f"{store!r} is for event loops: use await async_copy_store(…), or give its URL")
    with ExitStack() as opened:
        if not isinstance(source, StateStore):
            source = opened.enter_context(StateStore.open(source, **_as_source(source)))
        _check_is_apart(source.url, target, mirror=mirror)
        if not isinstance(target, StateStore):
            target = opened.enter_context(StateStore.open(target))
        copied = _copied(
            engine_of(source), engine_of(target), progress=progress, into_existing=into_existing, mirror=mirror
        )
        return step(copied)


async def async_copy_store(
    source: str | os.PathLike[str] | Engine | AsyncStateStore,
    target: str | os.PathLike[str] | Engine | AsyncStateStore,
    *,
    progress: ReportProgress | None = None,
    into_existing: bool = False,
    mirror: bool = False,
) -> CopyReport:
    """The same as `copy_store`, for event loops; cancelling it interrupts the copy, which can be run again."""
    _check_makes_sense(into_existing=into_existing, mirror=mirror)
    for store in (source, target):
        if isinstance(store, StateStore):
            raise InvalidValue(f"{store!r} is for plain code: use copy_store(…), or give its URL")
    async with AsyncExitStack() as opened:
        if not isinstance(source, AsyncStateStore):
            source = await opened.enter_async_context(AsyncStateStore.open(source, **_as_source(source)))
        _check_is_apart(source.url, target, mirror=mirror)
        if not isinstance(target, AsyncStateStore):
            target = await opened.enter_async_context(AsyncStateStore.open(target))
        return await _copied(
            engine_of(source), engine_of(target), progress=progress, into_existing=into_existing, mirror=mirror
        )


def compare_stores(
    source: str | os.PathLike[str], target: str | os.PathLike[str], *, progress: ReportProgress | None = None
) -> Misfits:
    """What a mirror would replace and remove as things are; neither store is written to, or made."""
    with ExitStack() as opened:
        ours = opened.enter_context(StateStore.open(source, **_as_source(source)))
        _check_is_apart(ours.url, target, mirror=True)
        try:
            theirs = opened.enter_context(StateStore.open(target, **_as_source(target)))
        except StoreNotFound:
            return Misfits(engine_for(target).url, 0, 0, ())
        return step(_compared(engine_of(ours), engine_of(theirs), Teller(progress)))


def _check_makes_sense(*, into_existing: bool, mirror: bool) -> None:
    if into_existing and mirror:
        raise InvalidValue(
            "into_existing=True leaves alone what only the target has, and mirror=True removes it: choose one of them"
        )


def _as_source(source: str | os.PathLike[str] | Engine) -> _Options:
    """How a source is opened: for reading alone. An engine is opened as it was made."""
    return {"create": False, "read_only": True} if isinstance(source, (str, os.PathLike)) else {}


def _check_is_apart(
    source_url: str, target: str | os.PathLike[str] | Engine | StateStore | AsyncStateStore, *, mirror: bool
) -> None:
    """Raise `InvalidValue`, before the target is made, if it would lie among the source's files, as a part of them.

    Nor may the source lie among those of a target that is to be a mirror: it would be removed like any other file.
    """
    url = target.url if isinstance(target, (StateStore, AsyncStateStore)) else engine_for(target).url
    if url == source_url:
        return  # which is told later on
    for inner, outer in ((url, source_url), (source_url, url)) if mirror else ((url, source_url),):
        scheme, _, place = inner.partition(":")
        if scheme in ("file", "sqlite"):
            check_is_elsewhere(place, outer)


def _check_is_another(source: Engine, target: Engine) -> None:
    if source.url == target.url:
        raise InvalidValue(f"{source.url} cannot be copied into itself")


async def _copied(
    source: Engine, target: Engine, *, progress: ReportProgress | None, into_existing: bool, mirror: bool
) -> CopyReport:
    _check_is_another(source, target)
    # Loaded when somebody copies: few who import the package do.
    from statestore.copying.ahead import ReadAhead  # noqa: PLC0415
    from statestore.copying.damage import Damage  # noqa: PLC0415
    from statestore.copying.packing import Packer  # noqa: PLC0415
    from statestore.copying.surveying import Survey, check_may_be_mirrored  # noqa: PLC0415
    from statestore.copying.transferring import Transfer  # noqa: PLC0415
    from statestore.copying.verifying import Verification  # noqa: PLC0415

    teller = Teller(progress)
    ours, theirs = ReadAhead(source), ReadAhead(target)
    damage = Damage(source, target)
    packer = Packer(target, teller.tell, damage.in_target)
    if mirror:
        await check_may_be_mirrored(source, target)
    survey = Survey(ours, theirs, teller, damage, remover=packer if mirror else None)
    await survey.run()
    if not mirror:
        survey.check_fits(into_existing=into_existing)
    transfer = Transfer(ours, theirs, teller, survey, packer, damage, mirror=mirror)
    await transfer.run()
    verification = Verification(ours, theirs, teller, damage=damage, unfit=packer.unfit, into_existing=into_existing)
    return await verification.run(skipped=transfer.skipped, replaced=transfer.replaced, removed=survey.removed)


async def _compared(source: Engine, target: Engine, teller: Teller) -> Misfits:
    _check_is_another(source, target)
    from statestore.copying.ahead import ReadAhead  # noqa: PLC0415
    from statestore.copying.damage import Damage  # noqa: PLC0415
    from statestore.copying.surveying import Survey, check_may_be_mirrored  # noqa: PLC0415

    await check_may_be_mirrored(source, target)
    survey = Survey(ReadAhead(source), ReadAhead(target), teller, Damage(source, target))
    await survey.run()
    replaced, removed = survey.differing, survey.surplus
    return Misfits(target.url, len(replaced), len(removed), (*replaced.found, *removed.found))
