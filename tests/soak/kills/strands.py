"""A strand: deeds that chance draws one after the other, the same for everybody who knows its name and seed."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from soak.kills import deeds
from soak.kills.deeds import LONG, Deed, Situation
from soak.kills.pictures import Picture

_Drawn = Callable[[Situation], Deed | None]

_IN_BOTH_FACES: tuple[tuple[_Drawn, int], ...] = (
    *((deeds.append, 4), (deeds.append_with_keys, 4), (deeds.update, 3), (deeds.rewrite, 2), (deeds.rewind, 1)),
    *((deeds.fork, 2), (deeds.delete, 1), (deeds.throw_away, 2), (deeds.restore, 3), (deeds.prune, 3)),
    *((deeds.put_document, 3), (deeds.delete_document, 1), (deeds.delete_category, 1), (deeds.create, 2)),
    (deeds.share, 3),
)
_SEVERAL_CALLS: tuple[tuple[_Drawn, int], ...] = ((deeds.save, 3),)
_SEVERAL_ITEMS: tuple[tuple[_Drawn, int], ...] = ((deeds.batch_own, 5), (deeds.spread, 3))
_WITH_SEARCH: tuple[tuple[_Drawn, int], ...] = ((deeds.search, 2),)


class Strand:
    """One after the other, by one process, thread or task; after its death, by another."""

    def __init__(self, name: str, seed: int, *, engine: str, is_plain: bool) -> None:
        self.name = name
        self.position = 0
        """How many of its deeds are done."""
        self.picture = Picture()
        self.is_atomic = engine != "valkey-cluster"
        self._seed = seed
        drawn = _IN_BOTH_FACES
        if is_plain:
            drawn += _SEVERAL_CALLS
            if self.is_atomic:
                drawn += _SEVERAL_ITEMS
        if not engine.startswith("valkey"):
            drawn += _WITH_SEARCH
        self._kinds, self._weights = zip(*drawn, strict=True)

    def deed(self) -> Deed:
        """What comes next."""
        chance = Random(f"{self._seed} {self.name} {self.position}")
        now = Situation(self.name, self.position, self.picture, chance, self.is_atomic)
        if not self.picture.sessions:
            kinds: list[_Drawn] = [deeds.create, deeds.restore]
        elif any(len(kept.records) > LONG for kept in self.picture.sessions.values()):
            kinds = [deeds.rewind, deeds.delete]
        else:
            kinds = chance.choices(self._kinds, self._weights, k=20)
        return next(filter(None, (kind(now) for kind in kinds)), None) or deeds.put_document(now)

    def done(self, deed: Deed) -> None:
        """Go on behind a deed."""
        self.picture = deed.makes
        self.position += 1
