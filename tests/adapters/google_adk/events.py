"""Events to append: what users, agents and tools say."""

from __future__ import annotations

from typing import Any

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.genai.types import Content, FunctionCall, FunctionResponse, Part

TRIP: dict[str, str] = {"app_name": "ferries", "user_id": "alice", "session_id": "trip"}
QUESTION = "Which ferry arrives before noon?"


def said(text: str, author: str = "user", **fields: Any) -> Event:
    role = "user" if author == "user" else "model"
    return event(author, [Part(text=text)], role, **fields)


def event(author: str, parts: list[Part], role: str = "model", **fields: Any) -> Event:
    return Event(author=author, invocation_id="run", content=Content(role=role, parts=parts), **fields)


def changing(author: str = "system", *, timestamp: float | None = None, **delta: Any) -> Event:
    """An event that changes state: ``user__visits=1`` sets ``user:visits``."""
    state = {key.replace("__", ":"): value for key, value in delta.items()}
    fields: dict[str, Any] = {} if timestamp is None else {"timestamp": timestamp}
    return Event(author=author, invocation_id="run", actions=EventActions(state_delta=state), **fields)


def conversation() -> list[Event]:
    """A turn with a tool."""
    call = FunctionCall(id="call_1", name="timetable", args={"before": "12:00"})
    response = FunctionResponse(id="call_1", name="timetable", response={"result": "10:40, 11:15"})
    return [
        said(QUESTION),
        event("skipper", [Part(text="A timetable helps.", thought=True, thought_signature=b"\x00\xff")]),
        event("skipper", [Part(text="Let me look."), Part(function_call=call)]),
        event("skipper", [Part(function_response=response)], "user"),
        said("The 10:40.", "skipper"),
        event("user", [Part(text="And this pier?"), Part.from_bytes(data=b"\x89PNG", mime_type="image/png")], "user"),
    ]
