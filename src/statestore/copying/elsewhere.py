"""Where an export or a copy must not go: over the store, in place of all it holds, or among what it holds."""

from __future__ import annotations

import os
from typing import Final

from statestore.errors import InvalidValue

_COMPANIONS: Final = ("", "-wal", "-shm", "-journal", "-gate", "-turn")
"""What the names of a database's own files end in, after the name of the database."""


def check_is_elsewhere(path: str | os.PathLike[str], url: str) -> None:
    """Raise `InvalidValue` if what is written to this path would be one of the store's own, or lie among them."""
    scheme, _, place = url.partition(":")
    target, own = os.path.realpath(path), os.path.realpath(place)
    is_own_file = scheme == "sqlite" and target in {own + ending for ending in _COMPANIONS}
    is_inside = scheme == "file" and os.path.commonpath([own, target]) == own
    if is_own_file or is_inside:
        raise InvalidValue(f"{os.fspath(path)} is a part of the store {url} itself: write to another place")
