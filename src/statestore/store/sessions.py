"""Everything that can be done with sessions, each part in a file of its own."""

from __future__ import annotations

from statestore.store.branching import SessionBrancher
from statestore.store.pruning import SessionPruner
from statestore.store.searching import SessionSearcher
from statestore.store.watching import SessionWatcher


class AsyncSessions(SessionPruner, SessionBrancher, SessionSearcher, SessionWatcher):
    """Everything that can be done with sessions."""
