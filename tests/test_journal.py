"""The journal holds all that a change says, so that a batch that is finished later is the same batch."""

from __future__ import annotations

from statestore.engine import ChangeSession
from statestore.engines.files.journal import SessionChange


def test_the_journal_keeps_every_part_of_a_change_but_its_preconditions() -> None:
    kept, said = set(SessionChange.__struct_fields__), set(ChangeSession.__struct_fields__)
    assert said - kept == {"requires"}
    assert kept <= said
