"""The Agent Framework on a statestore: the history of conversations, snapshots of sessions, checkpoints of workflows.

- `StateStoreHistoryProvider`, a `HistoryProvider`: the messages of a conversation.
- `StateStoreSessionStore`, a `SessionStore`: an agent's session with all its state.
- `StateStoreCheckpointStorage`, a `CheckpointStorage`: where workflows can go on from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from statestore.adapters.agent_framework_checkpoints import StateStoreCheckpointStorage
from statestore.adapters.agent_framework_history import StateStoreHistoryProvider

if TYPE_CHECKING:
    from statestore.adapters.agent_framework_sessions import StateStoreSessionStore

__all__ = ["StateStoreCheckpointStorage", "StateStoreHistoryProvider", "StateStoreSessionStore"]


def __getattr__(name: str) -> Any:
    """The session store is loaded when it is asked for: the framework's is experimental, and deriving from it warns."""
    if name != "StateStoreSessionStore":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from statestore.adapters.agent_framework_sessions import StateStoreSessionStore  # noqa: PLC0415

    return StateStoreSessionStore
