"""What a listing calls a session: its title and its project, worked out from what the session holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

TITLE_LENGTH: Final = 60
TITLE_KEY: Final = "title"
PROJECT_KEYS: Final = ("project_id", "project_ids")


def title_in(metadata: Mapping[str, Any]) -> str | None:
    """The title that the metadata give, if they do."""
    title = metadata.get(TITLE_KEY)
    return title if isinstance(title, str) and title else None


def project_in(metadata: Mapping[str, Any]) -> str | None:
    """The project that the metadata name: ``project_id``, else the first of ``project_ids``."""
    single, several = (metadata.get(key) for key in PROJECT_KEYS)
    if isinstance(single, str) and single:
        return single
    if isinstance(several, list) and several:
        several = cast("list[Any]", several)[0]
        return several if isinstance(several, str) and several else None
    if isinstance(several, str):
        return several.split(",", 1)[0].strip() or None
    return None


def opening_of(message: str) -> str:
    """The first line of a session's first message, cut to 60 characters."""
    lines = message.lstrip().splitlines()
    return lines[0][:TITLE_LENGTH].rstrip() if lines else ""
