"""All mutants, by what they break."""

from __future__ import annotations

from mutants import compat, faults, hostile, kills, power, races, security
from mutants.mutant import Mutant

MUTANTS: dict[str, tuple[Mutant, ...]] = {
    "compat": compat.MUTANTS,
    "faults": faults.MUTANTS,
    "hostile": hostile.MUTANTS,
    "kills": kills.MUTANTS,
    "power": power.MUTANTS,
    "races": races.MUTANTS,
    "security": security.MUTANTS,
}
