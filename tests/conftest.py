"""The fixtures that most tests start from: a store, on each engine and in each face."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from disks import SMALL, mounted
from faces import Face, Place
from statestore import StateStore

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start with Ctrl-C ignored
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


@pytest.fixture(params=["plain", "async"])
def face(request: pytest.FixtureRequest) -> Iterator[Face]:
    face = Face(request.param)
    yield face
    face.close()


@pytest.fixture(params=["memory", "files", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(request.param, tmp_path / "state")


@pytest.fixture
def store(face: Face, place: Place) -> StateStore:
    """An empty store: memory, files and SQLite, plain and asynchronous."""
    return face.open(place.engine())


@pytest.fixture
def other(face: Face, place: Place, store: StateStore) -> StateStore:
    """A second store on the same storage as `store`, as another program would open it."""
    return face.open(place.engine())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of four megabytes, empty; where none can be mounted, the test is skipped or, if required, fails."""
    place = tmp_path / "disk"
    place.mkdir()
    with mounted(place, *SMALL):
        yield place


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Where `files_store` keeps its files."""
    return tmp_path / "state"


@pytest.fixture
def files_store(face: Face, directory: Path) -> StateStore:
    """An empty store in a directory, in both faces."""
    return face.open(directory)
