"""Schema versions: files of old releases are read whole, steps happen once and wholly, whoever is first."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import make_golden
import migrators
import msgspec
import pytest
from sqlite_hooks import LOCK_FILES, files_beside, raw, verdict

from children import together
from statestore import StateStore, StoreUnavailable, UserMessage
from statestore.engines.sqlite import SqliteEngine, migrating
from statestore.engines.sqlite.migrating import MIGRATIONS, READINGS, check_schema, migrate
from statestore.engines.sqlite.writing import BUSY
from statestore.host import step
from statestore.stored import SessionFields, StoredRecord, StoredSession


@pytest.fixture
def golden(database: Path) -> Path:
    shutil.copy(make_golden.GOLDEN, database)
    return database


@pytest.fixture
def engine(golden: Path) -> Iterator[SqliteEngine]:
    engine = SqliteEngine(golden)
    step(engine.open())
    yield engine
    step(engine.close())


def _read(engine: SqliteEngine, session_id: str) -> StoredSession:
    stored = step(engine.read_session(session_id))
    assert stored is not None
    return stored


def _declared(*changes: object) -> tuple[list[StoredRecord], dict[str, bytes]]:
    """The records and the metadata that some changes of one session leave, all of whose numbers are their own."""
    records: list[StoredRecord] = []
    metadata: dict[str, bytes] = {}
    next_seq = 1
    for change in changes:
        assert isinstance(change, make_golden.ChangeSession)
        if change.truncate_after is not None:
            records = [record for record in records if record.seq <= change.truncate_after]
        for new in change.append:
            seq = next_seq if new.seq is None else new.seq
            records.append(StoredRecord(seq, new.kind, new.body, new.key))
            next_seq = max(next_seq, seq + 1)
        metadata |= change.set_metadata
    return records, metadata


def test_the_golden_file_is_one_of_schema_1(golden: Path) -> None:
    with raw(golden) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert connection.execute("PRAGMA application_id").fetchone() == (int.from_bytes(b"stor", "big"),)
    assert verdict(golden) == "ok"


def test_the_first_step_is_still_the_one_that_made_the_golden_file(golden: Path, tmp_path: Path) -> None:
    """A step that was released is never edited: files that it made would differ from those it makes now."""
    query = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name"
    with raw(golden) as connection:
        before = connection.execute(query).fetchall()
    with raw(tmp_path / "fresh.db") as connection:
        migrate(connection, "fresh.db", steps=MIGRATIONS[:1])
        assert connection.execute(query).fetchall() == before


@pytest.mark.parametrize("changes", [[make_golden.FULL], [make_golden.EMPTY], [make_golden.GAPS], make_golden.REWOUND])
def test_every_session_of_the_golden_file_is_read_as_it_was_written(
    changes: list[object], engine: SqliteEngine
) -> None:
    first, last = changes[0], changes[-1]
    assert isinstance(first, make_golden.ChangeSession)
    assert isinstance(last, make_golden.ChangeSession)
    assert first.create is not None
    records, metadata = _declared(*changes)
    stored = _read(engine, first.id)
    assert stored.records.in_order() == records
    assert msgspec.json.decode(stored.metadata, type=dict[str, msgspec.Raw]) == {
        key: msgspec.Raw(value) for key, value in metadata.items()
    }
    fields = {name: first.set_fields.get(name) for name in SessionFields.__struct_fields__[3:]}
    assert stored.fields == SessionFields(first.create.user_id, first.create.created, last.updated, **fields)
    assert stored.next_seq == max([first.create.next_seq, *(record.seq + 1 for record in records)])
    (summary,) = (found for found in step(engine.list_sessions(make_query())) if found.id == first.id)
    assert summary.title == first.set_fields.get("title", first.set_fields.get("opening"))
    assert summary.project_id == first.set_fields.get("project_id")
    assert summary.message_count == stored.message_count == sum(record.kind == "user" for record in records)
    assert summary.response_count == sum(record.kind == "agent" for record in records)
    assert summary.event_count == sum(record.kind not in ("user", "agent") for record in records)
    assert summary.size == sum(len(record.body) for record in records) + len(stored.metadata)


def make_query() -> object:
    from statestore.engine import SessionQuery

    return SessionQuery()


@pytest.mark.parametrize("original", make_golden.copied_sessions(), ids=lambda stored: stored.id)
def test_every_copied_session_of_the_golden_file_is_as_its_original(
    original: StoredSession, engine: SqliteEngine
) -> None:
    stored = _read(engine, original.id)
    assert stored.records.in_order() == original.records.in_order()
    assert stored.fields == original.fields
    assert stored.layout == original.layout
    assert msgspec.json.decode(stored.metadata, type=dict[str, msgspec.Raw]) == msgspec.json.decode(
        original.metadata, type=dict[str, msgspec.Raw]
    )
    assert (stored.next_seq, stored.message_count) == (original.next_seq, original.message_count)


def test_an_old_file_gets_the_schema_of_a_new_one(golden: Path, tmp_path: Path) -> None:
    StateStore.open(golden).close()
    StateStore.open(tmp_path / "new.db").close()
    query = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name"
    with raw(golden) as old, raw(tmp_path / "new.db") as new:
        assert old.execute(query).fetchall() == new.execute(query).fetchall()
        assert old.execute("PRAGMA user_version").fetchall() == [(len(MIGRATIONS),)]


def test_there_is_a_way_to_read_every_older_schema() -> None:
    assert set(READINGS) == set(range(1, len(MIGRATIONS)))


def test_who_reads_an_old_file_goes_on_when_somebody_brings_it_up_to_date(golden: Path) -> None:
    with StateStore.open(golden, read_only=True) as reader:
        before = reader.list_sessions()
        with StateStore.open(golden) as writer:
            assert reader.list_sessions() == before
            for _ in range(BUSY):
                writer.append("gaps", UserMessage("again"))
            newest = writer.list_sessions()
            assert newest[0].id == "gaps"
            assert reader.list_sessions() == newest
        assert reader.list_sessions() == newest
        assert reader.check() == []


def test_who_reads_an_old_file_lists_after_a_search_what_was_listed_before(golden: Path) -> None:
    with raw(golden) as other, StateStore.open(golden, read_only=True) as reader:
        assert other.execute("PRAGMA journal_mode=WAL").fetchone() == ("wal",)
        assert other.execute("SELECT count(*) FROM sessions").fetchone() == (9,)  # so it is open, and its log is there
        before = reader.list_sessions()
        assert reader.search_sessions("fox")
        assert reader.list_sessions() == before
        assert reader.count_sessions(user_id=before[0].user_id)


def test_every_document_of_the_golden_file_is_read_as_it_was_written(golden: Path) -> None:
    with StateStore.open(golden) as store:
        assert store.list_categories() == ["images", "notes", "projects/alpha"]
        for put in make_golden.DOCUMENTS:
            document = store.get_document(put.category, put.name, kind=put.kind)
            assert document is not None
            assert document.body == put.body


def test_the_golden_file_is_sound_and_is_worked_with_like_any_other(golden: Path) -> None:
    with StateStore.open(golden, read_only=True) as reader:
        assert reader.check() == []
        assert not reader.session_exists("deleted")
        assert {hit.session_id for hit in reader.search_sessions("fox")}, "what was not indexed is found"
    with StateStore.open(golden) as store:
        ids = {summary.id for summary in store.list_sessions()}
        assert ids == {"full", "empty", "gaps", "rewound", *(stored.id for stored in make_golden.copied_sessions())}
        assert [(hit.session_id, hit.seq) for hit in store.search_sessions("ferry arrives")] == [("full", 1)]
        assert store.append("full", UserMessage("again"), keys=["request-1"]) == [1]
        assert store.append("rewound", UserMessage("anew"), keys=["key-5"]) == [8]
        assert store.append("gaps", UserMessage("more")) == [20]
        for session_id in ids:
            session = store.load_session(session_id)
            assert session is not None
            session.add_user_message("and on")
            session.set_metadata("visited", True)
            store.save_session(session)
        assert store.fork_session("full", at=3).parent_session_id == "full"
        assert len(store.rewind_session("rewound", to=2)) == 4
        assert store.delete_session("gaps")
        assert store.save_json("projects/alpha", "plan", {}, if_version=_version(store))
        assert store.check() == []
    assert verdict(golden) == "ok"
    assert files_beside(golden) == LOCK_FILES


def _version(store: StateStore) -> str:
    document = store.get_document("projects/alpha", "plan", kind="json")
    assert document is not None
    return document.version


# -- steps -----------------------------------------------------------------------------------------------------------

NEXT = """
CREATE TABLE second (x INTEGER NOT NULL) STRICT;
-- a comment; with a semicolon
INSERT INTO second VALUES (1);
ALTER TABLE sessions ADD COLUMN flavour TEXT;
CREATE TRIGGER counted AFTER INSERT ON sessions BEGIN
    UPDATE second SET x = x + 1;
    UPDATE second SET x = x + 0;
END;
"""


def test_a_further_step_run_by_several_processes_at_once_happens_once(golden: Path) -> None:
    steps = [*MIGRATIONS, NEXT]
    assert together("fork", migrators.run_migration, [(str(golden), steps)] * 4) == [len(steps)] * 4
    with raw(golden) as connection:
        assert connection.execute("SELECT x FROM second").fetchall() == [(1,)]
        assert connection.execute("SELECT count(*) FROM sessions WHERE flavour IS NULL").fetchone() == (9,)
        assert connection.execute("SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'").fetchone() == (1,)


def test_all_steps_run_by_several_processes_at_once_on_nothing_happen_once(database: Path) -> None:
    database.touch()
    steps = [*MIGRATIONS, NEXT]
    assert together("spawn", migrators.run_migration, [(str(database), steps)] * 2) == [len(steps)] * 2
    with raw(database) as connection:
        assert connection.execute("SELECT x FROM second").fetchall() == [(1,)]


@pytest.mark.parametrize("failing", ["INSERT INTO missing VALUES (1);", "CREATE TABLE sessions (x);", "nonsense;"])
def test_a_step_that_fails_leaves_nothing_of_itself(
    failing: str, golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "SELECT name, sql FROM sqlite_schema ORDER BY name"
    with raw(golden) as connection:
        migrate(connection, str(golden))
        before = connection.execute(query).fetchall()
        for _ in range(2):
            with pytest.raises(sqlite3.Error):
                migrate(connection, str(golden), steps=[*MIGRATIONS, NEXT + failing])
            assert not connection.in_transaction
            assert connection.execute(query).fetchall() == before
            assert check_schema(connection, str(golden)) == len(MIGRATIONS)
        monkeypatch.setattr(migrating, "MIGRATIONS", [*MIGRATIONS, NEXT])
        migrate(connection, str(golden), steps=[*MIGRATIONS, NEXT])
        monkeypatch.undo()
        assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS) + 1,)
    with pytest.raises(StoreUnavailable, match="newer"):
        StateStore.open(golden)


def test_a_first_step_that_fails_leaves_the_file_to_be_tried_again(database: Path) -> None:
    with raw(database) as connection:
        with pytest.raises(sqlite3.Error):
            migrate(connection, str(database), steps=[MIGRATIONS[0] + "nonsense;"])
        assert connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)
        assert connection.execute("PRAGMA user_version").fetchone() == (0,)
    database.unlink()
    database.touch()
    with StateStore.open(database) as store:
        store.get_or_create_session("alice", "one")
        assert store.check() == []
