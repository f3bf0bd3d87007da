"""``import`` looks at what it is given before it makes a store."""

from __future__ import annotations

import gzip
import subprocess
from pathlib import Path

import pytest
from program import command, environment, lines_of, refused, run_process

from children import PATIENCE


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"just some words\n", "it is not JSON"),
        (b"", "it is empty"),
        (b'{"messages":[]}\n', "does not look like one that was exported"),
        (gzip.compress(b"words", mtime=0), "it is compressed"),
    ],
)
def test_no_store_is_made_for_what_is_no_export(tmp_path: Path, text: bytes, reason: str) -> None:
    (tmp_path / "junk").write_bytes(text)
    assert reason in refused(tmp_path, 1, "--store", "j.db", "import", "junk")
    done = subprocess.run(
        command("--store", "j.db", "import", "-"),
        cwd=tmp_path,
        env=environment(),
        input=text,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, b"")
    assert reason in done.stderr.decode()
    assert [path.name for path in tmp_path.iterdir()] == ["junk"]


def test_a_pipe_that_has_a_name_is_read_from_its_beginning(here: Path) -> None:
    text = '"$@" --store o.db import <("$@" export)'
    done = run_process(here, ["bash", "-c", text, "-", *command()])
    assert (done.returncode, done.stdout) == (0, "7 imported\n")
    assert lines_of(here, "--store", "o.db", "export") == lines_of(here, "export")
