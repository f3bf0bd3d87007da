"""The Rust program, as far as others notice it: reads whole files, writes whole files, knows no lock.

It keeps the fields that it knows and drops the others; metadata it keeps, in whatever order its maps give.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_SESSION = (
    "id",
    "user_id",
    "user_messages",
    "agent_responses",
    "active_seed_id",
    "active_persona_id",
    "created_at",
    "updated_at",
    "metadata",
)
_MESSAGE = ("content", "timestamp")
_RESPONSE = ("content", "session_id", "seed_id", "phase_reached", "evaluation_passed", "timestamp")


def now() -> str:
    """The present moment as chrono prints it, with nanoseconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f") + "123Z"


def session_path(root: Path, session_id: str) -> Path:
    """Where a session is."""
    return root / "sessions" / f"{session_id}.json"


def load(root: Path, session_id: str) -> dict[str, Any]:
    """A session as the program holds it in memory: without what it does not know."""
    found = json.loads(session_path(root, session_id).read_bytes())
    session = {key: found[key] for key in _SESSION if key in found}
    session["user_messages"] = [{key: m[key] for key in _MESSAGE} for m in found.get("user_messages", [])]
    session["agent_responses"] = [{key: r.get(key) for key in _RESPONSE} for r in found.get("agent_responses", [])]
    session["metadata"] = {key: _sorted(value) for key, value in reversed(found.get("metadata", {}).items())}
    return session


def _sorted(value: Any) -> Any:
    """Its JSON values are sorted maps."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def new_session(session_id: str, user_id: str = "alice") -> dict[str, Any]:
    """A new session, in memory."""
    moment = now()
    session: dict[str, Any] = dict.fromkeys(_SESSION)
    session |= {"id": session_id, "user_id": user_id, "created_at": moment, "updated_at": moment, "metadata": {}}
    session |= {"user_messages": [], "agent_responses": []}
    del session["active_seed_id"], session["active_persona_id"]
    return session


def push(session: dict[str, Any], content: str) -> None:
    """Add a message."""
    session["user_messages"].append({"content": content, "timestamp": now()})
    session["updated_at"] = now()


def save(root: Path, session: dict[str, Any]) -> None:
    """Write a session: a temporary file beside it, then a rename; no lock, no flush."""
    path = session_path(root, session["id"])
    path.parent.mkdir(exist_ok=True, parents=True)
    write(path, json.dumps(session, indent=2, ensure_ascii=False).encode())


def write(path: Path, data: bytes) -> None:
    """Replace a file."""
    temporary = path.with_name(f"{path.stem}.{os.getpid()}.{uuid.uuid4()}.tmp")
    with open(temporary, "wb") as file:
        file.write(data)
    os.replace(temporary, path)


def change(root: Path, session_id: str, edit: Callable[[dict[str, Any]], object]) -> None:
    """Load, change, save."""
    session = load(root, session_id)
    edit(session)
    save(root, session)


def say(root: Path, session_id: str, content: str) -> None:
    """Load, add a message, save."""
    change(root, session_id, lambda session: push(session, content))
