"""The document files: how they are named, found and listed."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from itertools import chain, islice

from statestore.engines.files.directory import OWN, Directory
from statestore.engines.files.identity import Identity
from statestore.engines.files.image import version_text
from statestore.errors import StoreUnavailable
from statestore.jsontext import is_unicode
from statestore.names import SESSIONS, TRASH
from statestore.seedform.pieces import Pieces
from statestore.stored import DOCUMENT_KINDS, Document, DocumentInfo, DocumentKind

log = logging.getLogger("statestore")


def file_name(name: str, kind: DocumentKind) -> str:
    """The file that a document is kept in."""
    return f"{name}.{kind}"


def document_from(category: str, name: str, kind: DocumentKind, body: Pieces, status: os.stat_result) -> Document:
    """The document that was read from a file."""
    return Document(category, name, kind, body.joined(), version_text(Identity.of(status), body.crc32()))


def documents_in(
    directory: Directory, category: str, *, after: tuple[str, DocumentKind] | None = None, limit: int | None = None
) -> list[DocumentInfo]:
    """The documents of a category, by name, then kind; of these, so many that come after a certain one."""
    with directory.category(category) as fd:
        if fd is None:
            return []
        named = [(*name, entry) for entry in _files(fd) if (name := _document_name(category, entry)) is not None]
        if after is not None:
            named = [item for item in named if item[:2] > after]
        named.sort(key=lambda item: item[:2])
        infos = (info for item in named if (info := _info(category, *item)) is not None)
        return list(islice(infos, len(named) if limit is None else min(limit, len(named))))


def _document_name(category: str, entry: os.DirEntry[str]) -> tuple[str, DocumentKind] | None:
    """The name and kind of the document that a file holds, if it holds one."""
    kind = document_kind(entry.name)
    if kind is None:
        return None
    if not is_unicode(entry.name):
        log.warning("%s/%r is left out of the listing: its name is not Unicode", category, entry.name)
        return None
    return entry.name[: -len(kind) - 1], kind


def _info(category: str, name: str, kind: DocumentKind, entry: os.DirEntry[str]) -> DocumentInfo | None:
    try:
        return DocumentInfo(category, name, kind, entry.stat(follow_symlinks=False).st_size)
    except FileNotFoundError:
        return None  # deleted between the scan and the look at it


def document_kind(file: str) -> DocumentKind | None:
    """The kind of document that a file name stands for, if it stands for one."""
    stem, dot, suffix = file.rpartition(".")
    return suffix if dot and stem and suffix in DOCUMENT_KINDS else None


def categories_below(directory: Directory, prefix: str) -> list[str]:
    """The categories that hold documents, from a prefix down; the trash, which is among our own files, too."""
    found = chain(directories_below(directory, prefix), [] if prefix else [TRASH])
    named = (category for category in found if category not in ("", SESSIONS))
    return sorted(category for category in named if documents_in(directory, category, limit=1))


def directories_below(
    directory: Directory, category: str, *, unseen: dict[str, StoreUnavailable] | None = None
) -> Iterator[str]:
    """A category and all below it, however deep; the root is the empty one. Links are not followed.

    With ``unseen``, a directory that cannot be opened is noted there, and what is below it is left out.
    """
    waiting = [category]
    while waiting:
        category = waiting.pop()
        yield category
        try:
            waiting += _directories_in(directory, category)
        except StoreUnavailable as error:
            if unseen is None:
                raise
            unseen[category] = error


def _directories_in(directory: Directory, category: str) -> list[str]:
    with directory.category(category or ".") as fd:
        if fd is None:
            return []
        with os.scandir(fd) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        names = [name for name in names if not directory.is_kept_by_the_system(fd, name)]
    return [f"{category}/{name}" for name in names] if category else [name for name in names if name != OWN]


def _files(fd: int) -> list[os.DirEntry[str]]:
    with os.scandir(fd) as entries:
        return [entry for entry in entries if entry.is_file(follow_symlinks=False)]
