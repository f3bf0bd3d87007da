"""Compacting a database: what was deleted is gone, to the last byte, and nothing else is."""

from __future__ import annotations

import random
import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from sqlite_hooks import hooked

from children import Child, Tell, in_child
from disks import no_file_above
from statestore import AgentResponse, Notice, ReadOnlyStore, StateStore, StoreUnavailable, UserMessage
from statestore.engines.sqlite import compacting

SECRETS = re.compile(rb"(alice|bob)secret[0-9]+")


def _said_by(user: str, chance: random.Random) -> str:
    return " ".join(f"{user}secret{chance.randrange(10**9)}" for _ in range(chance.choice([1, 9, 60, 400])))


def _fill(store: StateStore, *, sessions: int = 20, turns: int = 300) -> None:
    """Sessions of alice and bob that grow in turns, so that their records lie in pages that were split."""
    chance = random.Random(5)
    owners = {f"s{number}": ("alice", "bob")[number % 2] for number in range(sessions)}
    for session_id, user in owners.items():
        store.get_or_create_session(user, session_id)
    for turn in range(turns):
        session_id, user = chance.choice(list(owners.items()))
        store.append(session_id, UserMessage(_said_by(user, chance)), AgentResponse(_said_by(user, chance)))
        if turn % 50 == 0:
            store.search_sessions("anything")
    store.save_json("notes", "n", {"kept": True})


def _everything_in(store: StateStore) -> list[object]:
    return [(summary, list(store.timeline(summary.id))) for summary in store.list_sessions()]


def _users_in(directory: Path) -> set[bytes]:
    """Whose words are in any of the files."""
    return {match.group(1) for file in directory.iterdir() for match in SECRETS.finditer(file.read_bytes())}


def test_nothing_of_an_erased_user_is_left_in_any_file(tmp_path: Path) -> None:
    with StateStore.open(tmp_path / "state.db", durability="relaxed") as store:
        _fill(store)
        store.delete_session("s2", trash_hours=1)
        store.erase_user("alice")
        kept = _everything_in(store)
        assert _users_in(tmp_path) == {b"alice", b"bob"}
        store.compact()
        assert _users_in(tmp_path) == {b"bob"}
        assert _everything_in(store) == kept
        assert len(kept) == 10
        assert store.load_json("notes", "n") == {"kept": True}
        assert store.check() == []


def test_the_room_of_what_was_deleted_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with StateStore.open(path, durability="relaxed") as store:
        _fill(store)
        store.erase_user("alice")
        store.compact()
        assert store.compact() == 0
        before = path.stat().st_size
        store.erase_user("bob")
        freed = store.compact()
        assert path.stat().st_size < before / 10
        assert freed > before * 9 / 10


def test_other_stores_go_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with StateStore.open(path, durability="relaxed") as store, StateStore.open(path, durability="relaxed") as other:
        _fill(store, sessions=4, turns=40)
        session = other.load_session("s1")
        assert session is not None
        other.append("s1", UserMessage("before"))
        cursor = other.change_cursor()
        store.delete_session("s0")
        store.compact()
        assert [(notice.what, notice.session_id) for notice in _told(other, cursor)] == [("deleted", "s0")]
        session.add_user_message("findable after")
        other.save_session(session)
        other.append("s1", UserMessage("last"))
        assert [hit.session_id for hit in other.search_sessions("findable")] == ["s1"]
        loaded = store.load_session("s1")
        assert loaded is not None
        assert [message.content for message in loaded.user_messages][-3:] == ["before", "findable after", "last"]


def _told(store: StateStore, cursor: str) -> list[Notice]:
    watch = store.watch(after=cursor)
    try:
        return [next(watch)]
    finally:
        watch.close()


def test_a_reader_that_holds_on_to_the_log_is_complained_of_and_keeps_what_it_sees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.db"
    monkeypatch.setattr(compacting, "PATIENCE_MS", 100)
    with StateStore.open(path, durability="relaxed") as store, closing(sqlite3.connect(path)) as reader:
        _fill(store, sessions=4, turns=40)
        reader.execute("BEGIN")
        (before,) = reader.execute("SELECT count(*) FROM records").fetchone()
        store.erase_user("alice")
        size = (tmp_path / "state.db-wal").stat().st_size
        for _ in range(3):
            with pytest.raises(StoreUnavailable, match=r"reading from its log for 0\.1 s, and nothing was compacted"):
                store.compact()
        assert (tmp_path / "state.db-wal").stat().st_size == size
        assert reader.execute("SELECT count(*) FROM records").fetchone() == (before,)
        store.append("s1", UserMessage("meanwhile"))
        reader.execute("ROLLBACK")
        store.compact()
    assert _users_in(tmp_path) == {b"bob"}


def test_readers_and_writers_who_never_pause_do_not_keep_a_store_from_being_compacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.db"
    monkeypatch.setattr(compacting, "PATIENCE_MS", 30_000)  # a check takes its time on a busy machine
    with StateStore.open(path, durability="relaxed") as store:
        _fill(store, sessions=4, turns=40)
        store.erase_user("alice")

        def read(tell: Tell) -> None:
            with StateStore.open(path, durability="relaxed") as other:
                tell("reading")
                while True:
                    other.check()

        def write(tell: Tell) -> None:
            with StateStore.open(path, durability="relaxed") as other:
                tell("writing")
                while True:
                    other.append("s1", UserMessage("again"))

        children = [Child(read), Child(read), Child(write)]
        try:
            for child in children:
                child.wait_for_words()
            for _ in range(3):
                store.compact()
        finally:
            for child in children:
                child.kill()
        assert [child.ended().was_killed for child in children] == [True] * 3
        assert store.check() == []
    assert _users_in(tmp_path) == {b"bob"}


def test_without_room_everything_is_as_it_was_and_the_log_is_short(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with StateStore.open(path, durability="relaxed") as store:
        for number in range(40):
            store.save_markdown("notes", str(number), str(number) * 50_000)

    def work(_: Tell) -> None:
        with StateStore.open(path) as store, StateStore.open(path) as other:
            with no_file_above(path.stat().st_size), pytest.raises(StoreUnavailable):
                store.compact()
            assert (tmp_path / "state.db-wal").stat().st_size == 0
            assert len(other.list_category("notes")) == 40
            store.delete_category("notes")
            assert store.compact() > 1_000_000

    in_child(work)
    with StateStore.open(path) as store:
        assert store.check() == []


def test_whoever_is_interrupted_leaves_no_connection_with_another_patience(tmp_path: Path) -> None:
    interrupts: list[str] = []

    def interrupt(statement: str) -> None:
        if statement == f"PRAGMA busy_timeout={compacting.PATIENCE_MS}" and not interrupts:
            interrupts.append(statement)
            raise KeyboardInterrupt

    with hooked(after=interrupt) as made, StateStore.open(tmp_path / "state.db", durability="relaxed") as store:
        _fill(store, sessions=2, turns=3)
        with pytest.raises(KeyboardInterrupt):
            store.compact()
        assert {_patience_of(connection) for connection in made} <= {None, 30_000}


def _patience_of(connection: sqlite3.Connection) -> int | None:
    """The milliseconds that a connection waits for others; ``None`` if it was closed."""
    try:
        return connection.execute("PRAGMA busy_timeout").fetchone()[0]
    except sqlite3.ProgrammingError:
        return None


DAMAGE = {
    "its list of parts": "UPDATE words_data SET block = x'00ff00ff00ff' WHERE id = 10",
    "a part": "UPDATE words_data SET block = zeroblob(30) WHERE id > 10",
    "all parts": "DELETE FROM words_data WHERE id > 10",
    "the texts": "DELETE FROM words_content",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_an_index_of_words_that_is_damaged_is_made_anew(
    damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "state.db"
    with StateStore.open(path, durability="relaxed") as store:
        _fill(store, sessions=4, turns=60)
        store.append("s1", UserMessage("findable"))
        store.search_sessions("anything")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(DAMAGE[damage])
    with StateStore.open(path, durability="relaxed") as store:
        store.erase_user("alice")
        store.compact()
        assert "index of words" in caplog.text
        assert _users_in(tmp_path) == {b"bob"}
        assert [hit.session_id for hit in store.search_sessions("findable")] == ["s1"]


@pytest.mark.parametrize("damage", ["its list of parts", "all parts"])
def test_a_search_makes_an_index_anew_that_is_seen_to_be_damaged(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with StateStore.open(path, durability="relaxed") as store:
        store.get_or_create_session("alice", "s")
        store.append("s", UserMessage("findable"))
        assert len(store.search_sessions("findable")) == 1
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(DAMAGE[damage])
    for read_only in (True, False, True):
        with StateStore.open(path, durability="relaxed", read_only=read_only) as store:
            assert len(store.search_sessions("findable")) == 1


def test_a_store_that_is_open_for_reading_is_not_compacted(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with StateStore.open(path) as store:
        _fill(store, sessions=2, turns=3)
    before = path.read_bytes()
    with StateStore.open(path, read_only=True) as store, pytest.raises(ReadOnlyStore):
        store.compact()
    assert path.read_bytes() == before


def test_a_database_with_a_rollback_journal_is_compacted_too(tmp_path: Path) -> None:
    with StateStore.open(f"sqlite:{tmp_path / 'state.db'}?journal=rollback", durability="relaxed") as store:
        _fill(store, sessions=4, turns=60)
        store.erase_user("alice")
        assert store.compact() > 0
        assert _users_in(tmp_path) == {b"bob"}
        assert store.check() == []


def test_whoever_dies_while_it_compacts_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    chance = random.Random(7)
    with StateStore.open(path, durability="relaxed") as store:
        _fill(store, sessions=8, turns=80)
        for life in range(12):

            def compact_without_end(tell: Tell) -> None:
                with StateStore.open(path, durability="relaxed") as other:
                    while True:
                        tell(str(other.append("s1", UserMessage("again"))[0]))
                        other.compact()

            before = len(store.timeline("s1"))
            child = Child(compact_without_end)
            child.wait_for_words()
            time.sleep(chance.uniform(0, 0.03))  # how far it comes is left to chance, and does not matter
            child.kill()
            ended = child.ended()
            assert ended.was_killed, ended.error
            assert len(store.timeline("s1")) - before in (len(ended.told), len(ended.told) + 1)
            assert store.check() == []
            assert store.append("s3", UserMessage(f"life {life}"))
        store.erase_user("alice")
        store.compact()
    assert _users_in(tmp_path) == {b"bob"}
