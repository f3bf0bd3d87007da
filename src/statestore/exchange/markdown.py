"""``markdown``: a conversation as a text that people read and edit. What was said stays as it was written.

A message that would not keep to itself is shown as a block of code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Final

from statestore.exchange.gathering import Entry, Part
from statestore.exchange.rendering import keeps_to_itself
from statestore.exchange.saying import facts, moment, speaker, title_shown, value_shown
from statestore.records import Event, decode_body
from statestore.stored import StoredRecord
from statestore.visible import on_its_lines, on_one_line

_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>&#~|])")


class Markdown:
    """A heading for each session and for each message; events as folded JSON."""

    has_contents = True

    def __init__(self) -> None:
        self._is_first = True

    def opening(self, entries: Sequence[Entry]) -> bytes:
        return b""

    def session(self, part: Part) -> bytes:
        self._head = part.head
        between = "" if self._is_first else "\n---\n\n"
        self._is_first = False
        lines = [f"{between}# {_plain(title_shown(part))}", ""]
        lines += [f"- {name}: {_plain(value)}" for name, value in facts(part.head)]
        return ("\n".join(lines) + "\n").encode()

    def records(self, records: Sequence[StoredRecord]) -> bytes:
        return "".join(map(self._shown, records)).encode()

    def _shown(self, record: StoredRecord) -> str:
        said = decode_body(record.kind, record.body)
        when = moment(said.timestamp_text)
        if isinstance(said, Event):
            value = _fenced(value_shown(bytes(said.data_json)), "json")
            return (
                f"\n<details>\n<summary>{escape(on_one_line(said.kind))} · {when}</summary>\n\n{value}\n\n</details>\n"
            )
        text = on_its_lines(said.content).strip("\n")
        shown = text if keeps_to_itself(text) else _fenced(text)
        return f"\n## {_plain(speaker(self._head, record.kind))} · {when}\n\n{shown}\n"

    def session_end(self) -> bytes:
        return b""

    def closing(self) -> bytes:
        return b""


def _plain(text: str) -> str:
    """A text in one line, in which nothing is markup."""
    return _SPECIAL.sub(r"\\\1", on_one_line(text))


def _fenced(text: str, language: str = "") -> str:
    """A text as a block of code, whatever it holds."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
