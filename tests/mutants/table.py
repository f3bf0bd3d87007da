"""All mutants, by what they break."""

from __future__ import annotations

from mutants.mutant import Mutant

MUTANTS: dict[str, tuple[Mutant, ...]] = {}
