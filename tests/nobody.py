"""A child process to which permissions apply, also where the tests are run as root."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from children import Tell, in_child
from statestore.engines import files, sqlite

NOBODY = 65534
LOADED = (files, sqlite)
"""Before privileges are dropped: who has none may not be able to read where Python lives."""


def as_nobody(work: Callable[[], None], place: Path, *, is_owner: bool = True) -> None:
    """Run something in a child without privileges that reaches a place, and owns all below it; its error is ours."""
    if os.geteuid() == 0:
        for parent in [place, *place.parents][:-1]:
            if not os.stat(parent).st_mode & 0o001:
                os.chmod(parent, 0o755)
        if is_owner:
            _give_away(place)

    def drop_then_work(_: Tell) -> None:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        work()

    in_child(drop_then_work)


def _give_away(place: Path) -> None:
    for directory, names, others in os.walk(place):
        for name in (".", *names, *others):
            os.chown(os.path.join(directory, name), NOBODY, NOBODY, follow_symlinks=False)


@contextmanager
def mode(path: Path, bits: int) -> Iterator[None]:
    """While the block lasts, a file or a directory has these permissions."""
    before = path.stat().st_mode
    path.chmod(bits)
    try:
        yield
    finally:
        path.chmod(before)
