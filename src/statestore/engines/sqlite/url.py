"""``sqlite:FILE?timeout=30&journal=auto`` - from a URL to the engine."""

from __future__ import annotations

from typing import Any, cast

from statestore.engines.sqlite.engine import SqliteEngine
from statestore.errors import InvalidValue


def open_url(rest: str, *, create: bool = True, read_only: bool = False, durability: str = "full") -> SqliteEngine:
    """The engine for ``sqlite:FILE``."""
    path, _, query = rest.partition("?")
    if path.startswith("//") and not path.startswith("///"):
        raise InvalidValue(  # not quoted: there may be a password before the host
            "this sqlite:// URL names a host: write sqlite:FILE, or sqlite:///… for an absolute path"
        )
    path = path.removeprefix("//")
    return open_file(path, create=create, read_only=read_only, durability=durability, **_options(query))


def open_file(path: str, **options: Any) -> SqliteEngine:
    """The engine for a path."""
    if not path or "\0" in path:
        raise InvalidValue("sqlite: needs the path of a file, like sqlite:state.db or sqlite:/var/lib/agent/state.db")
    return SqliteEngine(path, **options)


def _options(query: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for pair in filter(None, query.split("&")):
        name, _, value = pair.partition("=")
        if name == "timeout":
            try:
                options[name] = float(value)
            except ValueError:
                raise InvalidValue(f"sqlite:…?timeout= is a number of seconds, not {value!r}") from None
        elif name == "journal":
            options[name] = cast("Any", value)
        else:
            raise InvalidValue(f"sqlite: knows the options timeout and journal, not {name!r}")
    return options
