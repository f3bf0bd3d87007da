"""The formats by name, and what a format is: five pieces of text that follow each other."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Final, Literal, Protocol, cast, get_args

from statestore.errors import InvalidValue
from statestore.exchange.gathering import Entry, Part
from statestore.stored import StoredRecord

Format = Literal["markdown", "html", "jsonl", "json", "openai"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)
SUFFIXES: Final[dict[str, Format]] = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".jsonl": "jsonl",
    ".json": "json",
}
"""Which format the name of a file suggests."""
_PLACES: Final[dict[Format, tuple[str, str]]] = {
    "markdown": ("statestore.exchange.markdown", "Markdown"),
    "html": ("statestore.exchange.html", "Html"),
    "jsonl": ("statestore.exchange.portable", "JsonLines"),
    "json": ("statestore.exchange.portable", "Json"),
    "openai": ("statestore.exchange.openai", "OpenAI"),
}


class Writer(Protocol):
    """Turns sessions into text, one after the other. It is called in the order of its methods, `records` repeatedly."""

    has_contents: bool
    """Whether it begins with a list of what will come, newest first; otherwise sessions come by id."""

    def opening(self, entries: Sequence[Entry]) -> bytes:
        """What the whole begins with; ``entries`` is empty unless it has contents."""
        ...

    def session(self, part: Part) -> bytes:
        """What a session begins with; its records come by themselves."""
        ...

    def records(self, records: Sequence[StoredRecord]) -> bytes:
        """Some more records of the session."""
        ...

    def session_end(self) -> bytes:
        """What a session ends with."""
        ...

    def closing(self) -> bytes:
        """What the whole ends with."""
        ...


def writer_for(name: str) -> Writer:
    """A new writer of this format; `InvalidValue` names the formats there are."""
    if name not in FORMATS:
        raise InvalidValue(f"there is no format {name!r}: use one of {', '.join(FORMATS)}")
    module, writer = _PLACES[name]
    return cast("Writer", getattr(importlib.import_module(module), writer)())
