"""An engine that stops in the middle of a commit until it is let go."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from hooked import HookedEngine
from statestore import Engine
from statestore.engine import Change, Outcome, RunsIn


class HeldUp(HookedEngine):
    """Blocks the thread that commits, once `is_held_up`."""

    runs_in: RunsIn = "worker"

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.is_held_up = False
        self.is_there, self.may_go = threading.Event(), threading.Event()

    async def commit(self, batch: Sequence[Change]) -> list[Outcome]:
        if self.is_held_up:
            self.is_there.set()
            self.may_go.wait()
        return await super().commit(batch)
