"""The library's logger; it is loaded when there is something to say, because loading it takes 3 ms."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging


def log() -> logging.Logger:
    """Where the store tells what nobody waits to hear."""
    import logging  # noqa: PLC0415

    return logging.getLogger("statestore")
