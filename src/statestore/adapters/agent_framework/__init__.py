"""The Agent Framework on a statestore: the history of conversations, snapshots of sessions, checkpoints of workflows.

- `history`: `StateStoreHistoryProvider`, a `HistoryProvider`: the messages of a conversation. `replays` tells which of
  the messages that an agent hands over are new.
- `sessions`: `StateStoreSessionStore`, a `SessionStore`: an agent's session with all its state.
- `checkpoints`: `StateStoreCheckpointStorage`, a `CheckpointStorage`: where workflows can go on from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from statestore.adapters.requirements import check_version, unavailable

try:
    import agent_framework  # noqa: F401  # pyright: ignore[reportUnusedImport] - is it there?
except ImportError as error:
    raise unavailable("agent-framework") from error
check_version("agent-framework")

from statestore.adapters.agent_framework.checkpoints import StateStoreCheckpointStorage  # noqa: E402 - only if it is there
from statestore.adapters.agent_framework.history import StateStoreHistoryProvider  # noqa: E402

if TYPE_CHECKING:
    from statestore.adapters.agent_framework.sessions import StateStoreSessionStore

__all__ = ["StateStoreCheckpointStorage", "StateStoreHistoryProvider", "StateStoreSessionStore"]


def __getattr__(name: str) -> Any:
    """The session store is loaded when it is asked for: the framework's is experimental, and deriving from it warns."""
    if name != "StateStoreSessionStore":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from statestore.adapters.agent_framework.sessions import StateStoreSessionStore  # noqa: PLC0415

    return StateStoreSessionStore
