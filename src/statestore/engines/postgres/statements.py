"""The SQL of this engine: named statements in ``queries.sql``, numbered steps of the schema in ``migrations/``."""

from __future__ import annotations

import os
from typing import Final

_HERE: Final = os.path.dirname(__file__)


def _read(*path: str) -> str:
    with open(os.path.join(_HERE, *path), encoding="utf-8") as file:
        return file.read()


def _named(text: str) -> dict[str, str]:
    """The statements of a file in which each begins with a line ``-- name:``."""
    found: dict[str, str] = {}
    for block in text.split("-- name: ")[1:]:
        name, _, statement = block.partition("\n")
        found[name.strip()] = statement.strip().removesuffix(";")
    return found


SQL: Final = _named(_read("queries.sql"))


def migrations() -> list[str]:
    """The steps that lead from an empty schema to the present one; the first one leads to version 1."""
    names = sorted(name for name in os.listdir(os.path.join(_HERE, "migrations")) if name.endswith(".sql"))
    return [_read("migrations", name) for name in names]
