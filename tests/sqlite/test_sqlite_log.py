"""The write-ahead log: kept short whoever reads, gone when the last one closes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlite_hooks import LOCK_FILES, files_beside, raw, seqs

from statestore import StateStore, StoreUnavailable, UserMessage
from statestore.engines.sqlite import SqliteEngine, connecting
from statestore.engines.sqlite import upkeep as upkeep_module

MEGABYTE = 1024 * 1024


def _log_size(database: Path) -> int:
    return os.stat(f"{database}-wal").st_size


def test_a_log_stays_short_when_nobody_reads(opened: Callable[..., StateStore], database: Path) -> None:
    store = opened(durability="relaxed")
    store.get_or_create_session("alice", "one")
    sizes: list[int] = []
    for _ in range(2400):
        store.append("one", UserMessage("x" * 100))
        sizes.append(_log_size(database))
    assert max(sizes) < 40 * MEGABYTE
    assert max(sizes[:1200]) * 1.5 > max(sizes), "it grows without end"


def test_a_log_stays_short_though_each_of_many_stores_writes_little(
    opened: Callable[..., StateStore], database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep_module, "PAGES_BETWEEN_CHECKPOINTS", 200)
    monkeypatch.setattr(upkeep_module, "COMMITS_BETWEEN_CHECKPOINTS", 1)
    opened(durability="relaxed").get_or_create_session("alice", "one")
    sizes: list[int] = []
    with ExitStack() as stack:
        stores = [stack.enter_context(StateStore.open(database, durability="relaxed")) for _ in range(10)]
        for store in stores * 20:  # 100 pages each, 1,000 in all
            store.append("one", UserMessage("x" * 100))
            sizes.append(_log_size(database))
    assert max(sizes) < 500 * 4096


def test_a_log_stays_bounded_with_a_reader_that_is_never_away(
    database: Path, opened: Callable[..., StateStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Short read transactions that overlap: at no moment is there none."""
    monkeypatch.setattr(upkeep_module, "LARGE", 2 * MEGABYTE)  # so that the test need not write 100 of them
    store = opened(durability="relaxed")
    store.get_or_create_session("alice", "one")
    is_over = threading.Event()
    reads = 0

    def read() -> None:
        nonlocal reads
        with ExitStack() as stack:
            readers = [stack.enter_context(raw(database, check_same_thread=False)) for _ in range(2)]
            readers[1].execute("BEGIN")
            readers[1].execute("SELECT count(*) FROM sessions").fetchone()
            while not is_over.is_set():
                for old, new in (readers[::-1], readers):
                    new.execute("BEGIN")
                    new.execute("SELECT count(*) FROM sessions").fetchone()
                    old.execute("COMMIT")
                    reads += 1

    reader = threading.Thread(target=read)
    reader.start()
    try:
        sizes: list[int] = []
        for _ in range(5000):
            store.append("one", UserMessage("x" * 100))
            sizes.append(_log_size(database))
    finally:
        is_over.set()
        reader.join()
    assert reads > 100
    assert max(sizes) < 32 * MEGABYTE
    assert seqs(store, "one") == list(range(1, 5001))


def test_a_large_log_that_was_left_behind_is_written_back_at_the_next_opening(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "WAL_KEPT", 0)
    with StateStore.open(database) as store:
        store.get_or_create_session("alice", "one")
        store.append("one", UserMessage("x" * 500_000))
        before = _log_size(database)
        assert before > 200_000
        monkeypatch.setattr(upkeep_module, "LARGE", 100_000)
        with StateStore.open(database):
            assert _log_size(database) < before


def test_a_closed_store_is_one_file_and_its_lock_files(database: Path) -> None:
    with StateStore.open(database) as store:
        store.get_or_create_session("alice", "one")
        threads = [threading.Thread(target=lambda: [store.load_session("one") for _ in range(20)]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with StateStore.open(database) as second:
            second.append("one", UserMessage("hello"))
        assert "-wal" in files_beside(database)
    assert files_beside(database) == LOCK_FILES


def test_old_changes_are_forgotten(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from statestore.engines.sqlite import SqliteEngine

    monkeypatch.setattr(upkeep_module, "PAGES_BETWEEN_CHECKPOINTS", 50)
    monkeypatch.setattr(upkeep_module, "COMMITS_BETWEEN_CHECKPOINTS", 1)
    with StateStore.open(SqliteEngine(database, changes_kept=20, durability="relaxed")) as store:
        store.get_or_create_session("alice", "one")
        for _ in range(300):
            store.append("one", UserMessage("hello"))
        assert len(store.search_sessions("hello", limit=1000)) == 300
        with raw(database) as connection:
            (count,) = connection.execute("SELECT count(*) FROM changes").fetchone()
    assert count <= 20 + 50


def test_large_documents_do_not_make_a_large_log(opened: Callable[..., StateStore], database: Path) -> None:
    store = opened(durability="relaxed")
    for number in range(40):
        store.save_bytes("images", str(number), b"x" * 4 * MEGABYTE)
        assert _log_size(database) < 80 * MEGABYTE


def _say_much(store: StateStore) -> None:
    store.get_or_create_session("alice", "one")
    store.append("one", UserMessage("x" * MEGABYTE))


DELETIONS: dict[str, tuple[Callable[[StateStore], object], Callable[[StateStore], object]]] = {
    "a session": (
        lambda store: _say_much(store),
        lambda store: store.delete_session("one"),
    ),
    "the end of a session": (
        lambda store: _say_much(store),
        lambda store: store.rewind_session("one", to=0),
    ),
    "a document": (
        lambda store: store.save_bytes("files", "one", b"x" * MEGABYTE),
        lambda store: store.delete_file("files", "one", kind="bin"),
    ),
    "a category": (
        lambda store: store.save_bytes("files", "one", b"x" * MEGABYTE),
        lambda store: store.delete_category("files"),
    ),
}


@pytest.mark.parametrize("deletion", DELETIONS)
def test_what_is_deleted_does_not_make_a_large_log(
    deletion: str, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deleted pages are overwritten with zeros, by this SQLite or by others."""
    write, delete = DELETIONS[deletion]
    with StateStore.open(database, durability="relaxed") as store:
        write(store)
    written_back: list[bool] = []
    monkeypatch.setattr(upkeep_module, "LARGE", MEGABYTE // 2)
    monkeypatch.setattr(upkeep_module.Upkeep, "_checkpoint", lambda *_: written_back.append(True))
    with StateStore.open(database, durability="relaxed") as store:
        delete(store)
    assert written_back


def test_a_reader_that_does_not_let_go_of_a_large_log_stops_nobody(
    database: Path, opened: Callable[..., StateStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep_module, "LARGE", MEGABYTE)
    monkeypatch.setattr(upkeep_module, "PAGES_BETWEEN_CHECKPOINTS", 50)
    monkeypatch.setattr(upkeep_module, "COMMITS_BETWEEN_CHECKPOINTS", 1)
    patient = opened(durability="relaxed")
    patient.get_or_create_session("alice", "one")
    with raw(database) as reader, StateStore.open(f"sqlite:{database}?timeout=5") as hasty:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM sessions").fetchone()
        writing = threading.Thread(target=lambda: [patient.append("one", UserMessage("x" * 9000)) for _ in range(300)])
        writing.start()
        while writing.is_alive():
            hasty.append("one", UserMessage("me too"))  # would be told that another has been writing for 5 s
        writing.join()
    assert _log_size(database) > 2 * MEGABYTE


def test_changes_that_short_lived_processes_left_are_forgotten(database: Path) -> None:
    def changes() -> int:
        with raw(database) as connection:
            return connection.execute("SELECT count(*) FROM changes").fetchone()[0]

    with StateStore.open(database, durability="relaxed") as store:
        store.get_or_create_session("alice", "one")
        for _ in range(250):
            store.append("one", UserMessage("x"))
    with raw(database) as connection:
        connection.execute("UPDATE changes SET change = change + 5000 WHERE change > 100")  # as after many of them
    before = changes()
    StateStore.open(SqliteEngine(database, changes_kept=1000)).close()
    assert changes() == before - 100


def test_a_file_that_is_written_back_by_half_can_be_opened_by_everybody(
    database: Path, opened: Callable[..., StateStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader keeps a checkpoint from its end: the file alone is shorter than its first page says."""
    monkeypatch.setattr(upkeep_module, "PAGES_BETWEEN_CHECKPOINTS", 200)
    monkeypatch.setattr(upkeep_module, "COMMITS_BETWEEN_CHECKPOINTS", 1)
    store = opened(durability="relaxed")
    store.get_or_create_session("alice", "one")
    for turn in range(10):
        with raw(database) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM sessions").fetchone()
            for _ in range(45):
                store.append("one", UserMessage("x" * 2000))
            with StateStore.open(database) as other:
                assert len(other.timeline("one")) == 45 * (turn + 1)


def test_another_program_whose_file_is_written_back_by_half_is_refused(database: Path) -> None:
    with raw(database) as owner, raw(database) as reader:
        owner.execute("PRAGMA journal_mode=WAL")
        owner.execute("CREATE TABLE theirs (text)")
        owner.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM theirs").fetchone()
        for _ in range(50):
            owner.execute("INSERT INTO theirs VALUES (?)", ("x" * 3000,))
        owner.execute("PRAGMA wal_checkpoint(PASSIVE)")
        with pytest.raises(StoreUnavailable, match="another program"):
            StateStore.open(database)
        assert owner.execute("SELECT count(*) FROM theirs").fetchone() == (50,)
