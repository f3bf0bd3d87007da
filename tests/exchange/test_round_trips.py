"""``jsonl`` and ``json`` lose nothing: what is imported is the session that was exported."""

from __future__ import annotations

import asyncio
import io
import shutil
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from exchanging import GOLDEN, VARIETY, engine_of, exported, imported, sessions_of, store_with
from hypothesis import given, settings
from hypothesis import strategies as st

from servers import postgres, valkey
from statestore import AsyncStateStore, CorruptSession, InvalidValue, SessionConflict, SessionNotFound, StateStore
from statestore.conformance.changes import appended, created, truncated, user
from statestore.copying import windows
from statestore.engine import NewRecord
from statestore.exchange import (
    FORMATS,
    Format,
    async_export_sessions,
    async_import_sessions,
    export_sessions,
    gathering,
)
from statestore.host import step

LOSSLESS: tuple[Format, ...] = ("jsonl", "json")
TEXTS = st.text(st.characters(exclude_categories=("Cs",)))
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("format", LOSSLESS)
def test_every_kind_of_session_comes_back_as_it_was(format: Format) -> None:
    source, target = store_with(*VARIETY), store_with()
    fates = [item.fate for item in imported(target, exported(source, format=format))]
    assert fates == ["imported"] * len(VARIETY)
    assert sessions_of(target) == sessions_of(source)
    assert exported(target, format=format) == exported(source, format=format)


@pytest.mark.parametrize("format", LOSSLESS)
def test_files_of_the_rust_program_come_back_byte_for_byte(format: Format, tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "sessions", tmp_path / "source" / "sessions")
    with (
        StateStore.open(f"file:{tmp_path / 'source'}", read_only=True) as source,
        StateStore.open(f"sqlite:{tmp_path / 'between.db'}") as between,
        StateStore.open(f"file:{tmp_path / 'target'}") as target,
    ):
        imported(between, exported(source, format=format))
        imported(target, exported(between, format=format))
    files = sorted((GOLDEN / "sessions").iterdir())
    assert len(files) == 6
    for file in files:
        assert (tmp_path / "target" / "sessions" / file.name).read_bytes() == file.read_bytes()


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(["user", "agent", "tool"]), TEXTS, VALUES), max_size=6), TEXTS, VALUES)
def test_any_text_and_any_value_comes_back(said: list[tuple[str, str, object]], title: str, value: object) -> None:
    with StateStore.open("memory:") as source, StateStore.open("memory:") as target:
        session = source.get_or_create_session("alice", "s")
        session.metadata = {"title": title, "value": value}
        for kind, text, data in said:
            if kind == "user":
                session.add_user_message(text)
            elif kind == "agent":
                session.add_agent_response(text)
            else:
                session.add_event("tool", [text, data])
        source.save_session(session)
        for format in LOSSLESS:
            imported(target, exported(source, format=format))
            assert sessions_of(target) == sessions_of(source)
        for readable in ("markdown", "html", "openai"):
            exported(source, format=readable).decode()


@pytest.mark.parametrize("format", LOSSLESS)
def test_a_long_session_in_parts_comes_back_whole(format: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "WINDOW_RECORDS", 10)
    numbers = [*range(1, 90), *range(500, 520), 100_000]
    source = store_with(created("long", *(user(f"u{n}", n % 7, seq=n) for n in numbers), next_seq=100_050))
    target = store_with()
    assert len(list(export_sessions(source, format=format))) > 10
    imported(target, exported(source, format=format))
    assert sessions_of(target) == sessions_of(source)


def test_what_is_appended_meanwhile_is_not_exported_and_what_was_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "WINDOW_RECORDS", 10)
    source, target = store_with(created("s", *(user(f"u{n}", n) for n in range(1, 96)))), store_with()
    before = sessions_of(source)
    chunks = export_sessions(source)
    text = next(chunks) + next(chunks)
    step(engine_of(source).commit([appended("s", user("late", 200))]))
    imported(target, text + b"".join(chunks))
    assert sessions_of(target) == before


def test_a_session_that_is_rewound_meanwhile_is_not_exported_as_a_mixture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "WINDOW_RECORDS", 10)
    source = store_with(created("s", *(user(f"u{n}", n) for n in range(1, 101))))
    chunks = export_sessions(source)
    next(chunks), next(chunks)
    step(engine_of(source).commit([truncated("s", 50)]))
    step(engine_of(source).commit([appended("s", *(user(f"new{n}", n) for n in range(200, 260)))]))
    with pytest.raises(SessionConflict, match="session s was rewound"):
        list(chunks)


def test_a_long_session_is_exported_in_constant_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "WINDOW_BYTES", 1 << 16)
    monkeypatch.setattr(gathering, "WINDOW_BYTES", 1 << 16)
    source = store_with(created("s", *(user("x" * 10_000, n) for n in range(1, 401))))
    for format in ("jsonl", "json", "markdown", "html", "openai"):
        assert max(map(len, export_sessions(source, format=format))) < 200_000


def test_named_sessions_come_in_the_order_they_were_named_and_once() -> None:
    store = store_with(*VARIETY)
    lines = exported(store, "kept", "a", "kept").splitlines()
    assert [line for line in lines if line.startswith(b'{"end"')] == [
        b'{"end":"kept","records":1}',
        b'{"end":"a","records":2}',
    ]


def test_joined_files_are_a_file() -> None:
    source, target = store_with(*VARIETY), store_with()
    imported(target, exported(source, "odd", "a") + exported(source, "kept", "gap", "none"))
    assert sessions_of(target) == sessions_of(source)


def test_what_is_not_there_and_what_is_no_format_are_errors() -> None:
    store = store_with(*VARIETY)
    with pytest.raises(SessionNotFound, match="nobody"):
        exported(store, "nobody")
    with pytest.raises(InvalidValue, match="markdown, html, jsonl, json, openai"):
        exported(store, format="docx")


@pytest.mark.parametrize("ids", ["a", b"a", 5, [["a"]], [5], ["a", None]])
def test_what_is_no_list_of_ids_is_refused_at_once(ids: Any) -> None:
    with pytest.raises(InvalidValue, match="ids is a list of session ids"):
        export_sessions(store_with(*VARIETY), ids)


@pytest.mark.parametrize("server", [postgres, valkey])
def test_servers_keep_all_of_it_too(server: ModuleType) -> None:
    source = store_with(*VARIETY)
    name = f"exchange{time.time_ns()}"
    with StateStore.open(f"{server.shared_url()}?{'schema' if server is postgres else 'prefix'}={name}") as target:
        assert {item.fate for item in imported(target, exported(source))} == {"imported"}
        assert {item.fate for item in imported(target, exported(source, format="json"))} == {"skipped"}
        for format in FORMATS:
            ids = [change.id for change in VARIETY]
            assert exported(target, *ids, format=format) == exported(source, *ids, format=format)


def test_sessions_that_cannot_be_read_are_told_and_left_out_of_an_export_of_all() -> None:
    store = store_with(*VARIETY, created("damaged", NewRecord("user", b'{"content":1}', 0)))
    told: list[str] = []
    text = b"".join(export_sessions(store, unreadable=lambda session_id, error: told.append(f"{session_id}: {error}")))
    assert text == exported(store_with(*VARIETY))
    assert len(told) == 1
    assert told[0].startswith("damaged: session damaged cannot be read")
    for ids in (None, ["damaged"]):
        with pytest.raises(CorruptSession, match="damaged"):
            list(export_sessions(store, ids))


def test_event_loops_export_and_import_the_same() -> None:
    async def moved() -> tuple[bytes, bytes]:
        async with (
            AsyncStateStore.open(engine_of(store_with(*VARIETY))) as source,
            AsyncStateStore.open("memory:") as target,
        ):
            text = b"".join([chunk async for chunk in async_export_sessions(source)])
            assert [item.fate async for item in async_import_sessions(target, io.BytesIO(text))] == ["imported"] * 5
            return text, b"".join([chunk async for chunk in async_export_sessions(target)])

    one, other = asyncio.run(moved())
    assert one == other == exported(store_with(*VARIETY))
