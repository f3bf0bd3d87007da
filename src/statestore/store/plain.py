"""`StateStore`: the store for plain code. Every method is its namesake in `AsyncStateStore`, run to its end.

Nothing is decided here. A test compares the signatures, and the docstrings are those of the originals.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from datetime import datetime
from typing import Any, Literal, NoReturn, Self, TypeVar, cast, overload

from statestore.engine import Engine
from statestore.host import Host, PlainHost, step, stepped
from statestore.notices import Notice
from statestore.opening import Durability, engine_for
from statestore.pruning import Doomed, PruneConfig
from statestore.records import Record
from statestore.session import Session
from statestore.store.async_store import AsyncStateStore, AsyncUserStore
from statestore.store.batch import BatchBlock
from statestore.store.part import not_portable
from statestore.store.searching import HITS
from statestore.store.sessions import AsyncSessions
from statestore.stored import Document, DocumentInfo, DocumentKind, Problem, SearchHit, SessionSummary
from statestore.timeline import TimelineEntry
from statestore.trash import Trashed

T = TypeVar("T")
D = TypeVar("D")
C = TypeVar("C", bound=type)


def _documented_by(original: type) -> Callable[[C], C]:
    """Give methods that have no docstring the one of their original."""

    def document(cls: C) -> C:
        for name, member in vars(cls).items():
            if callable(member) and not member.__doc__ and hasattr(original, name):
                member.__doc__ = getattr(original, name).__doc__
        return cls

    return document


@_documented_by(AsyncSessions)
class Sessions:
    """Everything that can be done with sessions."""

    _sessions: AsyncSessions

    def __reduce__(self) -> NoReturn:
        raise not_portable()

    def load_session(self, session_id: str, *, last: int | None = None) -> Session | None:
        return step(self._sessions.load_session(session_id, last=last))

    def session_exists(self, session_id: str) -> bool:
        return step(self._sessions.session_exists(session_id))

    def list_sessions(
        self,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        parent_session_id: str | None = None,
        updated_since: datetime | None = None,
        top_level: bool = False,
        order: Literal["updated", "id"] = "updated",
        limit: int | None = None,
        after: str | None = None,
    ) -> list[SessionSummary]:
        return step(
            self._sessions.list_sessions(
                user_id=user_id,
                project_id=project_id,
                parent_session_id=parent_session_id,
                updated_since=updated_since,
                top_level=top_level,
                order=order,
                limit=limit,
                after=after,
            )
        )

    def count_sessions(
        self,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        parent_session_id: str | None = None,
        updated_since: datetime | None = None,
        top_level: bool = False,
    ) -> int:
        return step(
            self._sessions.count_sessions(
                user_id=user_id,
                project_id=project_id,
                parent_session_id=parent_session_id,
                updated_since=updated_since,
                top_level=top_level,
            )
        )

    def timeline(
        self, session_id: str, *, after: int | None = None, before: int | None = None, limit: int | None = None
    ) -> list[TimelineEntry]:
        return step(self._sessions.timeline(session_id, after=after, before=before, limit=limit))

    def timeline_as(
        self,
        session_id: str,
        type: type[T],
        *,
        after: int | None = None,
        before: int | None = None,
        limit: int | None = None,
    ) -> list[tuple[int, T]]:
        return step(self._sessions.timeline_as(session_id, type, after=after, before=before, limit=limit))

    def save_session(self, session: Session, *, recreate: bool = False) -> None:
        return step(self._sessions.save_session(session, recreate=recreate))

    def update_session(self, session: Session) -> None:
        return step(self._sessions.update_session(session))

    def save_session_with_prune(self, session: Session, prune_config: PruneConfig | None = None) -> None:
        return step(self._sessions.save_session_with_prune(session, prune_config))

    def get_or_create_session(self, user_id: str, session_id: str | None = None) -> Session:
        return step(self._sessions.get_or_create_session(user_id, session_id))

    def update_session_with(
        self, session_id: str, change: Callable[[Session], object], *, last: int | None = None
    ) -> Session:
        return step(self._sessions.update_session_with(session_id, change, last=last))

    def append(self, session_id: str, *records: Record, keys: Sequence[str | None] | None = None) -> list[int]:
        return step(self._sessions.append(session_id, *records, keys=keys))

    def delete_session(self, session_id: str, *, trash_hours: int = 0) -> bool:
        return step(self._sessions.delete_session(session_id, trash_hours=trash_hours))

    def list_trash(self) -> list[Trashed]:
        return step(self._sessions.list_trash())

    def restore_session(self, session_id: str) -> Session:
        return step(self._sessions.restore_session(session_id))

    def empty_trash(self) -> int:
        return step(self._sessions.empty_trash())

    def fork_session(self, session_id: str, *, at: int | None = None, new_id: str | None = None) -> Session:
        return step(self._sessions.fork_session(session_id, at=at, new_id=new_id))

    def rewind_session(self, session_id: str, *, to: int) -> list[TimelineEntry]:
        return step(self._sessions.rewind_session(session_id, to=to))

    def search_sessions(
        self,
        query: str,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        limit: int = HITS,
        after: str | None = None,
    ) -> list[SearchHit]:
        return step(
            self._sessions.search_sessions(query, user_id=user_id, project_id=project_id, limit=limit, after=after)
        )

    def change_cursor(self) -> str:
        return step(self._sessions.change_cursor())

    def watch(self, session_id: str | None = None, *, after: str | None = None) -> Generator[Notice]:
        return stepped(self._sessions.watch(session_id, after=after))

    @overload
    def prune_sessions(self, config: PruneConfig | None = None, *, dry_run: Literal[False] = False) -> int: ...
    @overload
    def prune_sessions(self, config: PruneConfig | None = None, *, dry_run: Literal[True]) -> list[Doomed]: ...
    def prune_sessions(self, config: PruneConfig | None = None, *, dry_run: bool = False) -> int | list[Doomed]:
        return step(self._sessions.prune_sessions(config, dry_run=dry_run))  # type: ignore[call-overload]


class UserStore(Sessions):
    __doc__ = AsyncUserStore.__doc__

    def __init__(self, store: AsyncUserStore) -> None:
        self._sessions = store

    @property
    def user_id(self) -> str:
        """Whose sessions these are."""
        assert isinstance(self._sessions, AsyncUserStore)
        return self._sessions.user_id


@_documented_by(AsyncStateStore)
class StateStore(Sessions):
    """Durable sessions and documents, for plain code: ``with StateStore.open("state.db") as store:``.

    A store may be used from many threads at once. `AsyncStateStore` has the same methods for event loops.
    """

    def __init__(self, host: PlainHost, *, prune_cooldown_secs: float = 60) -> None:
        """Use `open`: a store needs an engine that is open, and a place to run in."""
        if not isinstance(host, Host):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"use StateStore.open({host!r})")
        self._store = AsyncStateStore(host, prune_cooldown_secs=prune_cooldown_secs)
        self._sessions = self._store

    @classmethod
    def open(
        cls,
        target: str | os.PathLike[str] | Engine,
        *,
        create: bool = True,
        read_only: bool = False,
        durability: Durability = "full",
        prune_cooldown_secs: float = 60,
    ) -> Self:
        """Open a store: a URL (``sqlite:FILE``, ``postgresql://…``, ``memory:``, …), a path, or an engine.

        ``create=False`` refuses a store that is not there; ``read_only=True`` writes nothing at all.
        ``durability="relaxed"`` survives a killed process but not a power cut. ``prune_cooldown_secs`` is how often
        `save_session_with_prune` prunes at most.
        """
        engine = engine_for(target, create=create, read_only=read_only, durability=durability)
        if engine.runs_in == "loop":
            from statestore.bridge import LoopThreadEngine  # noqa: PLC0415 - asyncio is loaded when it is used

            engine = cast("Engine", LoopThreadEngine(engine))
        store = cls(PlainHost(engine), prune_cooldown_secs=prune_cooldown_secs)
        step(engine.open())
        return store

    def close(self) -> None:
        return step(self._store.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The store as a URL, without any password."""
        return self._store.url

    def batch(self) -> BatchBlock:
        """``with store.batch() as batch:`` - what is written to ``batch`` happens together or not at all."""
        return BatchBlock(self._store.batch())

    def for_user(self, user_id: str) -> UserStore:
        return UserStore(self._store.for_user(user_id))

    def erase_user(self, user_id: str) -> int:
        return step(self._store.erase_user(user_id))

    def check(self, *, repair: bool = False) -> list[Problem]:
        return step(self._store.check(repair=repair))

    def backup(self, to: str | os.PathLike[str]) -> None:
        return step(self._store.backup(to))

    def compact(self) -> int:
        return step(self._store.compact())

    def save_markdown(self, category: str, name: str, content: str, *, if_version: str | None = None) -> str:
        return step(self._store.save_markdown(category, name, content, if_version=if_version))

    def load_markdown(self, category: str, name: str) -> str | None:
        return step(self._store.load_markdown(category, name))

    def save_json(self, category: str, name: str, data: Any, *, if_version: str | None = None) -> str:
        return step(self._store.save_json(category, name, data, if_version=if_version))

    @overload
    def load_json(self, category: str, name: str, *, type: type[T]) -> T | None: ...
    @overload
    def load_json(self, category: str, name: str, *, type: type[T], default: D) -> T | D: ...
    @overload
    def load_json(self, category: str, name: str, *, type: Any = ..., default: Any = None) -> Any: ...
    def load_json(self, category: str, name: str, *, type: Any = Any, default: Any = None) -> Any:
        return step(self._store.load_json(category, name, type=type, default=default))

    def save_bytes(self, category: str, name: str, data: bytes, *, if_version: str | None = None) -> str:
        return step(self._store.save_bytes(category, name, data, if_version=if_version))

    def load_bytes(self, category: str, name: str) -> bytes | None:
        return step(self._store.load_bytes(category, name))

    def get_document(self, category: str, name: str, *, kind: DocumentKind | None = None) -> Document | None:
        return step(self._store.get_document(category, name, kind=kind))

    def list_category(self, category: str) -> list[str]:
        return step(self._store.list_category(category))

    def list_documents(
        self, category: str, *, limit: int | None = None, after: str | None = None
    ) -> list[DocumentInfo]:
        return step(self._store.list_documents(category, limit=limit, after=after))

    def list_categories(self, prefix: str = "") -> list[str]:
        return step(self._store.list_categories(prefix))

    def delete_file(self, category: str, name: str, *, kind: DocumentKind | None = None) -> bool:
        return step(self._store.delete_file(category, name, kind=kind))

    def delete_category(self, category: str) -> int:
        return step(self._store.delete_category(category))

    def __repr__(self) -> str:
        return f"<StateStore {self.url}>"
