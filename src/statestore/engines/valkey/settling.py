"""Making plans, and forgetting their outcomes once we have them.

A server keeps the outcome of a batch for an hour, in case that its answer does not get through. If it did, and nothing
was sent twice, nobody will ever ask again: so the next batches take the word along that it can go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from statestore.engines.valkey.calling import Caller
from statestore.engines.valkey.planning import Plan
from statestore.engines.valkey.pool import Command
from statestore.engines.valkey.scripts import COMMIT


class Settlement:
    """Knows which outcomes need not be kept any longer."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._waiting: list[Command] = []
        """The commands that remove them, until they can go along."""

    async def run_each(self, plans: Sequence[Plan]) -> list[Any]:
        """What the server says to each plan, an error where it did not get through."""
        repeated = self._caller.repeated
        calls = [(plan.keys, plan.arguments) for plan in plans]
        replies = await self._caller.run_each(COMMIT, calls, besides=self._waiting)
        if self._caller.repeated == repeated:  # else an attempt may still be under way, and must find the outcome
            tokens = [plan.token for plan, reply in zip(plans, replies, strict=True) if isinstance(reply, bytes)]
            self._waiting += self._forgetting(tokens)
        return replies

    def _forgetting(self, tokens: list[str]) -> list[Command]:
        """The commands that remove some outcomes; on a cluster each is on a node of its own."""
        if self._caller.address.is_cluster:
            return [("UNLINK", token) for token in tokens]
        return [("UNLINK", *tokens)] if tokens else []
