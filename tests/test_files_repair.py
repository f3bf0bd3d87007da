"""Repairs of a directory: what is moved aside is damaged, and not only named in a way that we do not take."""

from __future__ import annotations

from pathlib import Path

import pytest

from statestore import StateStore


@pytest.mark.parametrize("place", ["notes/a..b.json", "no..tes/fine.json"])
def test_a_document_in_a_wrong_place_is_left_there_whatever_it_holds(
    files_store: StateStore, directory: Path, place: str
) -> None:
    file = directory / place
    file.parent.mkdir(exist_ok=True)
    file.write_text("{")
    assert [problem.where for problem in files_store.check()] == [place, place]
    assert [problem.is_repaired for problem in files_store.check(repair=True)] == [False, False]
    assert file.read_text() == "{"
