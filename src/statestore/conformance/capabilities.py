"""What an engine may offer besides: which methods belong together, and what a store says where they are missing."""

from __future__ import annotations

from typing import Any, Final, Literal

from statestore.engine import Engine, SearchQuery
from statestore.terms import Term

Capability = Literal["search", "watch", "wake", "point", "group", "several", "backup", "compact", "repair"]

OPTIONAL_CALLS: Final[dict[Capability, dict[str, tuple[tuple[Any, ...], dict[str, Any]]]]] = {
    "search": {"search_sessions": ((SearchQuery((Term(("word",)),)),), {}), "update_search_index": ((), {})},
    "watch": {
        "change_cursor": ((), {}),
        "read_changes": (("cursor",), {"session_id": "s", "user_id": "u", "limit": 5}),
    },
    "wake": {"wait_for_changes": (("cursor", 0.1), {})},
    "point": {"changed_since": (("cursor",), {})},
    "repair": {"repair": ((), {})},
    "group": {"commit_group": (([],), {})},
    "several": {"read_sessions": (([],), {}), "get_documents": (("notes", []), {})},
    "backup": {"backup": (("path",), {})},
    "compact": {"compact": ((), {})},
}
"""The methods of each capability, with arguments that they must take."""

CAPABILITIES: Final = frozenset(OPTIONAL_CALLS)


def offered_by(engine: Engine) -> frozenset[Capability]:
    """What an engine offers, going by its methods: one of them is a claim to have them all."""
    return frozenset(
        capability for capability, calls in OPTIONAL_CALLS.items() if any(hasattr(engine, name) for name in calls)
    )
