"""Strands Agents on a statestore: sessions with their agents and messages, and bytes under keys.

- `repository`: ``Agent(session_manager=StateStoreSessionManager("trip", "state.db"))``, and the repository beneath it.
- `messages`: the messages of one agent in a session.
- `storage`: the other contract of Strands, ``Storage``.
"""

from statestore.adapters.requirements import check_version, unavailable

try:
    import strands.session.repository_session_manager  # noqa: F401  # pyright: ignore[reportUnusedImport] - is it there?
except ImportError as error:
    raise unavailable("strands") from error
check_version("strands")

from statestore.adapters.strands.repository import (  # noqa: E402 - only if the framework is there
    StateStoreRepository,
    StateStoreSessionManager,
)
from statestore.adapters.strands.storage import StateStoreStorage  # noqa: E402

__all__ = ["StateStoreRepository", "StateStoreSessionManager", "StateStoreStorage"]
