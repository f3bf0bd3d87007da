"""All proofs, in the order in which a soak tries them."""

from __future__ import annotations

from soak.beside_the_seed import PROOF as BESIDE_THE_SEED
from soak.faults import PROOF as CANCELLED
from soak.hostile.proofs import HOSTILE
from soak.kills.lives import PROOF as KILLS
from soak.load.shift import PROOF as LOAD
from soak.power.database import POWER_SQLITE
from soak.power.files import POWER_FILES
from soak.proof import Proof
from soak.races.racing import PROOF as RACES

PROOFS: tuple[Proof, ...] = (KILLS, RACES, LOAD, BESIDE_THE_SEED, POWER_FILES, POWER_SQLITE, CANCELLED, *HOSTILE)
