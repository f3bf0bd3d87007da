"""What broke once, found by attacking it: each stays mended."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from statestore import (
    AgentResponse,
    AsyncStateStore,
    CorruptData,
    CorruptSession,
    Event,
    Session,
    SessionConflict,
    StateStore,
    StoreUnavailable,
    UserMessage,
)
from statestore.engine import ChangeSession
from statestore.engines.files.image import ImageCache, SessionImage
from statestore.engines.memory import MemoryEngine
from statestore.host import step

BARE: dict[str, Any] = {
    "id": "a",
    "user_id": "u",
    "created_at": "2026-01-01T00:00:00Z",
    "updated_at": "2026-01-01T00:00:00Z",
}


def put(root: Path, session: dict[str, Any]) -> Path:
    path = root / "sessions" / f"{session['id']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(session, indent=2), encoding="utf-8")
    return path


def test_a_file_without_its_lists_gets_them_once(tmp_path: Path) -> None:
    put(tmp_path, BARE | {"metadata": {}})
    with StateStore.open(tmp_path) as store:
        for turn in range(3):
            session = store.load_session("a")
            assert session is not None
            session.add_user_message(f"m{turn}")
            session.add_agent_response(f"r{turn}")
            store.save_session(session)
    with StateStore.open(tmp_path) as store:
        contents = [getattr(entry.record, "content", "") for entry in store.timeline("a")]
        assert contents == ["m0", "r0", "m1", "r1", "m2", "r2"]


@pytest.mark.parametrize("last", ["active_seed_id", "project_id"])
@pytest.mark.parametrize("first", ["", "parent_session_id"])
def test_an_optional_field_at_either_end_of_a_file_can_be_unset(tmp_path: Path, first: str, last: str) -> None:
    session = ({first: "x"} if first else {}) | BARE | {"metadata": {}, last: "x"}
    path = put(tmp_path, session)
    with StateStore.open(tmp_path) as store:
        loaded = store.load_session("a")
        assert loaded is not None
        for name in filter(None, (first, last)):
            setattr(loaded, name, None)
        store.save_session(loaded)
    said = json.loads(path.read_text(encoding="utf-8"))
    assert said.pop("updated_at") > BARE["updated_at"]
    assert said == {key: value for key, value in BARE.items() if key != "updated_at"} | {"metadata": {}}


def test_what_is_inserted_while_a_rewrite_is_under_way_is_saved_next(tmp_path: Path) -> None:
    async def work() -> list[str]:
        async with AsyncStateStore.open(tmp_path) as store:
            session = await store.get_or_create_session("u", "s")
            session.add_user_message("secret")
            await store.save_session(session)
            session.user_messages[0] = UserMessage("redacted")
            saving = asyncio.create_task(store.save_session(session))
            await asyncio.sleep(0)
            session.user_messages.insert(1, UserMessage("important"))
            session.add_user_message("typo")
            session.user_messages.pop()
            await saving
            await store.save_session(session)
            assert [entry.kind for entry in session.timeline] == ["user", "user"]
            loaded = await store.load_session("s")
            assert loaded is not None
            return [message.content for message in loaded.user_messages]

    assert asyncio.run(work()) == ["redacted", "important"]


def test_an_object_is_not_saved_in_two_loops_at_once(tmp_path: Path) -> None:
    with StateStore.open(tmp_path) as plain:
        session = plain.get_or_create_session("u", "s")
        outcomes: list[str] = []

        def work(name: str) -> None:
            async def write() -> None:
                async with AsyncStateStore.open(tmp_path) as store:
                    for number in range(20):
                        session.add_user_message(f"{name}{number}")
                        try:
                            await store.save_session(session)
                        except SessionConflict:
                            outcomes.append("refused")

            asyncio.run(write())

        threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        plain.save_session(session)
        said = [getattr(entry.record, "content", "") for entry in plain.timeline("s")]
        assert sorted(said) == sorted(f"{name}{number}" for name in "abc" for number in range(20))


def test_opening_that_fails_leaves_no_thread(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")

    async def fail() -> None:
        with pytest.raises(StoreUnavailable):
            await AsyncStateStore.open(tmp_path / "file")

    before = set(threading.enumerate())
    asyncio.run(fail())
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.parametrize(
    "notes",
    [
        {"next": 1, "seqs": [[5, 6], [], []]},
        {"next": 9, "seqs": [[3, 1], [], []]},
        {"next": 9, "seqs": [[2, 2], [], []]},
        {"next": 9, "seqs": [[1, 2, 3, 4, 5], [], []]},
    ],
)
def test_numbers_that_cannot_be_are_void_and_nothing_is_lost(tmp_path: Path, notes: dict[str, Any]) -> None:
    messages = [{"content": str(n), "timestamp": f"2026-01-01T00:00:0{n}Z"} for n in (1, 2, 3)]
    put(tmp_path, BARE | {"user_messages": messages, "agent_responses": [], "metadata": {"statestore": notes}})
    with StateStore.open(tmp_path) as store:
        session = store.load_session("a")
        assert session is not None
        session.user_messages.pop(0)
        store.save_session(session)
        assert [getattr(entry.record, "content", "") for entry in store.timeline("a")] == ["2", "3"]


@pytest.mark.parametrize("record", [UserMessage("new"), AgentResponse("new"), Event("note", "new")])
def test_what_is_added_to_lists_that_were_cut_by_hand_comes_last(
    tmp_path: Path, record: UserMessage | AgentResponse | Event
) -> None:
    """The notes still number the messages that are gone, and a new one must not get such a number."""
    responses = [{"content": str(n), "timestamp": f"2026-01-01T00:00:0{n}Z"} for n in (1, 2)]
    notes = {"next": 9, "seqs": [[1], [2], []]}
    put(tmp_path, BARE | {"user_messages": [], "agent_responses": responses, "metadata": {"statestore": notes}})
    with StateStore.open(tmp_path) as store:
        before = [(entry.seq, entry.record) for entry in store.timeline("a")]
        (seq,) = store.append("a", record)
        after = [(entry.seq, entry.record) for entry in store.timeline("a")]
        assert after == [*before, (seq, record)]


@pytest.mark.parametrize("users", ['[{"content":"hi","timestamp":"2026-01-01T00:00:01Z"}]', "[ ]", "[\n]", "[\n  ]"])
@pytest.mark.parametrize("record", [UserMessage("new"), AgentResponse("new"), Event("note", "new")])
def test_what_is_added_to_a_list_that_is_laid_out_oddly_is_there(
    tmp_path: Path, users: str, record: UserMessage | AgentResponse | Event
) -> None:
    path = put(tmp_path, BARE | {"user_messages": [], "agent_responses": [], "metadata": {}})
    path.write_text(path.read_text().replace('"user_messages": []', f'"user_messages": {users}'))
    with StateStore.open(tmp_path) as store:
        before = [entry.record for entry in store.timeline("a")]
        store.append("a", record)
    with StateStore.open(tmp_path) as store:
        assert [entry.record for entry in store.timeline("a")] == [*before, record]
        assert store.check() == []


FIELDS = ("active_seed_id", "active_persona_id", "project_id", "parent_session_id")


@pytest.mark.parametrize("before", range(16))
@pytest.mark.parametrize("place", ["first", "last", "usual"])
def test_any_fields_come_and_go_in_one_save(tmp_path: Path, before: int, place: str) -> None:
    had = {name: "old" for bit, name in enumerate(FIELDS) if before >> bit & 1}
    lists: dict[str, Any] = {"user_messages": [], "agent_responses": []}
    names, moments = dict(list(BARE.items())[:2]), dict(list(BARE.items())[2:])
    layouts = {"first": had | BARE | lists, "last": BARE | lists | had, "usual": names | lists | had | moments}
    for after in range(16):
        put(tmp_path, layouts[place] | {"metadata": {}})
        has = {name: "new" if after >> bit & 1 else None for bit, name in enumerate(FIELDS)}
        with StateStore.open(tmp_path, durability="relaxed") as store:
            session = store.load_session("a")
            assert session is not None
            for name, value in has.items():
                setattr(session, name, value)
            session.add_user_message("with it")
            store.save_session(session)
        with StateStore.open(tmp_path) as store:
            found = store.load_session("a")
            assert found is not None
            assert {name: getattr(found, name) for name in FIELDS} == has
            assert [message.content for message in found.user_messages] == ["with it"]


def test_an_edit_of_history_is_no_conflict_with_somebody_who_only_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that notes late what it read before the write must not make the present version look old."""
    keep, has_read, goes_on = ImageCache.keep, threading.Event(), threading.Event()

    def keep_late(self: ImageCache, session_id: str, image: SessionImage) -> None:
        if threading.current_thread().name == "reader":
            has_read.set()
            assert goes_on.wait(30)
        keep(self, session_id, image)

    with StateStore.open(tmp_path) as store, StateStore.open(tmp_path) as other:
        store.save_session(Session("u", "a"))
        other.append("a", UserMessage("one"))  # so that this one must read it anew
        monkeypatch.setattr(ImageCache, "keep", keep_late)
        reader = threading.Thread(target=store.load_session, args=("a",), name="reader")
        reader.start()
        assert has_read.wait(30)
        session = store.load_session("a")
        assert session is not None
        for text in ("two", "three"):
            session.user_messages[0] = UserMessage(text)
            store.save_session(session)
            if text == "two":
                goes_on.set()
                reader.join()
                store.load_session("a")
        found = store.load_session("a")
        assert found is not None
        assert found.user_messages[0].content == "three"


def test_a_check_reads_what_is_there_and_not_what_is_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StateStore.open(tmp_path) as store:
        store.save_session(Session("u", "a"))
        monkeypatch.setattr(ImageCache, "get", lambda *_: pytest.fail("it asked what is remembered"))
        assert store.check() == []
        (tmp_path / "sessions" / "a.json").write_bytes(b"{}")
        assert [problem.where for problem in store.check()] == ["sessions/a.json"]
        (moved,) = store.check(repair=True)
        assert ".statestore/aside" in moved.advice


def test_a_check_looks_into_the_trash(tmp_path: Path) -> None:
    with StateStore.open(tmp_path) as store:
        store.save_session(Session("u", "a"))
        store.delete_session("a", trash_hours=1)
        (path,) = (tmp_path / ".statestore" / "trash").glob("*.json")
        assert store.check() == []
        path.write_text("{broken", encoding="utf-8")
        assert [problem.where for problem in store.check()] == [f".statestore/trash/{path.name}"]


def test_what_a_repair_tells_can_be_printed(tmp_path: Path) -> None:
    with StateStore.open(tmp_path) as store:
        store.save_session(Session("u", "a"))
        Path(os.fsdecode(os.fsencode(tmp_path / "sessions") + b"/\xff.json")).write_bytes(b"{}")
        told = [*store.check(), *store.check(repair=True)]
        assert told
        for problem in told:
            assert f"{problem.where} {problem.what} {problem.advice}".encode()


@pytest.mark.parametrize("kind", ["user", "agent"])
def test_an_event_that_somebody_made_a_message_is_told_and_nothing_is_thrown_away(tmp_path: Path, kind: str) -> None:
    with StateStore.open(tmp_path) as store:
        store.save_session(Session("u", "a"))
        store.append("a", Event("tool", 1))
    path = tmp_path / "sessions" / "a.json"
    path.write_text(path.read_text().replace('"tool"', f'"{kind}"'))
    with StateStore.open(tmp_path) as store:
        assert len(store.check()) == 1
        for act in (store.load_session, lambda name: store.delete_session(name, trash_hours=1)):
            with pytest.raises(CorruptSession):
                act("a")
    assert path.exists()


def test_a_key_is_known_though_an_earlier_record_was_cut_by_hand(tmp_path: Path) -> None:
    with StateStore.open(tmp_path) as store:
        store.save_session(Session("u", "a"))
        for number in range(4):
            store.append("a", UserMessage(str(number)), keys=[f"key-{number}"])
    path = tmp_path / "sessions" / "a.json"
    session = json.loads(path.read_text(encoding="utf-8"))
    del session["user_messages"][0]
    put(tmp_path, session)
    with StateStore.open(tmp_path) as store:
        for number in (0, 1, 3):
            store.append("a", UserMessage(f"{number} again"), keys=[f"key-{number}"])
        assert [entry.record.content for entry in store.timeline("a")] == ["1", "2", "3", "0 again"]  # type: ignore[union-attr]


@pytest.mark.parametrize("count", [0, 2])
def test_a_row_that_holds_no_record_or_several_is_told(tmp_path: Path, count: int) -> None:
    path = tmp_path / "state.db"
    with StateStore.open(path) as store:
        store.save_session(Session("u", "a"))
        store.append("a", UserMessage("one"))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE records SET body = CASE ? WHEN 0 THEN '' ELSE body || ',' || body END", (count,))
    connection.close()
    with StateStore.open(path) as store:
        assert any("it is not a record" in problem.what for problem in store.check())


def test_a_rewind_keeps_what_a_newer_release_noted(tmp_path: Path) -> None:
    path = put(tmp_path, BARE | {"metadata": {"statestore": {"future": [1]}}})
    with StateStore.open(tmp_path) as store:
        store.append("a", UserMessage("one"), UserMessage("two"))
        store.rewind_session("a", to=1)
    assert json.loads(path.read_text(encoding="utf-8"))["metadata"]["statestore"]["future"] == [1]


@pytest.mark.parametrize(
    "damage",
    [
        'UPDATE files SET entry = replace(entry, \'"id":"s"\', \'"id":"other"\')',
        'UPDATE files SET entry = replace(entry, \'"message_count":0\', \'"message_count":"no"\')',
        "UPDATE files SET entry = '[1]'",
        "UPDATE files SET entry = CAST(x'5bff5d' AS TEXT)",
        "PRAGMA writable_schema = ON;"
        "UPDATE sqlite_master SET name = CAST(x'b19f' AS TEXT), sql = 'CREATE nonsense' WHERE name = 'files'",
    ],
)
def test_a_damaged_index_is_rebuilt(tmp_path: Path, damage: str) -> None:
    with StateStore.open(tmp_path) as store:
        store.save_session(Session("u", "s"))
        file = tmp_path / "sessions" / "s.json"
        os.utime(file, ns=(1, 1))  # old enough for the index to trust
        store.list_sessions()
    with closing(sqlite3.connect(tmp_path / ".statestore" / "index.db")) as connection, connection:
        connection.executescript(damage)
    connection.close()
    for limit in (None, 10):
        with StateStore.open(tmp_path) as store:
            assert [summary.id for summary in store.list_sessions(limit=limit)] == ["s"]


def test_pipes_in_our_own_directory_hold_nobody_up(tmp_path: Path) -> None:
    StateStore.open(tmp_path).close()
    (tmp_path / ".statestore" / "locks" / "batches").unlink(missing_ok=True)
    os.mkfifo(tmp_path / ".statestore" / "locks" / "batches")
    with StateStore.open(tmp_path, read_only=True) as store:
        assert store.list_sessions() == []
    probe = next(path for path in (tmp_path / ".statestore").iterdir() if path.is_file())
    probe.unlink()
    os.mkfifo(probe)
    with pytest.raises(StoreUnavailable):
        StateStore.open(tmp_path)


def test_a_number_that_python_cannot_hold_is_shown_and_kept_and_told(tmp_path: Path) -> None:
    with StateStore.open(tmp_path / "state") as store:
        store.save_session(Session("alice", "s"))
        store.append("s", UserMessage("hello", extra={"weight": 0}))
        file = tmp_path / "state" / "sessions" / "s.json"
        file.write_bytes(file.read_bytes().replace(b'"weight": 0', b'"weight": 1e999'))
        session = store.load_session("s")
        assert session is not None
        (message,) = session.user_messages
        assert message.content == "hello"
        assert "1e999" in repr(message)
        with pytest.raises(CorruptData, match="cannot be decoded"):
            _ = message.extra
        session.add_user_message("more")
        store.save_session(session)
        assert b'"weight": 1e999' in file.read_bytes()


def test_metadata_that_are_not_unicode_are_told_as_a_corrupt_session() -> None:
    engine = MemoryEngine()
    with StateStore.open(engine) as store:
        store.get_or_create_session("alice", "one")
        step(engine.commit([ChangeSession("one", "2026-01-01T00:00:00Z", set_metadata={"title": b'"vi\xe3tim"'})]))
        session = store.load_session("one")
        assert session is not None
        with pytest.raises(CorruptSession, match="session one: its metadata"):
            session.set_metadata("colour", "blue")
