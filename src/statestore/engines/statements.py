"""SQL that lies in files beside the engine that owns it: named statements, and numbered steps of a schema."""

from __future__ import annotations

import os


def named_statements(directory: str) -> dict[str, str]:
    """The statements of ``queries.sql``, in which each begins with a line ``-- name:``."""
    found: dict[str, str] = {}
    for block in _read(directory, "queries.sql").split("-- name: ")[1:]:
        name, _, statement = block.partition("\n")
        found[name.strip()] = statement.strip().removesuffix(";")
    return found


def migration_steps(directory: str) -> list[str]:
    """The steps in ``migrations/`` that lead from nothing to the present schema; the first one leads to version 1."""
    return list(numbered_scripts(os.path.join(directory, "migrations")).values())


def numbered_scripts(directory: str) -> dict[int, str]:
    """What lies in a directory as ``0001.sql`` and so on, by number."""
    names = sorted(name for name in os.listdir(directory) if name.endswith(".sql"))
    return {int(name.removesuffix(".sql")): _read(directory, name) for name in names}


def _read(*path: str) -> str:
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()
