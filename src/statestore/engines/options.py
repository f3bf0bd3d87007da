"""The options that engines have in common: what they may be, and what is refused because of them."""

from __future__ import annotations

from typing import Final, Protocol

from statestore.errors import InvalidValue, ReadOnlyStore

CHANGES_KEPT: Final = 100_000
"""How many changes a watcher may be behind, unless an engine is told otherwise."""


def is_durable(durability: str) -> bool:
    """Whether what was acknowledged has to survive a power cut; `InvalidValue` if that is not told."""
    if durability not in ("full", "relaxed"):
        raise InvalidValue(f"durability is 'full' or 'relaxed', not {durability!r}")
    return durability == "full"


def check_changes_kept(changes_kept: int) -> None:
    """Refuse to keep no changes at all."""
    if changes_kept < 1:
        raise InvalidValue(f"changes_kept is a whole number from 1 up, not {changes_kept!r}")


class _HasUrl(Protocol):
    @property
    def url(self) -> str: ...


def check_writable(engine: _HasUrl, *, read_only: bool) -> None:
    """Raise `ReadOnlyStore` if a store was opened for reading only."""
    if read_only:
        raise ReadOnlyStore(f"{engine.url} was opened for reading only: open it without read_only=True to write")
