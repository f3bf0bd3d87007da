"""Permission is lost, before a store is opened or while it is: an error of ours, and all is well when it is back."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from disks import SMALL, mounted, remount
from nobody import NOBODY, as_nobody, mode
from statestore import ReadOnlyStore, Session, StateStore, StateStoreError, StoreUnavailable, UserMessage
from statestore.engines.files import documents
from statestore.engines.files.directory import Directory
from untried import untried
from words import user_words

NONE, READ, ENTER = 0o000, 0o500, 0o300
WAYS: dict[str, tuple[str, int]] = {
    "files: the directory is shut": ("state", NONE),
    "files: the directory is read-only": ("state", READ),
    "files: the sessions are shut": ("state/sessions", NONE),
    "files: the sessions are read-only": ("state/sessions", READ),
    "files: the sessions cannot be listed": ("state/sessions", ENTER),
    "files: one session is shut": ("state/sessions/one.json", NONE),
    "files: the store's own corner is shut": ("state/.statestore", NONE),
    "files: the store's own corner is read-only": ("state/.statestore", READ),
    "files: the temporary files are shut": ("state/.statestore/tmp", NONE),
    "files: the locks are shut": ("state/.statestore/locks", NONE),
    "sqlite: the directory is shut": ("db", NONE),
    "sqlite: the directory is read-only": ("db", READ),
    "sqlite: the file is shut": ("db/state.db", NONE),
    "sqlite: the file is read-only": ("db/state.db", 0o400),
}


@pytest.fixture
def place() -> Iterator[Path]:
    """Not where pytest keeps its own: it shuts that to all others whenever it is started."""
    with tempfile.TemporaryDirectory(prefix="statestore-") as home:
        place = Path(home, "place")
        (place / "db").mkdir(parents=True)
        yield place


def _target(place: Path, way: str) -> Path:
    return place / "state" if way.startswith("files") else place / "db" / "state.db"


def _furnished(target: Path) -> None:
    with StateStore.open(target) as store:
        session = Session("alice", "one")
        session.add_user_message("0")
        store.save_session(session)
        store.save_session(Session("alice", "two"))
        store.save_markdown("notes", "one", "as it was")
        store.search_sessions("nothing")


def _batch(store: StateStore) -> None:
    with store.batch() as batch:
        batch.save_markdown("notes", "two", "x")
        batch.save_markdown("notes", "three", "x")


DEEDS: dict[str, Callable[[StateStore], object]] = {
    "load": lambda store: store.load_session("one"),
    "list": lambda store: store.list_sessions(),
    "document": lambda store: store.load_markdown("notes", "one"),
    "search": lambda store: store.search_sessions("nothing"),
    "cursor": lambda store: store.change_cursor(),
    "check": lambda store: store.check(),
    "batch": _batch,
    "new": lambda store: store.get_or_create_session("alice", "three"),
    "throw away": lambda store: store.delete_session("two", trash_hours=1),
}


@pytest.mark.parametrize("way", WAYS)
def test_permission_lost_while_a_store_is_open_is_told_and_costs_nothing(way: str, place: Path) -> None:
    path, bits = WAYS[way]

    def work() -> None:
        target = _target(place, way)
        _furnished(target)
        with StateStore.open(target) as store:
            said = ["0"]
            store.list_sessions()
            for number in range(3):
                with mode(place / path, bits):
                    during = f"during {number}"
                    if _is_done(store, lambda store, text=during: store.append("one", UserMessage(text)), place):
                        said.append(during)
                    done = {name: _is_done(store, deed, place) for name, deed in DEEDS.items()}
                store.append("one", UserMessage(f"after {number}"))
                said.append(f"after {number}")
                assert user_words(store, "one") == said
                documents = store.list_category("notes")
                assert documents in (["one"], ["one", "three", "two"])
                assert not done["batch"] or len(documents) == 3
                assert store.session_exists("two") != (store.list_trash() != [])
                assert store.check() == []
                assert {"one"} < {summary.id for summary in store.list_sessions()} | {"two"}
        with StateStore.open(target) as store:
            assert user_words(store, "one") == said

    as_nobody(work, place)


def _is_done(store: StateStore, deed: Callable[[StateStore], object], place: Path) -> bool:
    """Whether something is done; if not, the error says where."""
    try:
        deed(store)
    except ReadOnlyStore:
        return False
    except StateStoreError as error:
        told = str(error)
    else:
        return True
    assert str(place) in told
    return False


def test_an_index_that_may_not_be_written_does_not_stop_a_listing(place: Path) -> None:
    def work() -> None:
        _furnished(place / "state")
        with StateStore.open(place / "state") as store, mode(place / "state" / ".statestore", READ):
            assert len(store.list_sessions()) == 2  # there is none yet, and none can be made

    as_nobody(work, place)


@pytest.mark.parametrize("way", WAYS)
def test_permission_lost_before_a_store_is_opened_is_told_with_its_place(way: str, place: Path) -> None:
    path, bits = WAYS[way]

    def work() -> None:
        target = _target(place, way)
        _furnished(target)
        for read_only in (False, True):
            with mode(place / path, bits):
                told = str(place)
                try:
                    with StateStore.open(target, read_only=read_only) as store:
                        _is_done(store, lambda store: store.append("one", UserMessage("x"), keys=["x"]), place)
                        for deed in DEEDS.values():
                            _is_done(store, deed, place)
                except StoreUnavailable as error:
                    told = str(error)
                assert str(place) in told
        with StateStore.open(target) as store:
            assert user_words(store, "one") in (["0"], ["0", "x"])
            assert store.check() == []

    as_nobody(work, place)


def test_a_volumes_own_directory_that_nobody_may_read_is_no_category(place: Path) -> None:
    def work() -> None:
        _furnished(place / "state")
        (place / "state" / "lost+found").mkdir()
        with StateStore.open(place / "state") as store:
            with mode(place / "state" / "lost+found", NONE):
                assert store.list_categories() == ["notes"]
                assert store.check() == []
                assert store.check(repair=True) == []
            store.save_markdown("lost+found", "umbrella", "black")
            assert store.list_categories() == ["lost+found", "notes"]
            with mode(place / "state" / "notes", NONE), pytest.raises(StoreUnavailable, match="notes cannot be opened"):
                store.list_categories()

    as_nobody(work, place)


def test_what_root_writes_anew_stays_its_users(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        untried("ROOT", "only root can write what is another one's, and leave it to him")
    _furnished(tmp_path / "state")
    files = [tmp_path / "state" / "sessions" / "one.json", tmp_path / "state" / "notes" / "one.md"]
    for path in files:
        os.chown(path, NOBODY, NOBODY)
        path.chmod(0o600)
    with StateStore.open(tmp_path / "state") as store:
        store.append("one", UserMessage("1"))
        with store.batch() as batch:
            batch.save_markdown("notes", "one", "as it is")
            batch.save_markdown("notes", "two", "x")
    assert [(path.stat().st_uid, path.stat().st_gid, path.stat().st_mode & 0o777) for path in files] == [
        (NOBODY, NOBODY, 0o600)
    ] * 2


@pytest.mark.parametrize("name", ["state", "state.db"])
def test_a_disk_that_is_mounted_read_only_can_be_read_and_is_told(name: str, small_disk: Path) -> None:
    _furnished(small_disk / name)
    remount(small_disk, "ro")
    with pytest.raises(StoreUnavailable, match=r"read_only=True|read-only"):
        StateStore.open(small_disk / name)
    with StateStore.open(small_disk / name, read_only=True) as store:
        assert user_words(store, "one") == ["0"]
        assert store.load_markdown("notes", "one") == "as it was"
    remount(small_disk, "rw")
    with StateStore.open(small_disk / name) as store:
        store.append("one", UserMessage("1"))
        assert user_words(store, "one") == ["0", "1"]


def test_a_disk_that_becomes_read_only_under_an_open_directory_costs_nothing(small_disk: Path) -> None:
    _furnished(small_disk / "state")
    with StateStore.open(small_disk / "state") as store:
        remount(small_disk, "ro")
        with pytest.raises(StoreUnavailable, match="Read-only file system"):
            store.append("one", UserMessage("refused"))
        assert user_words(store, "one") == ["0"]
        assert store.load_session("one") is not None
        remount(small_disk, "rw")
        store.append("one", UserMessage("1"))
        assert user_words(store, "one") == ["0", "1"]
        assert store.check() == []


@pytest.mark.parametrize("way", ["another disk", "the same disk"])
def test_a_batch_into_a_directory_that_is_mounted_on_its_own_happens_not_at_all(way: str, small_disk: Path) -> None:
    _furnished(small_disk / "state")
    elsewhere, notes = small_disk / "elsewhere", small_disk / "state" / "notes"
    elsewhere.mkdir()
    with mounted(notes, *(SMALL if way == "another disk" else ("--bind", str(elsewhere)))):
        (notes / "old.md").write_text("old")
        with StateStore.open(small_disk / "state") as store:
            with pytest.raises(StoreUnavailable, match="notes is on another file system than the store, or mounted"):
                _batch(store)
            assert store.load_session("one") is not None
            with store.batch() as batch:
                batch.delete_file("notes", "old", kind="md")
                batch.save_markdown("other", "new", "new")
            assert (store.load_markdown("notes", "old"), store.load_markdown("other", "new")) == (None, "new")
            assert store.check() == []


def test_what_may_not_be_read_keeps_nothing_else_from_being_repaired(place: Path) -> None:
    def work() -> None:
        target = place / "state"
        _furnished(target)
        with StateStore.open(target) as store:
            store.save_markdown("others", "one", "x")
            store.save_json("notes", "damaged", {})
            for damaged in ("sessions/two.json", "notes/damaged.json"):
                (target / damaged).write_text("{")
            shut = ("sessions/one.json", "notes/one.md", "others")
            with ExitStack() as shutting:
                for path in shut:
                    shutting.enter_context(mode(target / path, NONE))
                found = store.check(repair=True)
            assert [problem.where for problem in found if problem.is_repaired] == [
                "sessions/two.json",
                "notes/damaged.json",
            ]
            assert sorted(problem.where for problem in found if not problem.is_repaired) == sorted(shut)
            assert store.check() == []

    as_nobody(work, place)


def test_a_directory_that_could_not_be_looked_into_is_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if that was so only for a moment, when what is below it was looked for."""
    target = place / "state"
    with StateStore.open(target) as store:
        store.save_markdown("notes/inner", "one", "x")
        (target / "notes" / "inner" / "stray").write_text("")
        assert [problem.where for problem in store.check()] == ["notes/inner/stray"]
        look = documents._directories_in  # pyright: ignore[reportPrivateUsage]

        def fail_at_notes(directory: Directory, category: str) -> list[str]:
            if category == "notes":
                raise StoreUnavailable("no file handles are left")
            return look(directory, category)

        monkeypatch.setattr(documents, "_directories_in", fail_at_notes)
        assert [(problem.where, problem.what) for problem in store.check()] == [("notes", "no file handles are left")]
