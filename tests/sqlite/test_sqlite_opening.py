"""What is opened: a file that is ours or empty. Anything else is refused, explained, and left as it is."""

from __future__ import annotations

import os
import random
import shutil
import socket
import sqlite3
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlite_hooks import LOCK_FILES, files_beside, hooked, raw, said, seqs, wreck

import contestants
from children import together
from nobody import as_nobody
from statestore import (
    CorruptSession,
    InvalidValue,
    ReadOnlyStore,
    Session,
    StateStore,
    StateStoreError,
    StoreUnavailable,
    UserMessage,
)
from statestore.engines.files import FilesEngine
from statestore.engines.sqlite import SqliteEngine
from statestore.engines.sqlite import upkeep as upkeep_module
from statestore.engines.sqlite.connecting import MINIMUM, check_library
from statestore.engines.sqlite.filesystems import file_system_of
from statestore.engines.sqlite.migrating import MIGRATIONS
from statestore.opening import engine_for

_CHANCE = random.Random(1)
NO_DATABASES = {
    "two bytes": b"xy",
    "a text": b"Dear diary,\n" * 1000,
    "a hundred bytes": _CHANCE.randbytes(100),
    "random bytes": _CHANCE.randbytes(8192),
    "encrypted": _CHANCE.randbytes(3 * 4096),
    "zeros": bytes(4096),
    "a header alone": b"SQLite format 3\0",
    "a header and noise": b"SQLite format 3\0" + _CHANCE.randbytes(8192),
    "another file format": b"\x89PNG\r\n\x1a\n" + _CHANCE.randbytes(2000),
}


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("what", NO_DATABASES)
def test_what_is_no_database_is_refused_and_left_as_it_is(what: str, read_only: bool, database: Path) -> None:
    database.write_bytes(NO_DATABASES[what])
    for _ in range(2):
        with pytest.raises(StateStoreError, match=r"state\.db"):
            StateStore.open(database, read_only=read_only)
    assert database.read_bytes() == NO_DATABASES[what]
    assert files_beside(database) <= LOCK_FILES


def test_an_empty_file_becomes_a_store(database: Path, opened: Callable[..., StateStore]) -> None:
    database.touch()
    opened().get_or_create_session("alice", "one")
    assert opened().session_exists("one")


def _foreign(path: Path, *, journal: str = "delete", statements: tuple[str, ...] = ("CREATE TABLE other (x)",)) -> None:
    with raw(path) as connection:
        connection.execute(f"PRAGMA journal_mode={journal}")
        for statement in statements:
            connection.execute(statement)


FOREIGN = {
    "tables": ("CREATE TABLE other (x)", "INSERT INTO other VALUES (1)"),
    "an application id": ("PRAGMA application_id=77",),
    "a schema version": ("PRAGMA user_version=1",),
    "tables of the same names": ("CREATE TABLE sessions (id TEXT)", "PRAGMA user_version=1"),
}


@pytest.mark.parametrize("journal", ["delete", "wal"])
@pytest.mark.parametrize("what", FOREIGN)
def test_a_database_of_another_program_is_refused_and_left_as_it_is(what: str, journal: str, database: Path) -> None:
    _foreign(database, journal=journal, statements=FOREIGN[what])
    before = database.read_bytes()
    for read_only in (False, True):
        with pytest.raises(StoreUnavailable, match="another program"):
            StateStore.open(database, read_only=read_only)
    assert database.read_bytes() == before


def test_the_log_of_another_programs_database_is_left_as_it_is(database: Path, tmp_path: Path) -> None:
    """As that program left both when it was killed."""
    origin = tmp_path / "origin.db"
    with raw(origin) as connection:
        connection.execute("PRAGMA journal_mode=wal")
        connection.execute("CREATE TABLE other (x)")
        for suffix in ("", "-wal"):
            shutil.copy(f"{origin}{suffix}", f"{database}{suffix}")
    log = Path(f"{database}-wal")
    before = database.read_bytes(), log.read_bytes()
    with pytest.raises(StoreUnavailable, match="another program"):
        StateStore.open(database)
    assert log.exists(), "the log is gone"
    assert (database.read_bytes(), log.read_bytes()) == before


@pytest.mark.parametrize("read_only", [False, True])
def test_a_newer_schema_is_refused_with_both_versions(read_only: bool, database: Path) -> None:
    StateStore.open(database).close()
    with raw(database) as connection:
        connection.execute("PRAGMA user_version=99")
    before = database.read_bytes()
    with pytest.raises(StoreUnavailable, match=rf"99.*\b{len(MIGRATIONS)}\b.*upgrade"):
        StateStore.open(database, read_only=read_only)
    assert database.read_bytes() == before


def test_a_directory_is_refused(database: Path) -> None:
    database.mkdir()
    with pytest.raises(StoreUnavailable, match="is a directory"):
        StateStore.open(database)
    assert list(database.iterdir()) == []


def test_a_missing_directory_is_made_for_its_user_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        path = tmp_path / "a" / "b" / "state.db"
        with StateStore.open(path) as store:
            store.get_or_create_session("alice", "one")
            modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert set(modes) >= {"state.db", "state.db-wal"}
    assert set(modes.values()) == {0o600}
    assert {stat.S_IMODE(os.stat(tmp_path / part).st_mode) for part in ("a", "a/b")} == {0o700}


def test_an_empty_file_opened_for_reading_stays_empty(database: Path) -> None:
    database.touch()
    with pytest.raises(StoreUnavailable, match="no store"):
        StateStore.open(database, read_only=True)
    assert database.read_bytes() == b""
    assert files_beside(database) == {""}


def test_a_store_opened_for_reading_refuses_to_write_and_leaves_no_trace(database: Path) -> None:
    with StateStore.open(database) as store:
        store.get_or_create_session("alice", "one")
        store.append("one", UserMessage("hello"))
    for suffix in ("-gate", "-turn"):
        os.unlink(f"{database}{suffix}")
    before = database.read_bytes()
    with StateStore.open(database, read_only=True) as reader:
        assert said(reader, "one") == ["hello"]
        assert [hit.seq for hit in reader.search_sessions("hello")] == [1]
        with pytest.raises(ReadOnlyStore):
            reader.append("one", UserMessage("no"))
    assert database.read_bytes() == before
    assert files_beside(database) == {""}


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that any user may enter."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)
        os.chmod(name, 0o755)


@pytest.mark.parametrize("is_directory_writable", [False, True])
def test_a_file_that_may_not_be_written_is_opened_for_reading_only(is_directory_writable: bool, public: Path) -> None:
    path = public / "state.db"
    with StateStore.open(path) as store:
        store.get_or_create_session("alice", "one")
    os.chmod(path, 0o444)
    os.chmod(public, 0o777 if is_directory_writable else 0o555)

    def work() -> None:
        with pytest.raises(StoreUnavailable, match=r"state\.db.*read_only=True"):
            StateStore.open(path)
        with StateStore.open(path, read_only=True) as reader:
            assert reader.session_exists("one")

    as_nobody(work, public, is_owner=False)


def test_a_damaged_session_in_a_file_that_may_not_be_written_is_told_as_one(public: Path) -> None:
    path = public / "state.db"
    with StateStore.open(path) as store:
        store.get_or_create_session("alice", "bad")
    wreck(path, "UPDATE sessions SET updated = 'never'")
    os.chmod(path, 0o444)
    os.chmod(public, 0o555)

    def work() -> None:
        with (
            StateStore.open(path, read_only=True) as reader,
            pytest.raises(CorruptSession, match="session bad: 'never'"),
        ):
            reader.load_session("bad")

    as_nobody(work, public, is_owner=False)


def test_a_file_that_may_not_be_read_is_refused(public: Path) -> None:
    path = public / "state.db"
    StateStore.open(path).close()
    os.chmod(path, 0)

    def work() -> None:
        for read_only in (False, True):
            with pytest.raises(StoreUnavailable, match="may not be"):
                StateStore.open(path, read_only=read_only)

    as_nobody(work, public, is_owner=False)


def test_a_directory_that_may_not_be_written_is_explained(public: Path) -> None:
    path = public / "state.db"
    StateStore.open(path).close()
    os.chmod(path, 0o666)
    for suffix in ("-gate", "-turn"):
        os.unlink(f"{path}{suffix}")
    os.chmod(public, 0o555)

    def work() -> None:
        for target in (path, public / "new.db", public / "a" / "new.db"):
            with pytest.raises(StoreUnavailable, match=str(public)):
                StateStore.open(target)

    as_nobody(work, public, is_owner=False)


def test_a_symbolic_link_leads_to_the_store(tmp_path: Path, opened: Callable[..., StateStore]) -> None:
    real, link = tmp_path / "real.db", tmp_path / "link.db"
    link.symlink_to(real)
    with pytest.raises(StoreUnavailable):
        StateStore.open(link, create=False)  # it dangles
    assert not real.exists()
    with StateStore.open(link) as store:
        store.get_or_create_session("alice", "one")
    assert link.is_symlink()
    through, direct = opened(link), opened(real)
    told = [store.append("one", UserMessage("hello"))[0] for store in (through, direct) * 10]
    assert told == list(range(1, 21))
    assert seqs(direct, "one") == told
    assert files_beside(link) == {"", *(f"real.db{suffix}" for suffix in ("", "-gate", "-turn", "-wal", "-shm"))}


def test_a_link_that_leads_nowhere_at_all_is_refused(tmp_path: Path) -> None:
    for target in ("loop.db", "missing/real.db"):
        link = tmp_path / "loop.db"
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        with pytest.raises(StoreUnavailable, match=r"loop\.db"):
            StateStore.open(link)
    assert {path.name for path in tmp_path.iterdir()} == {"loop.db"}


def test_what_is_no_plain_file_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    os.mkfifo("fifo.db")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket.db")
        for target in ("fifo.db", "socket.db", "sqlite:/dev/null", "sqlite:/dev/zero"):
            for read_only in (False, True):
                with pytest.raises(StoreUnavailable, match="is not a file"):
                    StateStore.open(target, read_only=read_only)


ODD_NAMES = (
    "what?.db",
    "hash#tag.db",
    "100%.db",
    "%41%00.db",
    "two words.db",
    "naïve 日本語 🦀.db",
    "quote'\".db",
    "a&mode=memory;b=c.db",
    ":memory:.db",
    "back\\slash.db",
    "new\nline.db",
    "-dash.db",
    "a:b.db",
    os.fsdecode(b"not utf-8 \xff.db"),
)


@pytest.mark.parametrize("name", ODD_NAMES, ids=lambda name: quote(name, safe="", errors="surrogateescape"))
def test_any_name_that_a_file_may_have_is_the_name_of_the_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    with StateStore.open(path) as store:
        store.get_or_create_session("alice", "one")
    with StateStore.open(str(path), create=False) as store:
        assert store.session_exists("one")
    assert files_beside(path) == LOCK_FILES
    with StateStore.open(path, read_only=True) as store:
        assert store.session_exists("one")


def test_a_journal_that_others_do_not_use_is_refused_at_once_and_said_so(database: Path, store: StateStore) -> None:
    store.get_or_create_session("alice", "s")
    with pytest.raises(StoreUnavailable, match="the journal mode WAL, and cannot be given the mode DELETE"):
        StateStore.open(f"sqlite:{database}?journal=rollback")
    store.append("s", UserMessage("on"))


def test_a_path_with_two_slashes_in_front_is_a_path(database: Path) -> None:
    StateStore.open(database).close()
    StateStore.open(f"/{database}", create=False).close()
    StateStore.open(f"sqlite://{database}", create=False).close()  # as others write it: sqlite:///absolute
    StateStore.open(f"sqlite:///{database}", create=False).close()
    with pytest.raises(InvalidValue, match="names a host"):
        StateStore.open(f"sqlite:/{database}")


def test_a_relative_path_is_kept_when_the_directory_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Callable[..., StateStore]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    store = opened("sqlite:here.db")
    monkeypatch.chdir(tmp_path / "elsewhere")
    store.get_or_create_session("alice", "one")
    assert store.session_exists("one")
    assert (tmp_path / "here.db").exists()
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("timeout=x", "timeout.*'x'"),
        ("timeout=", "timeout"),
        ("timeout=-1", "timeout"),
        ("timeout=nan", "timeout"),
        ("timeout=inf", "timeout"),
        ("journal=memory", "journal.*'memory'"),
        ("journal=", "journal"),
        ("colour=blue", "timeout and journal, not 'colour'"),
        ("timeout=1&colour=blue", "'colour'"),
        ("Timeout=1", "'Timeout'"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(options: str, message: str, database: Path) -> None:
    with pytest.raises(InvalidValue, match=message):
        StateStore.open(f"sqlite:{database}?{options}")
    assert not database.exists()


def test_options_are_read(database: Path) -> None:
    with StateStore.open(f"sqlite:{database}?timeout=0.5&journal=rollback"), raw(database) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    with StateStore.open(f"sqlite:{database}?journal=wal&"), raw(database) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize("url", ["sqlite:", "sqlite://host/state.db", "sqlite:?"])
def test_a_url_that_names_no_file_is_refused(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidValue, match="sqlite:"):
        StateStore.open(url)
    with pytest.raises(InvalidValue, match="sqlite:"):
        StateStore.open("sqlite:a\0b.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("state.db", SqliteEngine),
        ("state.sqlite", SqliteEngine),
        ("state.sqlite3", SqliteEngine),
        ("STATE.DB", SqliteEngine),
        ("State.SqLite3", SqliteEngine),
        ("a.db/state", FilesEngine),
        ("state", FilesEngine),
        ("state.dbx", FilesEngine),
        ("state.json", FilesEngine),
        ("statedb", FilesEngine),
        ("sqlite:state", SqliteEngine),
        ("SQLite:state", SqliteEngine),
        ("file:state.db", FilesEngine),
    ],
)
def test_how_a_path_ends_chooses_the_engine(path: str, kind: type) -> None:
    assert type(engine_for(path)) is kind
    if ":" not in path:
        assert type(engine_for(Path(path))) is kind


PRAGMAS = {"journal_mode": "wal", "wal_autocheckpoint": 0, "trusted_schema": 0}


@pytest.mark.parametrize(("durability", "synchronous"), [("full", 3), ("relaxed", 1)])
def test_every_connection_has_the_settings_that_our_promises_rest_on(
    durability: str, synchronous: int, database: Path
) -> None:
    meeting = threading.Barrier(4, timeout=30)

    def meet(statement: str) -> None:
        if statement == "BEGIN":
            meeting.wait()  # so that four connections are in use at once

    with hooked(before=meet) as connections, StateStore.open(database, durability=durability) as store:  # type: ignore[arg-type]
        store.save_session(Session("alice", "one"))
        readers = [threading.Thread(target=store.load_session, args=("one",)) for _ in range(4)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        store.append("one", UserMessage("hello"))
        checked = 0
        for connection in connections:
            expected = PRAGMAS | {"synchronous": synchronous}
            try:
                found = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in expected}
            except sqlite3.ProgrammingError:
                continue  # closed
            assert found == expected
            checked += 1
    assert checked >= 4


def test_a_library_that_is_too_old_is_refused_with_both_versions() -> None:
    with pytest.raises(StoreUnavailable, match=r"3\.36\.0.*3\.37\.0"):
        check_library((3, 36, 0))
    with pytest.raises(StoreUnavailable):
        check_library((3, 8, 11))
    check_library(MINIMUM)
    check_library((3, 100, 0))
    check_library((4, 0))


MOUNTS = r"""
22 1 0:20 / / rw,relatime shared:1 - overlay overlay rw,lowerdir=/a:/b
23 22 0:5 / /dev rw,nosuid - devtmpfs devtmpfs rw
30 22 8:1 / /home rw,relatime shared:2 - ext4 /dev/sda1 rw
31 30 0:40 / /home/alice rw,relatime shared:3 master:7 - nfs4 server:/home/alice rw,vers=4.2
32 31 0:41 / /home/alice/local rw - xfs /dev/sdb rw
33 22 0:42 / /mnt/two\040words rw - fuse.sshfs user@host:/ rw
34 22 0:43 / /mnt/back\134slash rw - 9p share rw
35 22 0:44 / /mnt/tab\011and\012line rw - cifs //host/share rw
36 22 0:45 / /mnt/over rw - nfs server:/x rw
37 36 0:46 / /mnt/over rw - tmpfs tmpfs rw
38 22 0:47 /sub /mnt/naïve rw propagate_from:2 - virtiofs share rw
nonsense
39 22 0:48 / /mnt/hash\043tag rw - nfs x rw
""".lstrip()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/srv/state.db", "overlay"),
        ("/home/bob/state.db", "ext4"),
        ("/home/alice/state.db", "nfs4"),
        ("/home/alice/deep/er/state.db", "nfs4"),
        ("/home/alice/local/state.db", "xfs"),
        ("/home/alice/localized/state.db", "nfs4"),
        ("/home/alicea/state.db", "ext4"),
        ("/home2/state.db", "overlay"),
        ("/mnt/two words/state.db", "fuse.sshfs"),
        ("/mnt/two/state.db", "overlay"),
        ("/mnt/back\\slash/state.db", "9p"),
        ("/mnt/tab\tand\nline/state.db", "cifs"),
        ("/mnt/over/state.db", "tmpfs"),
        ("/mnt/naïve/state.db", "virtiofs"),
        ("/mnt/hash#tag/state.db", "nfs"),
        ("/home", "ext4"),
        ("/", "overlay"),
    ],
)
def test_the_table_of_mounts_tells_the_file_system(path: str, kind: str) -> None:
    assert file_system_of(path, MOUNTS) == kind


def test_a_mount_whose_name_looks_like_a_line_end_is_found() -> None:
    mounts = (
        "1 0 0:1 / / rw - ext4 x rw\n2 1 0:2 / /mnt/a\u2028b rw - nfs4 x rw\n3 1 0:3 / /mnt/c\x0bd rw - nfs4 x rw\n"
    )
    assert file_system_of("/mnt/a\u2028b/state.db", mounts) == "nfs4"
    assert file_system_of("/mnt/c\x0bd/state.db", mounts) == "nfs4"


def test_without_a_table_of_mounts_nothing_is_known() -> None:
    assert file_system_of("/home/alice/state.db", "") == ""


def test_two_processes_share_a_store_with_a_rollback_journal(database: Path, opened: Callable[..., StateStore]) -> None:
    url = f"sqlite:{database}?journal=rollback"
    store = opened(url)
    store.get_or_create_session("alice", "shared")
    told = together("fork", contestants.append_many, [(url, "shared", writer, 60) for writer in "AB"])
    assert sorted(told[0] + told[1]) == seqs(store, "shared") == list(range(1, 121))
    assert [hit.seq for hit in store.search_sessions('"A:59"')] == [told[0][-1]]
    store.backup(database.parent / "copy.db")
    assert seqs(opened(database.parent / "copy.db"), "shared") == seqs(store, "shared")
    assert "-wal" not in files_beside(database)


def test_a_store_with_a_rollback_journal_takes_any_number_of_writes(
    opened: Callable[..., StateStore], database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep_module, "PAGES_BETWEEN_CHECKPOINTS", 100)
    monkeypatch.setattr(upkeep_module, "COMMITS_BETWEEN_CHECKPOINTS", 1)
    store = opened(f"sqlite:{database}?journal=rollback", durability="relaxed")
    store.get_or_create_session("alice", "one")
    assert [store.append("one", UserMessage("hello"))[0] for _ in range(50)] == list(range(1, 51))


def test_a_store_behind_a_symbolic_link_takes_any_number_of_writes(
    opened: Callable[..., StateStore], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep_module, "PAGES_BETWEEN_CHECKPOINTS", 100)
    monkeypatch.setattr(upkeep_module, "COMMITS_BETWEEN_CHECKPOINTS", 1)
    (tmp_path / "real").mkdir()
    (tmp_path / "link.db").symlink_to(tmp_path / "real" / "real.db")
    store = opened(tmp_path / "link.db", durability="relaxed")
    store.get_or_create_session("alice", "one")
    assert [store.append("one", UserMessage("hello"))[0] for _ in range(50)] == list(range(1, 51))
