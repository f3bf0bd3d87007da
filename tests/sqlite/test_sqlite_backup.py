"""A copy made while others write: whole, of one moment, and never in anybody's way."""

from __future__ import annotations

import os
import shutil
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlite_hooks import files_beside, hooked, raw, said, verdict

from children import PATIENCE, Child, Tell, in_child
from disks import no_file_above
from statestore import InvalidValue, StateStore, StateStoreError, StoreUnavailable, UserMessage


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return tmp_path / "backups" / "copy.db"


@pytest.fixture
def furnished(store: StateStore, copy: Path) -> StateStore:
    copy.parent.mkdir()
    store.get_or_create_session("alice", "one")
    for turn in range(20):
        store.append("one", UserMessage(f"{turn}"))
    store.save_bytes("blobs", "big", os.urandom(200_000))
    return store


def _write_without_end(database: Path, writer: str, tell: Tell) -> None:
    """Append to two sessions in one batch, again and again."""
    with StateStore.open(database) as store:
        turn = 0
        while True:
            with store.batch() as batch:
                for name in ("x", "y"):
                    session = store.load_session(f"{writer}{name}")
                    assert session is not None
                    session.add_user_message(f"{turn}")
                    batch.save_session(session)
            tell(f"{turn}")
            turn += 1


def test_a_copy_made_beside_two_writers_is_of_one_moment(database: Path, furnished: StateStore, copy: Path) -> None:
    for name in ("Ax", "Ay", "Bx", "By"):
        furnished.get_or_create_session("alice", name)
    writers = {name: Child(lambda tell, name=name: _write_without_end(database, name, tell)) for name in "AB"}
    acknowledged = {name: len(writer.wait_for_words(30)) for name, writer in writers.items()}
    copies = [copy.with_name(f"{number}.db") for number in range(5)]
    for path in copies:
        furnished.backup(path)
    for writer in writers.values():
        writer.kill()
        ended = writer.ended()
        assert ended.was_killed, ended.error
    for path in copies:
        assert verdict(path) == "ok"
        assert files_beside(path) >= {""}
        with StateStore.open(path) as restored:
            assert restored.check() == []
            assert said(restored, "one") == [f"{turn}" for turn in range(20)]
            assert restored.load_bytes("blobs", "big") == furnished.load_bytes("blobs", "big")
            counts = {summary.id: summary.message_count for summary in restored.list_sessions()}
            for name, count in acknowledged.items():
                words = said(restored, f"{name}x")
                assert words == said(restored, f"{name}y"), "a batch is in the copy in part"
                assert words == [f"{turn}" for turn in range(len(words))]
                assert len(words) >= count, "what was acknowledged before is not in the copy"
                assert counts[f"{name}x"] == len(words)
            restored.append("one", UserMessage("and on"))


def test_a_copy_is_one_file_for_its_user_alone(furnished: StateStore, copy: Path) -> None:
    before = os.umask(0)
    try:
        furnished.backup(copy)
    finally:
        os.umask(before)
    assert [path.name for path in copy.parent.iterdir()] == ["copy.db"]
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with StateStore.open(copy, read_only=True) as restored:
        assert said(restored, "one") == [f"{turn}" for turn in range(20)]


def test_a_copy_can_be_made_of_a_store_that_is_open_for_reading(
    database: Path, furnished: StateStore, copy: Path
) -> None:
    with StateStore.open(database, read_only=True) as reader:
        reader.backup(str(copy))
    with StateStore.open(copy) as restored:
        assert said(restored, "one") == said(furnished, "one")


def test_a_copy_of_a_store_that_is_open_for_reading_and_that_nobody_writes_leaves_no_trace(
    database: Path, furnished: StateStore, copy: Path
) -> None:
    words = said(furnished, "one")
    furnished.close()
    before = files_beside(database)
    with StateStore.open(database, read_only=True) as reader:
        reader.backup(copy)
        assert files_beside(database) == before
        assert files_beside(copy) == {""}
    with StateStore.open(copy) as restored:
        assert restored.check() == []
        assert said(restored, "one") == words


def test_a_copy_beside_somebody_who_began_to_write_meanwhile_is_made_anew(
    database: Path, furnished: StateStore, copy: Path
) -> None:
    furnished.close()
    statements: list[str] = []

    def write_once(statement: str) -> None:
        statements.append(statement)
        if len(statements) == 1:  # on the connection that is to be copied from
            with StateStore.open(database) as writer:
                writer.append("one", UserMessage("meanwhile"))

    with StateStore.open(database, read_only=True) as reader, hooked(before=write_once):
        database.touch()  # so that the connection is a new one
        reader.backup(copy)
    with StateStore.open(copy) as restored:
        assert said(restored, "one")[-1] == "meanwhile"


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("put", [shutil.copy, os.replace])
def test_a_backup_in_the_place_of_a_store_whose_writer_died_is_refused_until_the_log_is_gone(
    put: Callable[[Path, Path], object], read_only: bool, database: Path, copy: Path
) -> None:
    """SQLite would apply the log to it, and both would be lost."""
    copy.parent.mkdir()
    ended = Child(lambda _tell: _write_and_die(database, copy)).ended()
    assert ended.was_killed, ended.error
    log = Path(f"{database}-wal")
    kept, written = copy.read_bytes(), log.read_bytes()
    assert written
    put(copy, database)
    with pytest.raises(StoreUnavailable, match="the log of the file that was in its place before: remove that"):
        StateStore.open(database, read_only=read_only)
    assert (database.read_bytes(), log.read_bytes()) == (kept, written)
    log.unlink()
    Path(f"{database}-shm").unlink()
    with StateStore.open(database, read_only=read_only) as restored:
        assert said(restored, "one") == ["before"]
        assert restored.check() == []
    with StateStore.open(database) as store:
        store.append("one", UserMessage("anew"))
    with StateStore.open(database, read_only=True) as reader:
        assert said(reader, "one") == ["before", "anew"]


def _write_and_die(database: Path, copy: Path) -> None:
    with StateStore.open(database) as store:
        store.get_or_create_session("alice", "one")
        store.append("one", UserMessage("before"))
        store.backup(copy)
        for turn in range(50):
            store.append("one", UserMessage(f"{turn}" * 500))
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("what", ["a file", "a link", "a directory", "the store itself"])
def test_nothing_is_written_over(what: str, database: Path, furnished: StateStore, copy: Path) -> None:
    target = copy
    if what == "a file":
        copy.write_text("precious")
    elif what == "a link":
        copy.symlink_to(copy.with_name("nowhere"))
    elif what == "a directory":
        copy.mkdir()
    else:
        target = database
    before = sorted(path.name for path in copy.parent.iterdir())
    with pytest.raises(StoreUnavailable, match="exists"):
        furnished.backup(target)
    assert sorted(path.name for path in copy.parent.iterdir()) == before
    if what == "a file":
        assert copy.read_text() == "precious"
    assert said(furnished, "one")


@pytest.mark.parametrize("target", ["missing/copy.db", "", "file.txt/copy.db", "nul\0.db", "x" * 300])
def test_a_place_where_no_copy_can_be_is_refused(
    target: str, furnished: StateStore, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(copy.parent)
    Path("file.txt").write_text("precious")
    with pytest.raises(StateStoreError):
        furnished.backup(target)
    assert [path.name for path in copy.parent.iterdir()] == ["file.txt"]


@pytest.mark.parametrize("as_given", ["sqlite:{}", "sqlite://{}", "SQLite:{}?timeout=5"])
def test_a_copy_goes_where_a_url_says(as_given: str, furnished: StateStore, copy: Path) -> None:
    furnished.backup(as_given.format(copy))
    assert [path.name for path in copy.parent.iterdir()] == ["copy.db"]
    with StateStore.open(as_given.format(copy)) as opened:
        assert said(opened, "one") == said(furnished, "one")


@pytest.mark.parametrize("url", ["file:copy.db", "postgresql://me:secret@host/db", "memory:", "monday:copy.db"])
def test_a_url_that_is_not_of_a_file_of_sqlite_is_refused(
    url: str, furnished: StateStore, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(copy.parent)
    with pytest.raises(InvalidValue, match="give the path of a file, or sqlite:FILE") as refused:
        furnished.backup(url)
    assert "secret" not in str(refused.value)
    assert list(copy.parent.iterdir()) == []


@pytest.mark.parametrize("path", ["./monday:copy.db", Path("sqlite:copy.db")])
def test_a_path_may_have_a_colon_in_it(
    path: str | Path, furnished: StateStore, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(copy.parent)
    furnished.backup(path)
    assert list(copy.parent.iterdir()) == [copy.parent / path]


def test_somebody_who_takes_the_name_meanwhile_keeps_it(database: Path, furnished: StateStore, copy: Path) -> None:
    def take(statement: str) -> None:
        if statement.startswith("PRAGMA quick_check"):
            copy.write_text("precious")

    with hooked(before=take), pytest.raises(StoreUnavailable, match=r"copy\.db"):
        furnished.backup(copy)
    assert [path.name for path in copy.parent.iterdir()] == ["copy.db"]
    assert copy.read_text() == "precious"


def test_a_copy_for_which_there_is_no_room_leaves_nothing_behind(furnished: StateStore, copy: Path) -> None:
    def work(_tell: Tell) -> None:
        furnished.count_sessions()  # the store itself has what it needs
        for size in (0, 100, 4096, 50_000, 150_000):
            with no_file_above(size), pytest.raises(StoreUnavailable, match=r"copy\.db"):
                furnished.backup(copy)
            assert list(copy.parent.iterdir()) == []
        furnished.backup(copy)

    in_child(work)
    assert [path.name for path in copy.parent.iterdir()] == ["copy.db"]
    assert verdict(copy) == "ok"


def test_what_is_left_of_a_backup_that_was_killed_is_in_nobodys_way(furnished: StateStore, copy: Path) -> None:
    def work(_tell: Tell) -> None:
        def die(statement: str) -> None:
            if statement.startswith("PRAGMA quick_check"):
                os.kill(os.getpid(), signal.SIGKILL)

        with hooked(before=die):
            furnished.backup(copy)

    ended = Child(work).ended()
    assert ended.was_killed, ended.error
    (left,) = (path for path in copy.parent.iterdir())
    assert left != copy, "what has the name of a copy is a whole one"
    assert left.name.startswith("copy.db-")
    assert left.name.endswith(".unfinished")
    furnished.backup(copy)
    assert verdict(copy) == "ok"
    assert sorted(path.name for path in copy.parent.iterdir()) == ["copy.db", left.name]


def _other_backup_meanwhile(database: Path, copy: Path, ahead: str) -> None:
    """Begin a backup, and have another one of the same name made when the first has come so far."""
    begun: list[str] = []

    def overtake(statement: str) -> None:
        if statement.startswith(ahead) and not begun:
            begun.append(statement)
            with StateStore.open(database) as other:
                other.append("one", UserMessage("later"))
                other.backup(copy)

    with hooked(before=overtake), StateStore.open(database) as store:
        store.backup(copy)


def test_of_two_backups_to_one_place_the_first_to_be_finished_stays(
    database: Path, furnished: StateStore, copy: Path
) -> None:
    with pytest.raises(StoreUnavailable, match=r"copy\.db was made by somebody else meanwhile"):
        _other_backup_meanwhile(database, copy, "PRAGMA quick_check")
    assert [path.name for path in copy.parent.iterdir()] == ["copy.db"]
    with StateStore.open(copy) as restored:
        assert restored.check() == []
        assert said(restored, "one")[-1] == "later"


def test_a_backup_whose_unfinished_file_somebody_removed_takes_no_other_one_for_it(
    database: Path, furnished: StateStore, copy: Path
) -> None:
    def remove(statement: str) -> None:
        if statement.startswith("PRAGMA quick_check"):
            (begun,) = copy.parent.iterdir()
            begun.unlink()
            copy.with_name("copy.db.unfinished").write_text("of somebody else")

    with hooked(before=remove), pytest.raises(StoreUnavailable, match="could not be made"):
        furnished.backup(copy)
    assert [path.name for path in copy.parent.iterdir()] == ["copy.db.unfinished"]


def test_a_copy_of_a_damaged_database_is_refused(database: Path, furnished: StateStore, copy: Path) -> None:
    furnished.close()
    with raw(database) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'records'").fetchone()
    content = bytearray(database.read_bytes())
    content[(root - 1) * 4096 : (root - 1) * 4096 + 200] = bytes(200)
    database.write_bytes(content)
    with StateStore.open(database) as store, pytest.raises(StateStoreError):
        store.backup(copy)
    assert list(copy.parent.iterdir()) == []


def test_a_backup_does_not_wait_for_ever_for_a_lock(database: Path, copy: Path) -> None:
    """With a rollback journal, a writer that is about to commit keeps all readers out."""
    copy.parent.mkdir()
    url = f"sqlite:{database}?journal=rollback&timeout=0.3"
    with StateStore.open(url) as store:
        store.get_or_create_session("alice", "one")

    def work(tell: Tell) -> None:
        with StateStore.open(url) as store:
            tell("open")
            os.read(ready, 1)
            with pytest.raises(StoreUnavailable, match=r"0\.3 s"):
                store.backup(copy)

    ready, go = os.pipe()
    child = Child(work)
    child.wait_for_words()
    with raw(database) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        os.write(go, b"x")
        ended = child.ended(patience=PATIENCE / 4)
        connection.execute("ROLLBACK")
    os.close(ready)
    os.close(go)
    assert not ended.error, ended.error
    assert list(copy.parent.iterdir()) == []


def test_a_closed_store_makes_no_copy(opened: Callable[..., StateStore], copy: Path) -> None:
    copy.parent.mkdir()
    store = opened()
    store.close()
    with pytest.raises(StateStoreError, match="closed"):
        store.backup(copy)
    assert list(copy.parent.iterdir()) == []
