"""`export_sessions` and `import_sessions`: for plain code and for event loops."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Generator, Sequence
from typing import BinaryIO

from statestore.errors import CorruptData, InvalidName, InvalidValue, StoreUnavailable
from statestore.exchange.exporting import NoteDone, NoteUnreadable, exported
from statestore.exchange.formats import Format, writer_for
from statestore.exchange.importing import imported_store, imported_stream
from statestore.exchange.landing import Imported
from statestore.exchange.making import at_once, in_a_thread
from statestore.exchange.reaching import loop_source, loop_target, plain_source, plain_target
from statestore.host import stepped
from statestore.names import RESERVED_PART, SESSIONS
from statestore.store.async_store import AsyncStateStore, AsyncUserStore
from statestore.store.beneath import engine_of
from statestore.store.plain import StateStore, UserStore


def export_sessions(
    store: StateStore | UserStore,
    ids: Sequence[str] | None = None,
    *,
    format: Format = "jsonl",
    unreadable: NoteUnreadable | None = None,
    done: NoteDone | None = None,
) -> Generator[bytes]:
    """Sessions as text, chunk by chunk: the named ones in this order, or all.

    ``jsonl`` and ``json`` are lossless, and `import_sessions` takes them. ``openai`` is a line of chat-completions
    messages for each session. ``markdown`` and ``html`` are for people, newest session first; an html page is
    complete in itself. Whoever writes meanwhile: each session is exported as it was at one moment, and of all sessions,
    those that are gone before their turn comes are left out. With ``unreadable``, sessions that cannot be read are left
    out wholly, and so are named ones that are not there: it is called with id and error. Without it, the error is
    raised. ``done`` is called with the id of each session that was exported.

    ``store.for_user(…)`` exports that user's sessions alone, also if ids change hands meanwhile: another's session is
    one that is not there. If some of that user's are too damaged to be listed, ``unreadable`` is called once, with an
    empty id: nobody can tell which they are.
    """
    return stepped(exported(plain_source(store), _checked(ids), writer_for(format), unreadable, done, at_once))


def async_export_sessions(
    store: AsyncStateStore | AsyncUserStore,
    ids: Sequence[str] | None = None,
    *,
    format: Format = "jsonl",
    unreadable: NoteUnreadable | None = None,
    done: NoteDone | None = None,
) -> AsyncGenerator[bytes]:
    """The same as `export_sessions`, for event loops: iterate over it with ``async for``.

    A thread makes the texts, so that the loop goes on meanwhile.
    """
    return exported(loop_source(store), _checked(ids), writer_for(format), unreadable, done, in_a_thread())


def unlisted_sessions(store: StateStore) -> Generator[tuple[str, CorruptData | InvalidName]]:
    """The ids of the sessions that no listing shows, because they cannot be read, and why."""
    return stepped(plain_source(store).unlisted())


def import_sessions(store: StateStore, stream: BinaryIO, *, name: str = "the input") -> Generator[Imported]:
    """Store the sessions of a ``jsonl`` or ``json`` export, and tell what became of each, as it happens.

    A session is imported wholly or not at all. One that is there already, and is the same, is skipped, so an import
    can be repeated; another one with the same id is left alone, and the new one is refused. So is one that holds what
    no store takes: another program may have written it. `NotAnExport` names the line where ``stream`` is no export;
    the sessions before that line are stored.
    """
    return stepped(imported_stream(plain_target(store), _readable(stream), name))


def async_import_sessions(
    store: AsyncStateStore, stream: BinaryIO, *, name: str = "the input"
) -> AsyncGenerator[Imported]:
    """The same as `import_sessions`, for event loops; ``stream`` is read in the loop's own thread."""
    return imported_stream(loop_target(store), _readable(stream), name)


def import_path(store: StateStore, path: str | os.PathLike[str]) -> Generator[Imported]:
    """Import a file that was exported, or a directory of the Rust program with its sessions and its documents."""
    name = os.fspath(path)
    engine = plain_target(store)
    if os.path.isdir(name):
        check_directory(name)
        with StateStore.open(f"file:{name}", create=False, read_only=True) as source:
            if source.url == store.url:
                raise InvalidValue(f"{name} cannot be imported into itself")
            yield from stepped(imported_store(engine, engine_of(source)))
        return
    try:
        with open(name, "rb") as stream:
            yield from import_sessions(store, stream, name=name)
    except OSError as error:
        if error.filename != name:
            raise
        raise StoreUnavailable(f"{name} cannot be read: {error.strerror}") from error


def check_directory(name: str) -> None:
    """Refuse to import a directory that may be anything: whatever in it looks like a document would be taken."""
    if os.listdir(name) and not any(os.path.isdir(os.path.join(name, own)) for own in (SESSIONS, RESERVED_PART)):
        raise InvalidValue(
            f"{name} has neither {SESSIONS}/ nor {RESERVED_PART}/, so it may be anything, and nothing was imported: "
            f"if it is a store with documents alone, copy file:{name}"
        )


def _checked(ids: Sequence[str] | None) -> Sequence[str] | None:
    if ids is None:
        return None
    if isinstance(ids, (str, bytes)) or not hasattr(ids, "__iter__"):
        raise InvalidValue(f"ids is a list of session ids, not {type(ids).__name__}")
    named = list(ids)
    for each in named:
        if not isinstance(each, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidValue(f"ids is a list of session ids, which are texts, not {type(each).__name__}")
    return list(dict.fromkeys(named))


def _readable(stream: BinaryIO) -> BinaryIO:
    try:
        is_binary = hasattr(stream, "read") and type(stream.read(0)) is bytes
    except (OSError, ValueError) as error:
        raise InvalidValue(f"the stream cannot be read: {error}") from error
    if not is_binary:
        told = f"not {type(stream).__name__}"
        raise InvalidValue(f"a stream of bytes is needed here, like open(path, 'rb') or io.BytesIO(text), {told}")
    return stream
