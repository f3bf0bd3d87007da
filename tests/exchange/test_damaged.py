"""Exports of damaged stores: what cannot be read is told and left out wholly, and everything else is exported."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from exchanging import VARIETY, engine_of, exported, imported, store_with

from statestore import CorruptData, CorruptSession, InvalidName, Session, SessionNotFound, StateStore
from statestore.conformance.changes import created, truncated, user
from statestore.engine import DeleteSession, NewRecord
from statestore.exchange import FORMATS, Format, export_sessions, gathering
from statestore.host import step

DAMAGED = created("damaged", NewRecord("user", b'{"content":1}', 0))


class Told:
    """What an export tells while it goes on."""

    def __init__(self) -> None:
        self.left_out: dict[str, CorruptData | SessionNotFound] = {}
        self.done: list[str] = []

    def export(self, store: StateStore, *ids: str, format: Format = "jsonl") -> bytes:
        return b"".join(
            export_sessions(store, list(ids) or None, format=format, unreadable=self.note, done=self.done.append)
        )

    def note(self, session_id: str, error: CorruptData | SessionNotFound) -> None:
        assert session_id not in self.left_out
        self.left_out[session_id] = error


@pytest.fixture
def torn(tmp_path: Path) -> Iterator[StateStore]:
    """A directory with a session that can be read, one that cannot, and one whose name breaks the rule."""
    with StateStore.open(f"file:{tmp_path / 'd'}", durability="relaxed") as store:
        session = store.get_or_create_session("alice", "good")
        session.add_user_message("hello")
        store.save_session(session)
        (tmp_path / "d" / "sessions" / "torn.json").write_text("{")
        (tmp_path / "d" / "sessions" / "a..b.json").write_text("{}")
        yield store


@pytest.mark.parametrize("format", FORMATS)
def test_sessions_that_no_listing_shows_are_told_and_left_out(torn: StateStore, format: Format) -> None:
    told = Told()
    assert told.export(torn, format=format) == exported(torn, "good", format=format)
    assert set(told.left_out) == {"torn", "a..b"}
    assert "torn.json is not a session" in str(told.left_out["torn"])
    assert told.done == ["good"]


@pytest.mark.parametrize("format", FORMATS)
def test_sessions_that_no_listing_shows_are_an_error_before_anything_is_exported(
    torn: StateStore, format: Format
) -> None:
    with pytest.raises(CorruptSession):
        next(export_sessions(torn, format=format))


def test_a_named_session_is_exported_whatever_else_is_damaged(torn: StateStore) -> None:
    assert b'"good"' in exported(torn, "good")
    with pytest.raises(CorruptSession, match="torn"):
        exported(torn, "torn")
    with pytest.raises(InvalidName):
        exported(torn, "a..b")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "damage",
    [
        """UPDATE records SET body = '{"content":' WHERE place = (1 << 32) | 2400""",
        """UPDATE records SET body = '{"content":1}' WHERE place = (1 << 32) | 2400""",
        """UPDATE records SET body = '{"content":"a","timestamp":"then"}' WHERE place = (1 << 32) | 2400""",
        "INSERT INTO extras VALUES (1, '[', NULL)",
        "INSERT INTO extras VALUES (1, '[]', NULL)",
        "INSERT INTO extras VALUES (1, '{}', x'7b')",
        "INSERT INTO extras VALUES (1, '{}', x'7b2261223a22ff227d')",
        "UPDATE sessions SET updated = 'then' WHERE id = 'long'",
        "UPDATE sessions SET created = 'then' WHERE id = 'long'",
    ],
)
def test_of_a_long_session_that_is_damaged_anywhere_nothing_is_exported(
    tmp_path: Path, damage: str, format: Format
) -> None:
    with StateStore.open(tmp_path / "s.db", durability="relaxed") as store:
        long = Session("alice", "long")
        for number in range(2500):
            long.add_user_message(f"message {number}")
        store.save_session(long)
        for name in ("a", "z"):
            store.get_or_create_session("alice", name)
    with sqlite3.connect(tmp_path / "s.db") as connection:
        assert connection.execute(damage).rowcount == 1
    connection.close()
    with StateStore.open(tmp_path / "s.db", read_only=True) as store:
        told = Told()
        text = told.export(store, format=format)
        assert (set(told.left_out), sorted(told.done)) == ({"long"}, ["a", "z"])
        assert b"message 0" not in text.replace(b"<bdi>message 0</bdi></a>", b"")  # where the contents name it
        with pytest.raises(CorruptSession, match="long"):
            list(export_sessions(store, format=format))


@pytest.mark.parametrize("format", FORMATS)
def test_named_sessions_that_cannot_be_exported_are_told_to_who_asks(format: Format) -> None:
    store, told = store_with(*VARIETY, DAMAGED), Told()
    assert told.export(store, "damaged", "a", "gone", "odd", format=format) == exported(
        store, "a", "odd", format=format
    )
    assert {name: type(error) for name, error in told.left_out.items()} == {
        "damaged": CorruptSession,
        "gone": SessionNotFound,
    }
    for name, error in told.left_out.items():
        with pytest.raises(type(error), match=name):
            exported(store, "a", name, format=format)


def test_a_long_session_that_is_deleted_while_it_is_read_is_left_out_of_an_export_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gathering, "WINDOW_RECORDS", 10)
    store, told = store_with(created("s", *(user(f"u{n}", n) for n in range(1, 101))), *VARIETY), Told()
    engine = engine_of(store)
    plain_read = engine.read_session

    async def read_and_delete(session_id: str, **bounds: int | None) -> object:
        found = await plain_read(session_id, **bounds)
        if session_id == "s" and bounds.get("after") == 50:
            await engine.commit([DeleteSession("s")])
        return found

    monkeypatch.setattr(engine, "read_session", read_and_delete)
    assert told.export(store) == exported(store_with(*VARIETY))
    assert told.left_out == {}


def test_a_session_that_is_deleted_after_a_part_of_it_was_exported_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "WINDOW_RECORDS", 10)
    store = store_with(created("s", *(user(f"u{n}", n) for n in range(1, 101))))
    chunks = export_sessions(store, unreadable=Told().note)
    next(chunks), next(chunks)
    step(engine_of(store).commit([truncated("s", 50)]))
    step(engine_of(store).commit([DeleteSession("s")]))
    with pytest.raises(SessionNotFound, match="session s was deleted while"):
        list(chunks)


def test_what_is_left_of_a_damaged_store_can_be_imported(torn: StateStore) -> None:
    target = store_with()
    assert [item.where for item in imported(target, Told().export(torn))] == ["session good"]
