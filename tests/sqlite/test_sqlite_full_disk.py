"""A full disk in the middle of a write: an error of ours, nothing acknowledged is lost, and room is all it takes."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlite_hooks import files_beside, said, verdict

from children import Tell, in_child
from disks import fill
from statestore import Session, StateStore, StoreUnavailable, UserMessage
from statestore.engine import ChangeSession, NewRecord
from statestore.engines.sqlite import SqliteEngine
from statestore.engines.sqlite import upkeep as upkeep_module
from statestore.host import step

NOW = "2026-01-31T12:00:00Z"


class Limit:
    """How large a file may become, for this process."""

    def __init__(self) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        _, self._hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def set(self, size: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, self._hard))

    def lift(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (self._hard, self._hard))


def _two_records(store: StateStore, word: str) -> None:
    store.append("one", UserMessage(word + "x" * 700), UserMessage(word + "y" * 700))


def _check_whole(store: StateStore, acknowledged: list[str]) -> None:
    words = [word.rstrip("xy") for word in said(store, "one")]
    assert words[::2] == words[1::2], "a batch is there in part"
    assert words[::2] == acknowledged, "what raised is there, or what did not is not"
    assert store.count_sessions() == 1


def test_wherever_the_room_ends_what_was_acknowledged_is_there_and_no_more(tmp_path: Path) -> None:
    """One store for each size that the log can have when it may grow no further."""

    def work(_tell: Tell) -> None:
        limit = Limit()
        for number in range(24):
            database = tmp_path / f"state-{number}.db"
            with StateStore.open(database, durability="relaxed") as store:
                store.get_or_create_session("alice", "one")
                log = os.stat(f"{database}-wal").st_size
                limit.set(log + 1 + number * 1111)
                acknowledged: list[str] = []
                refused: list[str] = []
                for turn in range(40):
                    try:
                        _two_records(store, f"{turn} ")
                        acknowledged.append(f"{turn} ")
                    except StoreUnavailable as error:
                        refused.append(str(error))
                        if len(refused) == 3:
                            break
                assert len(refused) == 3, "there was no end of room"
                assert all(str(database) in message for message in refused)
                _check_whole(store, acknowledged)
                limit.lift()
                _two_records(store, "and on ")
                acknowledged.append("and on ")
                _check_whole(store, acknowledged)
                assert store.check() == []
            with StateStore.open(database) as store:
                _check_whole(store, acknowledged)
            assert verdict(database) == "ok"

    in_child(work)


def test_what_fits_is_made_beside_what_does_not(database: Path) -> None:
    def append(text: str) -> list[ChangeSession]:
        body = b'{"content":"%b","timestamp":"%b"}' % (text.encode(), NOW.encode())
        return [ChangeSession("one", NOW, append=(NewRecord("user", body, 0),))]

    def work(_tell: Tell) -> None:
        limit = Limit()
        with StateStore.open(database) as store:
            store.get_or_create_session("alice", "one")
        engine = SqliteEngine(database)
        step(engine.open())
        step(engine.commit(append("first")))
        limit.set(400_000)
        results = step(engine.commit_group([append("a"), append("x" * 600_000), append("b"), append("c")]))
        assert [isinstance(result, StoreUnavailable) for result in results] == [False, True, False, False]
        limit.lift()
        assert not isinstance(step(engine.commit_group([append("d")]))[0], Exception)
        step(engine.close())

    in_child(work)
    with StateStore.open(database) as store:
        assert said(store, "one") == ["first", "a", "b", "c", "d"]
        assert store.check() == []


def test_a_write_is_done_though_there_is_no_room_to_write_the_log_back(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What failed is housekeeping: whoever was told that nothing was written would write it twice."""
    monkeypatch.setattr(upkeep_module, "PAGES_BETWEEN_CHECKPOINTS", 1)
    monkeypatch.setattr(upkeep_module, "COMMITS_BETWEEN_CHECKPOINTS", 1)

    def work(tell: Tell) -> None:
        limit = Limit()
        with StateStore.open(database) as store:
            store.get_or_create_session("alice", "one")
            store.append("one", UserMessage("x" * 200_000))
        with StateStore.open(database) as store:
            limit.set(database.stat().st_size)
            for turn in range(5):
                try:
                    store.append("one", UserMessage(f"{turn}" * 4000))
                    tell(f"done {turn}")
                except StoreUnavailable:
                    tell(f"refused {turn}")
            tell(" ".join(word[0] for word in said(store, "one")))
            limit.lift()

    *told, stored = in_child(work)
    assert stored.split() == ["x", *(word[-1] for word in told if word.startswith("done"))]
    assert told == [f"done {turn}" for turn in range(5)]


def test_a_new_store_for_which_there_is_no_room_is_refused_and_can_be_made_later(tmp_path: Path) -> None:
    def work(_tell: Tell) -> None:
        limit = Limit()
        for size in (0, 1, 512, 4096, 20_000, 32_768, 40_000, 60_000):
            database = tmp_path / f"{size}.db"
            limit.set(size)
            with pytest.raises(StoreUnavailable):
                StateStore.open(database)
            limit.lift()
            with StateStore.open(database) as store:
                store.get_or_create_session("alice", "one")
                assert store.check() == []

    in_child(work)


# -- a disk that is really full ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("pages", [0, 1, 2, 3, 5, 8, 20])
def test_a_full_disk_is_told_as_such_and_costs_nothing(pages: int, small_disk: Path) -> None:
    with StateStore.open(small_disk / "state.db") as store:
        store.get_or_create_session("alice", "one")
        filler = fill(small_disk, pages * 4096)
        acknowledged: list[str] = []
        with pytest.raises(StoreUnavailable, match="no space left"):
            for turn in range(100):
                _two_records(store, f"{turn} ")
                acknowledged.append(f"{turn} ")
        for deed in _deeds(store).values():
            with pytest.raises(StoreUnavailable):
                deed()
        _check_whole(store, acknowledged)
        filler.unlink()
        _two_records(store, "and on ")
        _check_whole(store, [*acknowledged, "and on "])
        assert store.check() == []
    with StateStore.open(small_disk / "state.db") as store:
        _check_whole(store, [*acknowledged, "and on "])
    assert verdict(small_disk / "state.db") == "ok"


def _deeds(store: StateStore) -> dict[str, Callable[[], object]]:
    big = "x" * 100_000
    return {
        "save": lambda: store.save_session(_session(big)),
        "document": lambda: store.save_markdown("notes", "one", big),
    }


def _session(text: str) -> Session:
    session = Session("alice", "two")
    session.add_user_message(text)
    return session


def test_on_a_full_disk_one_can_open_read_and_list(small_disk: Path) -> None:
    database = small_disk / "state.db"
    with StateStore.open(database) as store:
        store.get_or_create_session("alice", "one")
        _two_records(store, "a ")
        fill(small_disk, 0)
        with StateStore.open(database, read_only=True) as other:
            for reader in (store, other):
                _check_whole(reader, ["a "])
                assert [summary.id for summary in reader.list_sessions()] == ["one"]
                assert reader.check() == []
    with StateStore.open(database, read_only=True) as last:
        _check_whole(last, ["a "])


def test_a_backup_onto_a_full_disk_leaves_nothing_behind(small_disk: Path, store: StateStore) -> None:
    store.get_or_create_session("alice", "one")
    store.append("one", UserMessage("x" * 1_000_000))
    filler = fill(small_disk, 300_000)
    with pytest.raises(StoreUnavailable, match=r"copy\.db"):
        store.backup(small_disk / "copy.db")
    assert [path.name for path in small_disk.iterdir()] == ["filler"]
    filler.unlink()
    store.backup(small_disk / "copy.db")
    assert files_beside(small_disk / "copy.db") == {""}
