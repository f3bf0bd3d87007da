"""Making batches on a cluster: each changes one item, and listings are told right after."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import chain, compress, islice

from statestore.engine import Batch, Change, PutDocument, Result
from statestore.engines.judging import check_batch
from statestore.engines.valkey.calling import Caller
from statestore.engines.valkey.keys import Keys
from statestore.engines.valkey.mending import look_for, put_right, seen_in
from statestore.engines.valkey.planning import (
    Listed,
    Plan,
    Planner,
    entries_to_add,
    entries_to_remove,
    listed_in,
    outcomes_of,
)
from statestore.engines.valkey.pool import Command
from statestore.engines.valkey.settling import Settlement
from statestore.errors import NotSupported, StateStoreError

log = logging.getLogger("statestore")


class ClusterWriter:
    """Plans batches of one item, has them made, and lists what they changed."""

    def __init__(self, caller: Caller, keys: Keys, planner: Planner) -> None:
        self._caller = caller
        self._keys = keys
        self._planner = planner
        self._settlement = Settlement(caller)

    async def make_all(self, batches: Sequence[Batch]) -> list[Result]:
        """Make each of some batches, or say why it was not made."""
        results: dict[int, Result] = {}
        plans: dict[int, Plan] = {}
        for index, batch in enumerate(batches):
            try:
                self.check(batch)
                if batch:
                    plans[index] = self._planner.plan(batch)
                else:
                    results[index] = []
            except Exception as error:  # noqa: BLE001 - told to the one caller, whatever it is
                results[index] = error
        made: list[tuple[Change, list[Listed]]] = []
        if plans:
            replies = await self._settlement.run_each(list(plans.values()))
            for index, reply in zip(plans, replies, strict=True):
                try:
                    results[index] = outcomes_of(batches[index], self._caller.granted(reply))
                    made.append((batches[index][0], listed_in(reply)))
                except Exception as error:  # noqa: BLE001
                    results[index] = error
        await self._list(made)
        return [results[index] for index in range(len(batches))]

    def check(self, batch: Batch) -> None:
        """Raise if a batch names more than one item: what lies on several nodes cannot change together."""
        check_batch(batch)
        if len(batch) > 1:
            raise NotSupported(
                f"{self._caller.address.url}: on a cluster a batch is one session or one document, and this one has "
                f"{len(batch)}: commit them one by one, or use a single server"
            )

    async def _list(self, made: Sequence[tuple[Change, Sequence[Listed]]]) -> None:
        """List what was changed. What cannot be listed is stored nevertheless, and check() will tell.

        Sessions are listed where they are, and then no longer where they were, so that they are never nowhere. Others
        may have moved a session on before we list it; so we look, when we are done, whether it still is there.
        """
        keys = self._keys
        categories = {change.category for change, _ in made if isinstance(change, PutDocument)}
        moves = [listed for _, moved in made for listed in moved]
        parts = [entries_to_add(keys, listed) for listed in moves]
        parts += [[("ZADD", keys.categories, 0, category)] for category in categories]
        are_listed = await self._carry_out(parts)
        moves = list(compress(moves, are_listed))
        await self._carry_out([entries_to_remove(keys, listed) for listed in moves])
        looks = await self._caller.call_each([look_for(keys, listed.id) for listed in moves])
        for listed, reply in zip(moves, looks, strict=True):
            try:
                place, _ = seen_in(self._caller.granted(reply))
                await put_right(self._caller, keys, listed, place)
            except StateStoreError as error:
                self._warn(error)

    async def _carry_out(self, parts: Sequence[Sequence[Command]]) -> list[bool]:
        """Send some lists of commands; whether each of them was carried out wholly."""
        replies = iter(await self._caller.call_each([command for part in parts for command in part]))
        errors = [list(filter(None, map(self._caller.explained, islice(replies, len(part))))) for part in parts]
        for error in islice(chain.from_iterable(errors), 1):
            self._warn(error)
        return [not found for found in errors]

    def _warn(self, error: Exception) -> None:
        url = self._caller.address.url
        log.warning("%s: listings may lack what was just stored: check(repair=True) lists it (%s)", url, error)
