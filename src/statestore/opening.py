"""From a URL or a path to an engine: a table of schemes, loaded only when used, and entry points for others."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable
from typing import Any, Final, Literal

from statestore.engine import Engine
from statestore.errors import InvalidValue

Durability = Literal["full", "relaxed"]
ENTRY_POINTS: Final = "statestore.engines"

_BUILT_IN: Final = {
    "memory": "statestore.engines.memory:open_url",
    "file": "statestore.engines.files:open_url",
    "sqlite": "statestore.engines.sqlite:open_url",
    **dict.fromkeys(("postgresql", "postgres"), "statestore.engines.postgres:open_url"),
    "valkey": "statestore.engines.valkey:open_valkey",
    "valkeys": "statestore.engines.valkey:open_valkeys",
    "redis": "statestore.engines.valkey:open_redis",
    "rediss": "statestore.engines.valkey:open_rediss",
}
_DATABASE_FILE: Final = "statestore.engines.sqlite:open_file"
_DATABASE_SUFFIXES: Final = (".db", ".sqlite", ".sqlite3")
"""How the path of a file ends that holds a database; any other path is a directory."""
_DATABASE_NAME: Final = re.compile(r"\.(db|sqlite)\d*$", re.IGNORECASE)


def engine_for(
    target: str | os.PathLike[str] | Engine,
    *,
    create: bool = True,
    read_only: bool = False,
    durability: Durability = "full",
) -> Engine:
    """The engine for a URL (``sqlite:FILE``, ``file:DIR``, ``memory:``), for a path, or the engine itself.

    Nothing is opened yet. An engine was made with its options, so that none can be given here.
    """
    options: dict[str, Any] = {"create": create, "read_only": read_only, "durability": durability}
    if not isinstance(target, (str, os.PathLike)):
        if not hasattr(target, "runs_in"):
            raise InvalidValue(f"a store is a URL like sqlite:FILE, a path, or an Engine, not {type(target).__name__}")
        if options != {"create": True, "read_only": False, "durability": "full"}:
            raise InvalidValue(
                f"an engine has its options already: give create, read_only and durability to {type(target).__name__}"
            )
        return target
    scheme, rest = _parsed(target)
    if scheme in ("", "file", "sqlite"):
        _check_is_meant(rest)
    if scheme:
        return _factory(scheme)(rest, **options)
    if rest.lower().endswith(_DATABASE_SUFFIXES):
        return _loaded(_DATABASE_FILE)(rest, **options)
    _check_is_directory(rest)
    return _factory("file")(rest, **options)


def path_of_database(target: str | os.PathLike[str]) -> str:
    """The path of a file that is given as a path or as ``sqlite:FILE``; `InvalidValue` if it is another URL."""
    scheme, rest = _parsed(target)
    if scheme not in ("", "sqlite"):
        raise InvalidValue(
            f"give the path of a file, or sqlite:FILE, and not a URL of {scheme}: "
            "(./NAME is a file, also if there is a colon in its name)"
        )
    return engine_for(target).url.removeprefix("sqlite:") if scheme else rest


def _parsed(target: str | os.PathLike[str]) -> tuple[str, str]:
    """The scheme of a URL, and what follows it; for a path, no scheme and the path."""
    text = os.fspath(target)
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidValue(f"a path is a text, not {type(text).__name__}: os.fsdecode makes one of it")
    scheme, colon, rest = text.partition(":")
    is_path = not colon or len(scheme) < 2 or os.sep in scheme or isinstance(target, os.PathLike)
    return ("", text) if is_path else (scheme.lower(), rest)


def _check_is_meant(path: str) -> None:
    """Refuse to make a file or directory named ``~`` or ``:memory:``: who writes that means something else."""
    if os.path.basename(path.partition("?")[0]) == ":memory:":
        raise InvalidValue(":memory: is a word of SQLite's: memory: is the store that lives in memory")
    if path == "~" or path.startswith(f"~{os.sep}"):
        raise InvalidValue(
            f"{path}: ~ stands for the home directory in a shell only: give os.path.expanduser({path!r}), "
            f"or ./{path} if there is a directory of that name"
        )


def _check_is_directory(path: str) -> None:
    """Refuse to make a directory of a path that looks like a file's: the right name would open an empty store later."""
    if not path:
        raise InvalidValue("the store's name is empty: give a URL like sqlite:FILE or memory:, or a path")
    name = os.path.basename(path.rstrip(os.sep)).partition("?")[0]
    if _DATABASE_NAME.search(name) and not os.path.isdir(path):
        raise InvalidValue(
            f"{path} looks like a database file, and would be a directory: "
            f"sqlite:{path.rstrip(os.sep)} names the file, and file:{path} a directory"
        )


def _loaded(place: str) -> Callable[..., Engine]:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def _factory(scheme: str) -> Callable[..., Engine]:
    if scheme in _BUILT_IN:
        return _loaded(_BUILT_IN[scheme])
    from importlib.metadata import entry_points  # noqa: PLC0415 - costs 15 ms, and few need it

    for entry in entry_points(group=ENTRY_POINTS, name=scheme):
        return entry.load()
    known = ", ".join(sorted(_BUILT_IN))
    raise InvalidValue(f"there is no engine for {scheme}: URLs, only for {known}, and for what packages add")
