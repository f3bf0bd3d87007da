"""Names that a file system takes for one, because they differ in case or in their Unicode form: to us they are two."""

from __future__ import annotations

import os
import unicodedata
from typing import Final

from statestore.engines.files.identity import status_of
from statestore.errors import NameTaken

_PROBE: Final = "Names-\u00c9"
"""An empty file in ``.statestore``: who finds it under another spelling is on a file system that folds names."""


class Spelling:
    """How the file system of a store takes names; as they are, as long as nobody has found out."""

    def __init__(self) -> None:
        self._folds_names = False

    def find_out(self, own: int) -> None:
        """See whether a file in our own directory, which is open, can be found under another spelling of its name."""
        probe = os.open(_PROBE, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW, 0o666, dir_fd=own)
        os.close(probe)
        others = (_PROBE.lower(), unicodedata.normalize("NFD", _PROBE))
        self._folds_names = any(status_of(own, name) is not None for name in others)

    def is_another(self, directory: int, name: str) -> bool:
        """Whether the file system finds something of this name that is really called otherwise."""
        if not self._folds_names or name == ".":
            return False
        return status_of(directory, name) is not None and name not in os.listdir(directory)

    def check_is_free(self, directory: int, name: str) -> None:
        """Raise `NameTaken` if the file system takes this new name for one that exists."""
        if self.is_another(directory, name):
            raise NameTaken(f"{name!r} differs from an existing name only in a way that this file system does not see")
