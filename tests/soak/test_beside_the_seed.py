"""A few rounds of both programs on one directory."""

from __future__ import annotations

import pytest

from compat.renames import IS_POSSIBLE
from soak.beside_the_seed import PROOF
from soak.proof import shortly


@pytest.mark.skipif(not IS_POSSIBLE, reason="only Linux tells in which order files took their names")
def test_beside_a_program_without_locks_nothing_is_lost_outside_the_window() -> None:
    counts = shortly(PROOF, "files", rounds=2)
    assert counts["our writes"]
    assert counts["their writes"]
