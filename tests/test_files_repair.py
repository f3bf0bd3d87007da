"""Repairs of a directory: what is moved aside is damaged, and not only named in a way that we do not take."""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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
    found = files_store.check()
    assert [problem.where for problem in found] == [place, place]
    assert not any("repair" in problem.advice for problem in found)
    assert [problem.is_repaired for problem in files_store.check(repair=True)] == [False, False]
    assert file.read_text() == "{"


@contextmanager
def _little_room_on_the_stack() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 100)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def test_directories_may_lie_in_each_other_however_deep(
    files_store: StateStore, directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    deepest = directory.joinpath(*["deep"] * 150)
    deepest.mkdir(parents=True)
    (deepest / "document.json").write_text("{")
    files_store.save_json("deep/deep", "note", 1)
    with _little_room_on_the_stack(), caplog.at_level(logging.WARNING):
        categories = files_store.list_categories()
        problems = files_store.check(repair=True)
    assert categories == ["deep/deep"]
    assert "longer than 500 bytes" in caplog.text
    assert {problem.where for problem in problems} == {f"{'deep/' * 150}document.json"}
    assert not any(problem.is_repaired for problem in problems)


def test_a_directory_named_like_a_session_is_moved_aside_as_the_check_says(
    files_store: StateStore, directory: Path
) -> None:
    files_store.get_or_create_session("alice", "s1")
    (directory / "sessions" / "s2.json").mkdir()
    (problem,) = files_store.check()
    assert "check(repair=True) moves it aside" in problem.advice
    (mended,) = files_store.check(repair=True)
    assert (mended.where, mended.is_repaired) == ("sessions/s2.json", True)
    assert files_store.check() == []
