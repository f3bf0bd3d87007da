"""All proofs, in the order in which a soak tries them."""

from __future__ import annotations

from soak.proof import Proof

PROOFS: tuple[Proof, ...] = ()
