"""The scripts that run inside the server: texts from ``lua/``, called by their digest."""

from __future__ import annotations

import hashlib
import os
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
READ: Final = _script("finding", "read")
LIST: Final = _script("shared", "list")
CHECK: Final = _script("shared", "check")
LIST_DOCUMENTS: Final = _script("list_documents")
