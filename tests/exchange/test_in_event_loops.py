"""Exports in event loops: making a text takes long, and the loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import io
import threading
import time
from collections.abc import Sequence

import pytest

from statestore import AgentResponse, AsyncStateStore, CorruptSession, Session, StateStore
from statestore.exchange import (
    FORMATS,
    Format,
    async_export_sessions,
    async_import_sessions,
    export_sessions,
    formats,
)
from statestore.exchange.formats import Writer
from statestore.exchange.gathering import Entry, Part
from statestore.stored import StoredRecord

LONG_AGO = 5.0
"""Seconds after which a loop that did nothing meanwhile is taken to stand still."""


def long_session(name: str) -> Session:
    session = Session("alice", name)
    for number in range(20):
        session.add_user_message(f"question {number}")
        session.add_agent_response(AgentResponse(f"# Answer {number}\n\n" + "some *words*, " * 20))
    session.set_metadata("notes", ["a note"] * 100)
    return session


class Patient:
    """Makes each text only when the loop has done something in the meantime."""

    def __init__(self, writer: Writer, loop: asyncio.AbstractEventLoop) -> None:
        self._writer = writer
        self._loop = loop
        self.has_contents = writer.has_contents
        self.texts: list[str] = []

    def opening(self, entries: Sequence[Entry]) -> bytes:
        return self._made("opening", self._writer.opening(entries))

    def session(self, part: Part) -> bytes:
        return self._made("session", self._writer.session(part))

    def records(self, records: Sequence[StoredRecord]) -> bytes:
        return self._made("records", self._writer.records(records))

    def session_end(self) -> bytes:
        return self._writer.session_end()

    def closing(self) -> bytes:
        return self._writer.closing()

    def _made(self, what: str, text: bytes) -> bytes:
        goes_on = threading.Event()
        self._loop.call_soon_threadsafe(goes_on.set)
        assert goes_on.wait(LONG_AGO), f"the loop stands still while the {what} of an export is made"
        self.texts.append(what)
        return text


@pytest.mark.parametrize("format", FORMATS)
def test_the_loop_goes_on_while_a_text_is_made(monkeypatch: pytest.MonkeyPatch, format: Format) -> None:
    plain = formats.writer_for(format)

    async def exported() -> tuple[bytes, list[str]]:
        patient = Patient(plain, asyncio.get_running_loop())
        monkeypatch.setattr("statestore.exchange.calling.writer_for", lambda name: patient)
        async with AsyncStateStore.open("memory:") as store:
            await store.save_session(long_session("s"))
            return b"".join([chunk async for chunk in async_export_sessions(store, format=format)]), patient.texts

    text, made = asyncio.run(exported())
    assert made[0] == "opening"
    assert set(made) == {"opening", "session", "records"}
    assert b"Answer 19" in text


def test_what_is_made_in_a_thread_is_what_plain_code_gets_and_the_thread_ends() -> None:
    before = threading.active_count()
    with StateStore.open("memory:") as plain:
        plain.save_session(long_session("s"))
        texts = {format: b"".join(export_sessions(plain, format=format)) for format in FORMATS}
        lossless = texts["jsonl"]

    async def exported() -> dict[str, bytes]:
        async with AsyncStateStore.open("memory:") as store:
            assert [item.fate async for item in async_import_sessions(store, io.BytesIO(lossless))] == ["imported"]
            return {
                format: b"".join([chunk async for chunk in async_export_sessions(store, format=format)])
                for format in FORMATS
            }

    assert asyncio.run(exported()) == texts
    deadline = time.monotonic() + LONG_AGO
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before


def test_an_error_of_a_text_is_raised_to_who_exports(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(markdown: str) -> str:
        raise ValueError("this cannot be shown")

    monkeypatch.setattr("statestore.exchange.html.html_of", fail)

    async def exported() -> None:
        async with AsyncStateStore.open("memory:") as store:
            await store.save_session(long_session("s"))
            with pytest.raises(CorruptSession, match="session s cannot be read: this cannot be shown"):
                _ = [chunk async for chunk in async_export_sessions(store, format="html")]

    asyncio.run(exported())
