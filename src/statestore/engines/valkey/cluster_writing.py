"""Making batches on a cluster: each changes one item, and listings are told right after."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from statestore.engine import Change, Outcome, PutDocument
from statestore.engines.grouping import Results
from statestore.engines.valkey.calling import Caller
from statestore.engines.valkey.cluster_listing import entries_to_add, entries_to_remove
from statestore.engines.valkey.keys import Keys
from statestore.engines.valkey.planning import Listed, Plan, Planner, listed_in, outcomes_of
from statestore.engines.valkey.pool import Command
from statestore.engines.valkey.settling import Settlement
from statestore.errors import StateStoreError

log = logging.getLogger("statestore")


class ClusterWriter:
    """Plans batches of one item, has them made, and lists what they changed."""

    def __init__(self, caller: Caller, keys: Keys, planner: Planner) -> None:
        self._caller = caller
        self._keys = keys
        self._planner = planner
        self._settlement = Settlement()

    async def make_all(self, batches: Sequence[Sequence[Change]]) -> Results:
        """Make each of some batches, or say why it was not made."""
        results: dict[int, list[Outcome] | Exception] = {}
        plans: dict[int, Plan] = {}
        for index, batch in enumerate(batches):
            try:
                plans[index] = self._planner.plan(batch)
            except StateStoreError as error:
                results[index] = error
        made: list[tuple[Change, bytes]] = []
        if plans:
            replies = await self._settlement.run_all(self._caller, list(plans.values()))
            for index, reply in zip(plans, replies, strict=True):
                try:
                    results[index] = self._outcomes(batches[index], reply)
                    made.append((batches[index][0], reply))
                except StateStoreError as error:
                    results[index] = error
        await self._list(made)
        return [results[index] for index in range(len(batches))]

    def _outcomes(self, batch: Sequence[Change], reply: bytes | Exception) -> list[Outcome]:
        error = self._caller.explained(reply)
        if error is not None:
            raise error
        assert isinstance(reply, bytes)
        return outcomes_of(batch, reply)

    async def _list(self, made: Sequence[tuple[Change, bytes]]) -> None:
        """List what was changed. If that cannot be done, it is stored nevertheless, and check() will tell."""
        categories = {change.category for change, _ in made if isinstance(change, PutDocument)}
        moves = [listed for _, reply in made for listed in listed_in(reply)]
        try:
            await self._call_all([("ZADD", self._keys.categories, 0, category) for category in categories])
            await self._move(moves)
        except StateStoreError as error:
            url = self._caller.address.url
            log.warning("%s: listings may lack what was just stored: repair() lists it (%s)", url, error)

    async def _move(self, moves: Sequence[Listed]) -> None:
        """List sessions where they are, and then no longer where they were, so that they are never nowhere.

        Others may have moved a session on before we list it; so we look, when we are done, whether it still is there.
        """
        keys = self._keys
        await self._call_all([command for listed in moves for command in entries_to_add(keys, listed)])
        await self._call_all([command for listed in moves for command in entries_to_remove(keys, listed)])
        for listed, (place, _) in zip(moves, await self._places(moves), strict=True):
            if place != listed.now:
                await self._put_right(listed, place)

    async def _put_right(self, listed: Listed, place: str | None) -> None:
        """Take back what we listed of a session that is elsewhere by now, or gone, or there again."""
        while place != listed.now:
            await self._call_all(entries_to_remove(self._keys, listed._replace(before=listed.now, now=place)))
            if listed.now is not None and place is not None:
                return  # whoever moved it on lists it
            ((place, user_id),) = await self._places([listed])
            if place is None or user_id is None:
                return
            listed = Listed(listed.id, user_id, None, place)
            await self._call_all(entries_to_add(self._keys, listed))
            ((place, _),) = await self._places([listed])

    async def _places(self, moves: Sequence[Listed]) -> list[tuple[str | None, str | None]]:
        """Where some sessions are to be listed by now, and for whom."""
        replies = await self._call_all([("HMGET", f"{self._keys.session(it.id)}:h", "place", "user") for it in moves])
        return [(place and place.decode(), user and user.decode()) for place, user in replies]

    async def _call_all(self, commands: Sequence[Command]) -> list[Any]:
        replies = await self._caller.call_all(commands) if commands else []
        for reply in replies:
            error = self._caller.explained(reply)
            if error is not None:
                raise error
        return replies
