"""The error for a session that is stale: ADK's own, or where ADK has none yet (before 2.7), one like it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from google.adk.errors import StaleSessionError
else:
    try:
        from google.adk.errors import StaleSessionError
    except ImportError:

        class StaleSessionError(ValueError):
            """Raised when a session was changed by somebody else since it was loaded."""


__all__ = ["StaleSessionError"]
