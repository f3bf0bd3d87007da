"""What users are told when an engine finds that a precondition does not hold."""

from __future__ import annotations

from collections.abc import Sequence

from statestore.engine import (
    Change,
    ChangeSession,
    DeleteCategory,
    DeleteDocument,
    DeleteSession,
    PreconditionFailed,
    PutDocument,
    Reason,
)
from statestore.errors import DocumentConflict, SessionConflict, SessionNotFound, StateStoreError, WrongUser

_DOCUMENT_REASONS: dict[Reason, str] = {
    "exists": "exists already: read its version, or leave if_version out",
    "missing": "is not there (any more)",
    "version": "is not at that version any more: read it again",
}


def explained(failed: PreconditionFailed, batch: Sequence[Change]) -> StateStoreError:
    """The error for the first change of a batch that could not be made."""
    failure = failed.failures[0]
    change = batch[failure.index]
    if isinstance(change, (PutDocument, DeleteDocument)):
        place = f"{change.category}/{change.name}.{change.kind}"
        return DocumentConflict(f"nothing was written: {place} {_DOCUMENT_REASONS.get(failure.reason, failure.reason)}")
    assert not isinstance(change, DeleteCategory)
    return _session_error(change, failure.reason)


def _session_error(change: ChangeSession | DeleteSession, reason: Reason) -> StateStoreError:
    if reason == "exists":
        return SessionConflict(
            f"session {change.id} exists already: use it, delete it, or choose another id for a new one"
        )
    if reason == "version":
        return SessionConflict(f"session {change.id} was changed by somebody else meanwhile: load it again")
    if reason == "owner" and isinstance(change, ChangeSession) and change.create is not None:
        return WrongUser(f"session {change.id} belongs to another user")
    return not_found(change.id)


def not_found(session_id: str) -> SessionNotFound:
    """The error for a session that is not there, or not to be seen."""
    return SessionNotFound(f"there is no session {session_id} (any more)")
