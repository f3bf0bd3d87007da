"""What a listing calls a session: its title and its project, worked out from what the session holds.

Each label comes from one place only: a metadata key, or the first message. So two writers who change different
places cannot mix up what a listing shows, which is the first label that is set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

TITLE_LENGTH: Final = 60


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _first(value: Any) -> str | None:
    """The first of several: of a list, or of a text with commas."""
    if isinstance(value, list):
        return _text(cast("list[Any]", value)[0]) if value else None
    return _text(value.split(",", 1)[0].strip()) if isinstance(value, str) else None


_LABELS: Final[dict[str, tuple[str, Callable[[Any], str | None]]]] = {
    "title": ("title", _text),
    "project_id": ("project", _text),
    "project_ids": ("projects", _first),
}


LABEL_KEYS: Final = tuple(_LABELS)
"""The metadata keys that a label comes from."""


def labels_in(metadata: Mapping[str, Any], keys: Iterable[str]) -> dict[str, str | None]:
    """The labels that these metadata keys give; ``None`` where a key gives none."""
    found: dict[str, str | None] = {}
    for key in keys:
        if key in _LABELS:
            label, read = _LABELS[key]
            found[label] = read(metadata.get(key))
    return found


def title_of(labels: Mapping[str, str | None]) -> str | None:
    """The title to show: the one the metadata give, or how the first message begins."""
    return _first_set(labels, "title", "opening")


def project_of(labels: Mapping[str, str | None]) -> str | None:
    """The project to show: the session's own field, or what the metadata name."""
    return _first_set(labels, "project_id", "project", "projects")


def _first_set(labels: Mapping[str, str | None], *names: str) -> str | None:
    return next((value for name in names if (value := labels.get(name)) is not None), None)


def opening_of(message: str) -> str:
    """The first line of a session's first message, cut to 60 characters."""
    beginning = message[:TITLE_LENGTH]
    if beginning.isprintable() and not beginning.startswith(" "):  # one line, and no other space is printable
        return beginning.rstrip()
    lines = message.lstrip()[: 4 * TITLE_LENGTH].splitlines()
    return lines[0][:TITLE_LENGTH].rstrip() if lines else ""
