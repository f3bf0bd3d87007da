"""How a record looks: who, when, and what was said. Markdown is rendered on a terminal, events are folded."""

from __future__ import annotations

from typing import Final

import msgspec

from statestore import Event, Record, TimelineEntry
from statestore.cli.moments import clock_of
from statestore.cli.printing import cut, is_terminal, styled, terminal_width, width_of
from statestore.cli.rendering import as_written, rendered
from statestore.records import body_of
from statestore.visible import on_its_lines, on_one_line

_FOLDED: Final = 100


class EntryJson(msgspec.Struct):
    """A record with its place, as ``--json`` prints it: ``record`` is the stored JSON."""

    session_id: str
    seq: int | None
    kind: str
    record: msgspec.Raw


def entry_json(session_id: str, seq: int | None, kind: str, record: Record) -> EntryJson:
    """A record for ``--json``."""
    return EntryJson(session_id, seq, kind, msgspec.Raw(body_of(record)))


def conversation_piece(entry: TimelineEntry, *, raw: bool) -> str:
    """One record of a conversation, after an empty line: who, when, and what; an event is one line, unless raw."""
    who = styled(on_one_line(entry.kind), style_of(entry.kind))
    clock = clock_of(entry.record.timestamp)
    head = f"{styled(f'#{entry.seq}', 'dim')} {who}  {styled(clock, 'dim')}"
    if isinstance(entry.record, Event):
        if not raw:
            beside = width_of(f"#{entry.seq} {entry.kind}  {clock}  ")
            return f"\n{head}  {styled(folded(entry.record, beside), 'dim')}\n"
        pretty = msgspec.json.format(bytes(entry.record.data_json), indent=2).decode()
        return f"\n{head}\n{on_its_lines(pretty)}\n"
    shown = as_written if raw or not is_terminal() else rendered
    return f"\n{head}\n{shown(entry.record.content)}\n"


def style_of(kind: str) -> str:
    """The style for a kind of record: what was said stands out, events do not."""
    return kind if kind in ("user", "agent") else "dim"


def folded(event: Event, beside: int) -> str:
    """An event's data on what is left of a line."""
    data = on_one_line(bytes(event.data_json).decode())
    return cut(data, max(terminal_width() - beside, 20) if is_terminal() else _FOLDED)
