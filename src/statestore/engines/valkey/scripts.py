"""The scripts that run inside the server: texts from ``lua/``, called by their digest."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import Final, NamedTuple

_HERE: Final = os.path.join(os.path.dirname(__file__), "lua")


class Script(NamedTuple):
    """A script and its digest, by which a server that has seen it knows it."""

    text: str
    digest: str


def _script(*names: str) -> Script:
    """The script that these files make, one after the other."""
    texts: list[str] = []
    for name in names:
        with open(os.path.join(_HERE, f"{name}.lua"), encoding="utf-8") as file:
            texts.append(file.read())
    text = "\n".join(texts)
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


OPEN: Final = _script("open")
PROBE: Final = _script("probe")
COMMIT: Final = _script("shared", "judging", "foreign", "finding", "sessions", "documents", "commit")
READ: Final = _script("finding", "paging", "read")
ADDED: Final = _script("finding", "added")
LIST: Final = _script("shared", "list")
CHECK: Final = _script("shared", "paging", "joining", "check")
CHECK_RECORDS: Final = _script("joining", "check_records")
CHECK_DOCUMENTS: Final = _script("joining", "check_documents")
LIST_DOCUMENTS: Final = _script("list_documents")


def texts_in(lengths: bytes, joined: bytes) -> Iterator[bytes]:
    """The texts that a script joined, as `lua/joining.lua` does."""
    start = 0
    for length in map(int, lengths.split()):
        yield joined[start : start + length]
        start += length
