"""Files that may be a user's sessions, and that no listing shows: nobody can read them, or they are named wrong."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator

import msgspec
from msgspec import Struct

from statestore.engines.files.checking import shown
from statestore.engines.files.directory import Directory, NotAFile
from statestore.engines.files.repairing import ASIDE
from statestore.engines.files.seen import SUFFIX
from statestore.errors import StoreUnavailable
from statestore.names import SESSIONS, TRASH


class _Claim(Struct):
    """Whose session a text says that it is."""

    user_id: str


_claim_in = msgspec.json.Decoder(_Claim).decode


def stray_files(directory: Directory, user_id: str, unlisted: Collection[str]) -> Iterator[str]:
    """Where they lie, all but those that say that they are another user's. ``unlisted`` are the ids without a summary.

    They are among the sessions, or a repair moved them aside. Documents are no user's, also if one of them was moved.
    """
    for category in (SESSIONS, f"{ASIDE}/{SESSIONS}", f"{ASIDE}/{TRASH}"):
        with directory.category(category) as fd:
            if fd is None:
                continue
            for name in _files_in(fd):
                is_listed = name.endswith(SUFFIX) and name.removesuffix(SUFFIX) not in unlisted
                where = f"{category}/{name}"
                if not (category == SESSIONS and is_listed) and _may_be_of(user_id, directory, fd, name, where):
                    yield shown(where)


def _files_in(fd: int) -> list[str]:
    """What lies in a directory, but for the directories: those hold documents."""
    with os.scandir(fd) as entries:
        return sorted(entry.name for entry in entries if not entry.is_dir(follow_symlinks=False))


def _may_be_of(user_id: str, directory: Directory, fd: int, name: str, where: str) -> bool:
    try:
        found = directory.read(fd, name, where)
        return found is not None and _claim_in(found[0].joined()).user_id == user_id
    except (NotAFile, StoreUnavailable, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return True  # nobody can tell
