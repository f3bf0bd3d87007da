"""``html``: one self-contained page to send to somebody. No scripts, nothing loaded; everything said is escaped."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import Final
from urllib.parse import quote

import msgspec

from statestore.exchange.gathering import Entry, Part
from statestore.exchange.rendering import html_of
from statestore.exchange.saying import facts, moment, speaker, title_shown, value_shown
from statestore.records import AgentResponse, Event, UserMessage, decode_body
from statestore.stored import StoredRecord
from statestore.visible import on_its_lines, on_one_line

_HERE: Final = os.path.dirname(__file__)
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
PREVIEW: Final = 80
"""How many characters of an event's value stand beside its name while it is folded."""


@cache
def _style() -> str:
    with open(os.path.join(_HERE, "page.css"), encoding="utf-8") as file:
        return file.read()


class Html:
    """A page with all sessions, each an article; with several, a list of them comes first."""

    has_contents = True

    def __init__(self) -> None:
        self._place = 0

    def opening(self, entries: Sequence[Entry]) -> bytes:
        title = (entries[0].title or entries[0].id) if len(entries) == 1 else f"{len(entries)} sessions"
        head = (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            '<meta name="referrer" content="no-referrer">\n<meta name="color-scheme" content="light dark">\n'
            f"<title>{_line(title)}</title>\n<style>\n{_style()}</style>\n</head>\n<body>\n<main>\n"
        )
        return (head + (_contents(entries) if len(entries) > 1 else "")).encode()

    def session(self, part: Part) -> bytes:
        self._place += 1
        self._head = part.head
        told = "".join(
            f"<div><dt>{name}</dt><dd><bdi>{_line(value)}</bdi></dd></div>\n" for name, value in facts(part.head)
        )
        extra = "" if part.head.metadata == b"{}" else _folded("metadata", "", value_shown(part.head.metadata))
        return (
            f'<article id="{_anchor(part.head.id)}">\n<header class="about">\n'
            f'<h1 dir="auto">{_line(title_shown(part))}</h1>\n<dl>\n{told}</dl>\n{extra}</header>\n'
        ).encode()

    def records(self, records: Sequence[StoredRecord]) -> bytes:
        return "".join(map(self._shown, records)).encode()

    def _shown(self, record: StoredRecord) -> str:
        said = decode_body(record.kind, record.body)
        anchor = f"s{self._place}-{record.seq}"
        when = (
            f'<a class="when" href="#{anchor}"><time datetime="{_line(said.timestamp_text)}">'
            f"{moment(said.timestamp_text)}</time></a>"
        )
        if isinstance(said, Event):
            value = value_shown(bytes(said.data_json))
            return f'<div class="event" id="{anchor}">{_folded(said.kind, value, value + _more(said), when)}</div>\n'
        is_user = isinstance(said, UserMessage)
        text = on_its_lines(said.content)
        body = f'<p class="plain">{escape(text)}</p>\n' if is_user else html_of(text)
        chips = "" if isinstance(said, UserMessage) else _chips(said)
        more = _folded("more fields", "", value_shown(msgspec.json.encode(said.extra))) if said.extra else ""
        return (
            f'<section class="{"user" if is_user else "agent"}" id="{anchor}">\n<header><b><bdi>'
            f"{_line(speaker(self._head, record.kind))}</bdi></b>{chips}{when}</header>\n"
            f'<div class="said" dir="auto">\n{body}</div>\n{more}</section>\n'
        )

    def session_end(self) -> bytes:
        return b"</article>\n"

    def closing(self) -> bytes:
        return b"</main>\n</body>\n</html>\n"


def _line(text: str) -> str:
    return escape(on_one_line(text))


def _anchor(session_id: str) -> str:
    """What links to a session lead to: its id, with other characters than letters and digits as their numbers."""
    return "session-" + "".join(ch if ch.isalnum() or ch in "-_." else f"~{ord(ch):x}~" for ch in session_id)


def _contents(entries: Sequence[Entry]) -> str:
    rows = "".join(
        f'<li><a href="#{quote(_anchor(entry.id))}"><bdi>{_line(entry.title or entry.id)}</bdi></a> '
        f"<small><bdi>{_line(entry.user_id)}</bdi> · {moment(entry.updated)}</small></li>\n"
        for entry in entries
    )
    return f"<nav>\n<h1>{len(entries)} sessions</h1>\n<ol>\n{rows}</ol>\n</nav>\n"


def _folded(name: str, preview: str, value: str, when: str = "") -> str:
    """Something that is opened by a click."""
    begin = " ".join(preview[: 4 * PREVIEW].split())
    short = begin if len(begin) <= PREVIEW and len(preview) <= 4 * PREVIEW else begin[:PREVIEW] + "…"
    shown = f" <code>{escape(short)}</code>" if short else ""
    return (
        f"<details><summary><b><bdi>{_line(name)}</bdi></b>{shown}{when}</summary>"
        f'<pre dir="auto">{escape(value)}</pre></details>\n'
    )


def _more(said: Event) -> str:
    return "\n" + value_shown(msgspec.json.encode(said.extra)) if said.extra else ""


def _chips(said: AgentResponse) -> str:
    """What an answer tells about itself."""
    told = [f"phase {said.phase_reached}"] if said.phase_reached else []
    if said.seed_id:
        told.append(f"seed {said.seed_id}")
    if said.evaluation_passed is not None:
        told.append("passed" if said.evaluation_passed else "did not pass")
    return "".join(f' <span class="chip"><bdi>{_line(each)}</bdi></span>' for each in told)
