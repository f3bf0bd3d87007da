"""How much of an index of words one transaction makes or removes, so that others who write get their turn soon."""

from __future__ import annotations

from typing import Final

RECORDS_A_STEP: Final = 1000
BYTES_A_STEP: Final = 1 << 20
"""Only a single record may be more than this."""


class Room:
    """What a step may still take: records, and bytes of them."""

    def __init__(self) -> None:
        self._records = RECORDS_A_STEP
        self._bytes = BYTES_A_STEP

    @property
    def is_left(self) -> bool:
        """Whether there is room for one more record, however long."""
        return self._records > 0 and self._bytes > 0

    def take(self, size: int) -> None:
        """A record of so many bytes takes its room."""
        self._records -= 1
        self._bytes -= size
