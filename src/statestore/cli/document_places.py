"""From what somebody typed to the document that is meant: ``notes/today``, or with its kind ``notes/today.md``."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final, NamedTuple

from statestore import Document, DocumentKind, StateStore
from statestore.cli.failures import NOT_FOUND, WRONG_USAGE, CommandFailed
from statestore.stored import DOCUMENT_KINDS

_SHOWN: Final = 3


class DocumentPlace(NamedTuple):
    """Where a document is: its kind is ``None`` if it was not told."""

    category: str
    name: str
    kind: DocumentKind | None


def document_place(typed: str) -> DocumentPlace:
    """The category, the name and the kind of ``CATEGORY/NAME`` or ``CATEGORY/NAME.json``, ``.md``, ``.bin``."""
    category, slash, name = typed.rpartition("/")
    if not slash or not category or not name:
        raise CommandFailed(f"{typed!r} names no document: write CATEGORY/NAME, like notes/today", WRONG_USAGE)
    stem, _, ending = name.rpartition(".")
    if stem and ending in DOCUMENT_KINDS:
        return DocumentPlace(category, stem, ending)
    return DocumentPlace(category, name, None)


def find_document(store: StateStore, typed: str) -> Document:
    """The document that is meant; ends the command, and suggests the nearest, if there is none."""
    place = document_place(typed)
    document = store.get_document(place.category, place.name, kind=place.kind)
    if document is None and place.kind is not None:  # a name may end like a kind
        document = store.get_document(place.category, f"{place.name}.{place.kind}")
    if document is None:
        raise _not_there(store, typed, place.category)
    return document


def find_whole_document(store: StateStore, typed: str) -> Document:
    """The document with this very name and kind: for a command that takes it away, and may be repeated.

    The kind need not be told where there is only one. Ends the command if there is none, or if there are several.
    """
    place = document_place(typed)
    document = store.get_document(place.category, place.name, kind=place.kind)
    if document is None:
        raise _not_there(store, typed, place.category)
    there = [info for info in store.list_documents(place.category) if info.name == place.name]
    if place.kind is None and len(there) > 1:
        choices = [f"{info.category}/{info.name}.{info.kind}" for info in there]
        raise CommandFailed(f"{typed} is several documents: say which", WRONG_USAGE, choices=choices)
    return document


def _not_there(store: StateStore, typed: str, category: str) -> CommandFailed:
    there = [f"{info.category}/{info.name}.{info.kind}" for info in store.list_documents(category)]
    near = get_close_matches(typed, there, n=_SHOWN)
    way_on = "did you mean" if near else f"statestore docs {category if there else ''}".rstrip() + " lists them"
    return CommandFailed(f"there is no document {typed!r}: {way_on}", NOT_FOUND, choices=near)
