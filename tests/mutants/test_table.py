"""The table of mutants keeps up with the package: each still has the text that it changes, and its test."""

from __future__ import annotations

import pytest

from mutants.mutant import PACKAGE, TESTS, Mutant
from mutants.table import MUTANTS

ALL = [mutant for kind in MUTANTS.values() for mutant in kind]


@pytest.mark.parametrize("mutant", ALL, ids=[mutant.breaks for mutant in ALL])
def test_a_mutant_is_possible_and_its_test_is_there(mutant: Mutant) -> None:
    assert mutant.is_possible(), f"{mutant.file} has not exactly one {mutant.old!r}"
    file, *names = mutant.noticed_by.split("::")
    sources = [TESTS / file, *(PACKAGE / "conformance").glob("*.py")]  # whose cases every engine's class inherits
    assert any(f"def {names[-1].partition('[')[0]}(" in source.read_text() for source in sources)
