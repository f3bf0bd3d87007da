"""How a framework's item becomes a record that everybody can read, and comes back exactly.

What the user said becomes a `UserMessage`, what the agent answered an `AgentResponse`; the item itself stays beside the
text, in a field with the framework's name. Everything else becomes an `Event` whose data *is* the item; its field with
the framework's name is ``true``. So a record stores each item once, as JSON, and says whose it is::

    {"content": "Hello", "timestamp": "…", "openai-agents": {"role": "user", "content": "Hello"}}
    {"kind": "tool_call", "data": {"type": "function_call", …}, "timestamp": "…", "openai-agents": true}

Where one item holds several things worth seeing (a text and the tools it calls), an `aside` follows it: an event for
people, with the framework's field ``false``, which is not an item and is skipped when items are read back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final, TypeVar, cast

import msgspec
from msgspec import UNSET, Raw, Struct
from msgspec.structs import force_setattr

from statestore.errors import InvalidValue
from statestore.jsontext import MAX_DEPTH, json_text
from statestore.records import AGENT, USER, AgentResponse, Event, Record, UserMessage, body_of, with_fields
from statestore.store.logs import log

T = TypeVar("T")
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode
_LONG_NUMBER: Final = re.compile(rb"\d{19}")

TOOL_CALL: Final = "tool_call"
TOOL_RESULT: Final = "tool_result"
REASONING: Final = "reasoning"
SYSTEM: Final = "system"
"""The kinds of events that all adapters have in common; what fits none of them keeps the framework's own name."""


def user_message(framework: str, text: str, item: Any, **notes: Any) -> Record:
    """What the user said, with the item beside it. `InvalidValue` if the item is not JSON.

    ``notes`` are further fields of the record, for what an adapter must know that the item does not tell.
    """
    return with_fields(UserMessage(text), _json_of({framework: item, **notes}))


def agent_response(framework: str, text: str, item: Any, **notes: Any) -> Record:
    """What the agent answered, with the item beside it."""
    return with_fields(AgentResponse(text), _json_of({framework: item, **notes}))


def event(framework: str, kind: str, item: Any, **notes: Any) -> Record:
    """Anything else: the event's data are the item."""
    return with_fields(_event(kind, item), _json_of({framework: True, **notes}))


def aside(framework: str, kind: str, data: Any, **notes: Any) -> Record:
    """Something that the item before it holds too, for people to see; no item of its own."""
    return with_fields(_event(kind, data), _json_of({framework: False, **notes}))


def kind_for(name: Any) -> str:
    """A framework's own name for a sort of item, as an event's kind; ``item`` where it cannot be one."""
    if not isinstance(name, str) or not name or name in (USER, AGENT) or "\0" in name or len(name.encode()) > 100:
        return "item"
    return name


def _event(kind: str, data: Any) -> Event:
    """An event whose data went the short way into JSON."""
    record = Event(kind)
    force_setattr(record, "data_json", Raw(_json_of(data)))
    return record


def _json_of(value: Any) -> bytes:
    """The value as JSON. What comes back equal, and is surely not too deep or too large, needs no closer look."""
    try:
        text = _encode(value)
        is_shallow = text.count(b"[") + text.count(b"{") < MAX_DEPTH
        if is_shallow and _LONG_NUMBER.search(text) is None and _decode(text) == value:
            return text
        json.dumps(value)  # what a framework's own store would refuse is not stored as something else
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InvalidValue(f"the item is not JSON: {error}") from error
    return json_text(value, "an item")


class Carrier(Struct, gc=False):
    """What an adapter reads of a record: the item beside it, and the data if it is an event."""

    mark: Any = UNSET
    data: Any = UNSET

    @property
    def is_foreign(self) -> bool:
        """Whether another framework, or no framework, wrote the record."""
        return self.mark is UNSET

    @property
    def is_aside(self) -> bool:
        """Whether the record only shows what the item before it holds."""
        return self.mark is False

    @property
    def item(self) -> Any:
        """The framework's item."""
        return self.data if self.mark is True else self.mark


@lru_cache(maxsize=32)
def carrier_of(framework: str) -> type[Carrier]:
    """What ``store.timeline_as`` reads a framework's items with."""
    made = msgspec.defstruct(
        "Carrier",
        [
            ("mark", Any, msgspec.field(default=UNSET, name=framework)),
            ("data", Any, msgspec.field(default=UNSET, name="data")),
        ],
        bases=(Carrier,),
        gc=False,
    )
    return cast("type[Carrier]", made)


def readable(items: Iterable[Any], read: Callable[[Any], T], framework: str) -> list[T]:
    """Stored items as the framework's own objects. One that its version cannot read is left out, with a warning."""
    found: list[T] = []
    for item in items:
        try:
            found.append(read(item))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            log().warning("a message that %s cannot read is left out: %s: %.200s", framework, error, item)
    return found


def item_in(framework: str, record: Record) -> Any:
    """The framework's item that a record carries; ``UNSET`` if it carries none."""
    carrier = _carried(framework, record)
    return UNSET if carrier.is_foreign or carrier.is_aside else carrier.item


def is_aside(framework: str, record: Record) -> bool:
    """Whether a record only shows what the item before it holds."""
    return _carried(framework, record).is_aside


def _carried(framework: str, record: Record) -> Carrier:
    return msgspec.json.decode(body_of(record), type=carrier_of(framework))
