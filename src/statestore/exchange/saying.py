"""What formats for people have in common: who speaks, when, and how a value looks."""

from __future__ import annotations

from statestore.exchange.gathering import Part
from statestore.jsontext import pretty
from statestore.records import USER
from statestore.stored import StoredSession
from statestore.timestamps import datetime_of
from statestore.visible import on_its_lines

AGENT_NAME = "agent"


def speaker(head: StoredSession, kind: str) -> str:
    """Who said it: the user by name, or the agent."""
    return (head.fields.user_id or USER) if kind == USER else AGENT_NAME


def moment(text: str) -> str:
    """A moment as people read it."""
    return f"{datetime_of(text):%Y-%m-%d %H:%M:%S} UTC"


def value_shown(json: bytes) -> str:
    """A JSON value laid out for reading."""
    return on_its_lines(pretty(json).decode())


def title_shown(part: Part) -> str:
    """The session's title; its id, if it has none."""
    return part.title or part.head.id


def facts(head: StoredSession) -> list[tuple[str, str]]:
    """What there is to tell of a session besides its title, in order."""
    fields = head.fields
    told = [
        ("Session", head.id),
        ("User", fields.user_id),
        ("Project", fields.project_id),
        ("Persona", fields.active_persona_id),
        ("Seed", fields.active_seed_id),
        ("Branched from", fields.parent_session_id),
        ("Began", moment(fields.created)),
        ("Last changed", moment(fields.updated)),
    ]
    return [(name, value) for name, value in told if value]
