"""A file is written wholly or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import cast

import pytest

from statestore import InvalidValue, StateStore, StoreUnavailable
from statestore.exchange import check_is_elsewhere, write_whole


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


def test_an_asynchronous_export_is_refused_and_told_what_to_do(tmp_path: Path) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"one"

    with pytest.raises(InvalidValue, match="async for"):
        write_whole(tmp_path / "a", cast("Iterator[bytes]", chunks()))
    assert os.listdir(tmp_path) == []


def test_what_is_no_file_is_written_to(tmp_path: Path) -> None:
    assert write_whole("/dev/null", [b"one"]) == 3
    assert os.stat("/dev/null").st_rdev
    with pytest.raises(StoreUnavailable, match="No space left on device"):
        write_whole("/dev/full", [b"one"])


def test_an_unwritable_place_is_an_error_that_names_it(tmp_path: Path) -> None:
    for place, reason in ((tmp_path / "no" / "a", "there is no directory"), (tmp_path, "Is a directory")):
        with pytest.raises(StoreUnavailable, match=f"{place} cannot be written: {reason}"):
            write_whole(place, [b"x"])


@pytest.mark.parametrize("form", ["/dev/fd/{}", "/proc/self/fd/{}", "{link}"])
def test_a_file_that_is_open_already_is_written_to_where_its_writer_is(tmp_path: Path, form: str) -> None:
    file, link = tmp_path / "log", tmp_path / "link"
    file.write_bytes(b"before ")
    number = file.stat().st_ino
    with file.open("ab", buffering=0) as ours:
        link.symlink_to(f"/dev/fd/{ours.fileno()}")
        assert write_whole(form.format(ours.fileno(), link=link), [b"one ", b"two "]) == 8
        ours.write(b"after")
    assert file.read_bytes() == b"before one two after"
    assert file.stat().st_ino == number


def test_a_file_that_another_process_has_open_is_appended_to(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(b"before ")
    with file.open("ab") as theirs, subprocess.Popen(["sleep", "60"], stdout=theirs) as process:
        assert write_whole(f"/proc/{process.pid}/fd/1", [b"one"]) == 3
        process.kill()
    assert file.read_bytes() == b"before one"


def test_a_descriptor_that_nobody_opened_is_an_error_that_names_it() -> None:
    with pytest.raises(StoreUnavailable, match="/dev/fd/987 cannot be written: Bad file descriptor"):
        write_whole("/dev/fd/987", [b"x"])


def test_a_place_among_the_files_of_a_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("s.db")
    (tmp_path / "in").symlink_to("d/notes", target_is_directory=True)
    with StateStore.open(tmp_path / "s.db") as store:
        for name in ("s.db", "s.db-wal", "s.db-shm", "s.db-journal", "s.db-gate", "s.db-turn", "link"):
            with pytest.raises(InvalidValue, match=f"{name} is a part of the store sqlite:.*s.db itself"):
                check_is_elsewhere(tmp_path / name, store.url)
        check_is_elsewhere(tmp_path / "s.db.jsonl", store.url)
    with StateStore.open(f"file:{tmp_path / 'd'}") as store:
        for name in ("d", "d/a.json", "d/sessions/a.json", "d/.statestore/index.db", "in/a.md"):
            with pytest.raises(InvalidValue, match=f"{name} is a part of the store file:.*d itself"):
                check_is_elsewhere(tmp_path / name, store.url)
        check_is_elsewhere(tmp_path / "d.json", store.url)
    with StateStore.open("memory:") as store:
        check_is_elsewhere(tmp_path / "anywhere", store.url)
