"""A file is written wholly or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from statestore import StoreUnavailable
from statestore.exchange import write_whole


def interrupted() -> Iterator[bytes]:
    yield b"half"
    raise KeyboardInterrupt


def test_an_interrupted_write_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    for name in ("a", "b"):
        with pytest.raises(KeyboardInterrupt):
            write_whole(tmp_path / name, interrupted())
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_a_file_keeps_its_mode_and_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(0o600)
    (tmp_path / "link").symlink_to("a")
    assert write_whole(tmp_path / "link", [b"one", b"two"]) == 6
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "a").read_bytes() == b"onetwo"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


def test_what_is_no_file_is_written_to(tmp_path: Path) -> None:
    assert write_whole("/dev/null", [b"one"]) == 3
    assert os.stat("/dev/null").st_rdev
    with pytest.raises(StoreUnavailable, match="No space left on device"):
        write_whole("/dev/full", [b"one"])


def test_an_unwritable_place_is_an_error_that_names_it(tmp_path: Path) -> None:
    for place, reason in ((tmp_path / "no" / "a", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(StoreUnavailable, match=f"{place} cannot be written: {reason}"):
            write_whole(place, [b"x"])
