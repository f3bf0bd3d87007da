"""A session that one framework wrote, as the input of another: ``messages_for("langchain", session)``.

Text always carries over, tool calls and their results where both frameworks have them. What only the framework that
wrote it understands (reasoning, images) stays in the session and is left out of the copy.

An adapter joins in with a `Dialect`, in a module of `statestore.adapters.dialects`. A record that no framework wrote
counts as well: messages and responses by their text, events ``tool_call`` and ``tool_result`` if their data have the
fields of `ToolCall` and `ToolResult`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import msgspec
from msgspec import UNSET

from statestore.adapters.items import TOOL_CALL, TOOL_RESULT, item_in
from statestore.adapters.requirements import REQUIREMENTS
from statestore.adapters.turns import Dialect, Said, ToolCall, ToolResult, Turn, json_of
from statestore.errors import InvalidValue
from statestore.records import Event, Record, UserMessage
from statestore.session import Session
from statestore.timeline import TimelineEntry


def messages_for(framework: str, session: Session | Iterable[TimelineEntry]) -> list[Any]:
    """The conversation as input items of a framework, whoever wrote it.

    ``session`` is a loaded session, or a part of a timeline. Items that the framework wrote itself come back exactly.
    """
    return dialect_of(framework).load(stored_items_for(framework, _records_of(session)))


def turns_in(session: Session | Iterable[TimelineEntry]) -> list[Turn]:
    """The conversation in its neutral form."""
    return [turn for record in _records_of(session) for turn in turns_of(record)]


def _records_of(session: Session | Iterable[TimelineEntry]) -> list[Record]:
    """What was said; `InvalidValue` for an id, for a coroutine that nobody awaited, and for no session."""
    entries = session.timeline if isinstance(session, Session) else session
    is_timeline = isinstance(entries, Iterable) and not isinstance(entries, (str, bytes))  # pyright: ignore[reportUnnecessaryIsInstance]
    found = list(entries) if is_timeline else []
    if not is_timeline or not all(isinstance(entry, TimelineEntry) for entry in found):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidValue(
            f"a conversation is a loaded session, or a part of a timeline, not {type(session).__name__} "
            "(load_session gives None where there is no session)"
        )
    return [entry.record for entry in found]


def stored_items_for(framework: str, records: Sequence[Record]) -> list[Any]:
    """Records as the items that a framework's adapter stores: its own exactly, those of others translated."""
    dialect = dialect_of(framework)
    items: list[Any] = []
    foreign: list[Turn] = []
    for record in records:
        item = item_in(framework, record)
        if item is UNSET:
            foreign += turns_of(record)
            continue
        items += _written(dialect, foreign)
        foreign = []
        items.append(item)
    return items + _written(dialect, foreign)


def _written(dialect: Dialect, turns: list[Turn]) -> list[Any]:
    return dialect.write(turns) if turns else []


def turns_of(record: Record) -> Sequence[Turn]:
    """What one record says, whoever wrote it."""
    for framework in record.extra:
        if _module_of(framework) is not None:
            item = item_in(framework, record)
            return () if item is UNSET else dialect_of(framework).read(item)
    if isinstance(record, Event):
        return _turns_of_event(record)
    return (Said("user" if isinstance(record, UserMessage) else "assistant", record.content),)


def _turns_of_event(event: Event) -> Sequence[Turn]:
    types: dict[str, Any] = {TOOL_CALL: _PlainCall, TOOL_RESULT: _PlainResult}
    if event.kind not in types:
        return ()
    try:
        return (msgspec.json.decode(event.data_json, type=types[event.kind]).turn(),)
    except msgspec.DecodeError:
        return ()


class _PlainCall(msgspec.Struct):
    id: str
    name: str
    arguments: Any = msgspec.field(default_factory=dict[str, Any])

    def turn(self) -> ToolCall:
        return ToolCall(self.id, self.name, json_of(self.arguments))


class _PlainResult(msgspec.Struct):
    id: str
    output: Any
    name: str | None = None

    def turn(self) -> ToolResult:
        return ToolResult(self.id, json_of(self.output), self.name)


@cache
def dialect_of(framework: str) -> Dialect:
    """How a framework's items are read and written."""
    module = _module_of(framework)
    if module is None:
        known = ", ".join(name for name in REQUIREMENTS if _module_of(name))
        raise InvalidValue(f"{framework!r} is none of the frameworks that conversations can be handed to: {known}")
    return import_module(module).DIALECT


@cache
def _module_of(framework: str) -> str | None:
    """Where a framework's dialect is, if it has one."""
    module = f"statestore.adapters.dialects.{framework.replace('-', '_')}"
    return module if framework in REQUIREMENTS and find_spec(module) is not None else None
