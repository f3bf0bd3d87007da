"""Documents: markdown, JSON and bytes, by category and name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, overload

from statestore.engine import (
    NOTHING,
    DeleteCategory,
    DeleteDocument,
    DocumentQuery,
    PutDocument,
    Requires,
    SessionQuery,
)
from statestore.errors import InvalidCursor, InvalidName, InvalidValue
from statestore.jsontext import check_text, is_unicode, json_text, pretty
from statestore.names import SESSIONS, TRASH, check_category, check_name
from statestore.store.logs import log
from statestore.store.part import StorePart
from statestore.store.reading import check_count, understanding
from statestore.stored import DOCUMENT_KINDS, Cursor, Document, DocumentInfo, DocumentKind

T = TypeVar("T")
D = TypeVar("D")


class AsyncDocuments(StorePart):
    """Everything that can be done with documents."""

    async def save_markdown(self, category: str, name: str, content: str, *, if_version: str | None = None) -> str:
        """Store a text; its new version. ``if_version`` writes only over that version (``""``: only if new)."""
        return await self._put(put_markdown(category, name, content, if_version))

    async def load_markdown(self, category: str, name: str) -> str | None:
        """A stored text, or ``None``."""
        document = await self.get_document(category, name, kind="md")
        return None if document is None else document.text

    async def save_json(self, category: str, name: str, data: Any, *, if_version: str | None = None) -> str:
        """Store a value as JSON; its new version. Takes plain values and whatever ``msgspec`` encodes."""
        return await self._put(put_json(category, name, data, if_version))

    @overload
    async def load_json(self, category: str, name: str, *, type: type[T]) -> T | None: ...
    @overload
    async def load_json(self, category: str, name: str, *, type: type[T], default: D) -> T | D: ...
    @overload
    async def load_json(self, category: str, name: str, *, type: Any = ..., default: Any = None) -> Any: ...
    async def load_json(self, category: str, name: str, *, type: Any = Any, default: Any = None) -> Any:
        """A stored value, or ``default``. ``type`` is any type that ``msgspec`` can decode.

        ``load_json("sessions", session_id)`` gives a session as the JSON it would have as a file.
        """
        document = await self.get_document(category, name, kind="json")
        return default if document is None else document.decoded(type)

    async def save_bytes(self, category: str, name: str, data: bytes, *, if_version: str | None = None) -> str:
        """Store bytes; their new version."""
        return await self._put(put_bytes(category, name, data, if_version))

    async def load_bytes(self, category: str, name: str) -> bytes | None:
        """Stored bytes, or ``None``."""
        document = await self.get_document(category, name, kind="bin")
        return None if document is None else document.body

    async def get_document(self, category: str, name: str, *, kind: DocumentKind | None = None) -> Document | None:
        """A document with its version, or ``None``; without a kind, JSON first, then markdown, then bytes."""
        category, name = check_category(category), check_name(name)
        for candidate in kinds(kind):
            if category == SESSIONS:
                document = await self._session_document(name) if candidate == "json" else None
            else:
                document = await self._engine.get_document(category, name, candidate)
            if document is not None:
                return document
        return None

    async def list_category(self, category: str) -> list[str]:
        """The names in a category, sorted, each once."""
        return sorted({info.name for info in await self.list_documents(category)})

    async def list_documents(
        self, category: str, *, limit: int | None = None, after: str | None = None
    ) -> list[DocumentInfo]:
        """What a category holds, with kinds and sizes, by name; ``after=info.cursor`` goes on where a page ended."""
        category, limit = check_category(category), check_count("limit", limit)
        place = None if after is None else _place_at(after)
        if category == SESSIONS:
            query = SessionQuery(order="id", limit=limit, after=Cursor(0, place[0]) if place else None)
            summaries = await self._engine.list_sessions(query)
            return [DocumentInfo(SESSIONS, summary.id, "json", summary.size) for summary in summaries]
        return await self._engine.list_documents(DocumentQuery(category, place, limit))

    async def list_categories(self, prefix: str = "") -> list[str]:
        """The categories that hold documents; with a prefix, that one and those below it."""
        found = await self._engine.list_categories(check_category(prefix) if prefix else "")
        return [category for category in found if category != TRASH and _can_be_named(category)]

    async def delete_file(self, category: str, name: str, *, kind: DocumentKind | None = None) -> bool:
        """Remove a document; whether there was one. Without a kind: the JSON, else the markdown, else the bytes."""
        for candidate in kinds(kind):
            (outcome,) = await self._commit(delete_document(category, name, candidate))
            if outcome.deleted:
                return True
        return False

    async def delete_category(self, category: str) -> int:
        """Remove all documents of a category (not of those below it); how many there were."""
        (outcome,) = await self._commit(delete_category(category))
        return outcome.deleted

    async def _session_document(self, session_id: str) -> Document | None:
        stored = await self._engine.read_session(session_id)
        if stored is None:
            return None
        from statestore.seedform import session_json  # noqa: PLC0415 - few need it, and it costs 2 ms to load

        with understanding(session_id):
            return Document(SESSIONS, session_id, "json", session_json(stored), str(stored.version))

    async def _put(self, change: PutDocument) -> str:
        (outcome,) = await self._commit(change)
        return str(outcome.version)


def put_markdown(category: str, name: str, content: str, if_version: str | None) -> PutDocument:
    """The change that stores a text."""
    category, name = _check_place(category, name)
    body = check_text(content, f"{category}/{name}.md").encode()
    return PutDocument(category, name, "md", body, _at(if_version))


def put_json(category: str, name: str, data: Any, if_version: str | None) -> PutDocument:
    """The change that stores a value."""
    category, name = _check_place(category, name)
    return PutDocument(category, name, "json", pretty(json_text(data, f"{category}/{name}.json")), _at(if_version))


def put_bytes(category: str, name: str, data: bytes, if_version: str | None) -> PutDocument:
    """The change that stores bytes."""
    category, name = _check_place(category, name)
    if not isinstance(data, (bytes, bytearray, memoryview)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidValue(f"{category}/{name}.bin holds bytes, not {type(data).__name__}")
    return PutDocument(category, name, "bin", bytes(data), _at(if_version))


def delete_document(category: str, name: str, kind: DocumentKind) -> DeleteDocument:
    """The change that removes a document."""
    category, name = _check_place(category, name)
    return DeleteDocument(category, name, kind)


def delete_category(category: str) -> DeleteCategory:
    """The change that empties a category."""
    category = check_category(category)
    if category == SESSIONS:
        raise InvalidName("the category 'sessions' holds sessions: use delete_session or prune_sessions")
    return DeleteCategory(category)


def _check_place(category: str, name: str) -> tuple[str, str]:
    category, name = check_category(category), check_name(name)
    if category == SESSIONS:
        raise InvalidName("the category 'sessions' holds sessions: use save_session, append or delete_session")
    return category, name


def _can_be_named(category: str) -> bool:
    """Whether a category that was found follows the rule: a directory of somebody else's need not."""
    try:
        check_category(category)
    except InvalidName as error:
        log().warning("%s; it is left out of the categories, and check() tells what it holds", error)
        return False
    return True


def _place_at(cursor: object) -> tuple[str, DocumentKind]:
    """The name and the kind of the document that a cursor is of."""
    name, _, kind = cursor.rpartition(".") if isinstance(cursor, str) else ("", "", "")
    if not name or "\0" in name or not is_unicode(name) or kind not in DOCUMENT_KINDS:
        raise InvalidCursor(f"{str(cursor)[:60]!r} is not a cursor: pass the .cursor of what list_documents gave")
    return name, kind


def _at(version: str | None) -> Requires:
    if version is None:
        return NOTHING
    return Requires(absent=True) if version == "" else Requires(version=version)


def kinds(kind: DocumentKind | None) -> Sequence[DocumentKind]:
    """The kinds to look for, in order."""
    if kind is None:
        return DOCUMENT_KINDS
    if kind not in DOCUMENT_KINDS:
        raise InvalidValue(f"a document's kind is one of {', '.join(DOCUMENT_KINDS)}, not {kind!r}")
    return (kind,)
