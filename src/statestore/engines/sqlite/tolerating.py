"""Reading rows of which a text is damaged: the other values are there, and tell whose it is."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def damaged_as_bytes(connection: sqlite3.Connection) -> Generator[None]:
    """While this lasts, a text that is not UTF-8 comes as bytes, instead of an error in the place of all rows."""
    connection.text_factory = _text_or_bytes
    try:
        yield
    finally:
        connection.text_factory = str


def _text_or_bytes(content: bytes) -> str | bytes:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content
