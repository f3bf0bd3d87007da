"""Time zones and locales change nothing: the same bytes are written, or it is said what to set."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from children import PATIENCE, SOURCE

SCRIPT = Path(__file__).with_name("surroundings_scene.py")
TESTS = SCRIPT.parent.parent
ZONES = ("Pacific/Kiritimati", "America/St_Johns")
NOT_UTF8 = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def _told(place: Path, zones: tuple[str, ...] = (), **surroundings: str) -> dict[str, str]:
    place.mkdir()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHON"))}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(place), *zones],
        env=inherited | {"PYTHONPATH": os.pathsep.join([str(SOURCE), str(TESTS)])} | surroundings,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is written where nothing is special."""
    return _told(tmp_path_factory.mktemp("usual") / "place", TZ="UTC", LC_ALL="C.UTF-8")


@pytest.mark.parametrize("zone", ZONES)
def test_the_same_bytes_are_written_in_every_time_zone(zone: str, usual: dict[str, str], tmp_path: Path) -> None:
    assert _told(tmp_path / "place", TZ=zone) == usual


def test_the_same_bytes_are_written_though_the_time_zone_changes(usual: dict[str, str], tmp_path: Path) -> None:
    assert _told(tmp_path / "place", ZONES, LC_ALL="tr_TR.UTF-8") == usual


@pytest.mark.parametrize("locale", ["C", "POSIX"])
def test_a_locale_without_utf8_is_right_or_says_what_to_set(locale: str, usual: dict[str, str], tmp_path: Path) -> None:
    assert _told(tmp_path / "coerced", LC_ALL=locale) == usual
    told = _told(tmp_path / "as it is", LC_ALL=locale, **NOT_UTF8)
    assert told["sqlite"] == usual["sqlite"]
    if told["encoding"] == "utf-8":
        assert told == usual
    else:
        assert "PYTHONUTF8=1" in told["refused"]
        assert not (tmp_path / "as it is" / "state").exists()
