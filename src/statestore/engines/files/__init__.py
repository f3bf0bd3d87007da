"""``file:DIR`` - the seed's own layout: a directory a category, a JSON file a session, readable by anything.

``directory`` is the way to every file, ``temporary`` and ``lasting`` write so that it survives a power cut, ``locks``
keeps writers apart, ``editing`` puts changes into a file's bytes, ``journal`` makes batches of several files whole,
``index`` spares listings from reading what they have read.
"""

from __future__ import annotations

from statestore.engines.files.engine import FilesEngine
from statestore.errors import InvalidValue


def open_url(rest: str, *, create: bool = True, read_only: bool = False, durability: str = "full") -> FilesEngine:
    """The engine for ``file:DIR``."""
    if rest.startswith("//") and not rest.startswith("///"):
        raise InvalidValue(  # not quoted: there may be a password before the host
            "this file:// URL names a host: write file:DIR, or file:///… for an absolute path"
        )
    path = rest.removeprefix("//")
    if not path or "\0" in path:
        raise InvalidValue("file: needs the path of a directory, like file:state or file:/var/lib/agent")
    return FilesEngine(path, create=create, read_only=read_only, durability=durability)


__all__ = ["FilesEngine", "open_url"]
