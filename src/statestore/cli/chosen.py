"""What was chosen before the command: which store, and how much to tell about errors."""

from __future__ import annotations

import os
from typing import Final, NamedTuple

VARIABLE: Final = "STATESTORE_URL"
DEFAULT: Final = "state.db"


class Chosen(NamedTuple):
    """The options of ``statestore`` itself; a command finds them as ``ctx.obj``."""

    store: str | None = None
    debug: bool = False

    @property
    def target(self) -> str:
        """The store: ``--store``, else ``STATESTORE_URL``, else ``./state.db``."""
        return os.environ.get(VARIABLE) or DEFAULT if self.store is None else self.store

    @property
    def is_default(self) -> bool:
        """Whether nobody named a store."""
        return self.store is None and not os.environ.get(VARIABLE)
