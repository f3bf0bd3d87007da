"""Durable sessions and state for AI agents: one API over SQLite, files, PostgreSQL, Valkey and memory.

``StateStore.open("state.db")`` opens a store for plain code, ``AsyncStateStore.open(…)`` one for event loops.
A `Session` holds a conversation; ``store.save_session(session)`` sends what changed in it.
"""

from statestore.copying import CopyIncomplete, CopyProgress, CopyRefused, CopyReport, async_copy_store, copy_store
from statestore.engine import Engine
from statestore.errors import (
    CorruptData,
    CorruptDocument,
    CorruptSession,
    CursorExpired,
    DocumentConflict,
    InvalidCursor,
    InvalidName,
    InvalidValue,
    NameTaken,
    NotSupported,
    ReadOnlyStore,
    SessionConflict,
    SessionNotFound,
    StateStoreError,
    StoreClosed,
    StoreNotFound,
    StoreUnavailable,
    WrongUser,
)
from statestore.history import History
from statestore.names import SessionId
from statestore.notices import Notice
from statestore.opening import Durability
from statestore.pruning import Doomed, PruneConfig, PruneThrottle
from statestore.records import AgentResponse, Event, Record, UserMessage
from statestore.session import Session
from statestore.store.async_store import AsyncStateStore, AsyncUserStore
from statestore.store.batch import Batch
from statestore.store.plain import StateStore, UserStore
from statestore.stored import Document, DocumentInfo, DocumentKind, Problem, SearchHit, SessionSummary
from statestore.timeline import TimelineEntry
from statestore.trash import Trashed

__version__ = "0.1.0"

__all__ = [
    "AgentResponse",
    "AsyncStateStore",
    "AsyncUserStore",
    "Batch",
    "CopyIncomplete",
    "CopyProgress",
    "CopyRefused",
    "CopyReport",
    "CorruptData",
    "CorruptDocument",
    "CorruptSession",
    "CursorExpired",
    "Document",
    "DocumentConflict",
    "DocumentInfo",
    "DocumentKind",
    "Doomed",
    "Durability",
    "Engine",
    "Event",
    "History",
    "InvalidCursor",
    "InvalidName",
    "InvalidValue",
    "NameTaken",
    "NotSupported",
    "Notice",
    "Problem",
    "PruneConfig",
    "PruneThrottle",
    "ReadOnlyStore",
    "Record",
    "SearchHit",
    "Session",
    "SessionConflict",
    "SessionId",
    "SessionNotFound",
    "SessionSummary",
    "StateStore",
    "StateStoreError",
    "StoreClosed",
    "StoreNotFound",
    "StoreUnavailable",
    "TimelineEntry",
    "Trashed",
    "UserMessage",
    "UserStore",
    "WrongUser",
    "async_copy_store",
    "copy_store",
]

for _name in __all__:
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = __name__  # a traceback says statestore.Session
