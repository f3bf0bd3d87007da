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
    if document is not None:
        return document
    there = [f"{info.category}/{info.name}.{info.kind}" for info in store.list_documents(place.category)]
    near = get_close_matches(typed, there, n=_SHOWN)
    way_on = "did you mean" if near else f"statestore docs {place.category if there else ''}".rstrip() + " lists them"
    raise CommandFailed(f"there is no document {typed!r}: {way_on}", NOT_FOUND, choices=near)
