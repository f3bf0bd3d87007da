"""Changes that cannot share a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from statestore.engine import Change, Engine, GroupCommits, PreconditionFailed, Result


async def commit_each(engine: Engine, changes: Sequence[Change]) -> list[Result]:
    """Make each change by itself, many in one call where the engine can; what became of each.

    They happen in any order. A change that may not be made keeps no other one from being made.
    """
    if hasattr(engine, "commit_group"):
        return await cast("GroupCommits", engine).commit_group([[change] for change in changes])
    return [await _result(engine, change) for change in changes]


async def _result(engine: Engine, change: Change) -> Result:
    try:
        return await engine.commit([change])
    except PreconditionFailed as failed:
        return failed
