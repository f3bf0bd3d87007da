"""No room for what is written beside a store: exports, copies and backups fail with an error and leave nothing half."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from children import PATIENCE, Tell, in_child
from disks import no_file_above
from servers.valkey import server
from statestore import StateStore, StateStoreError, StoreUnavailable, UserMessage, copy_store
from statestore.exchange import export_sessions, write_whole

BIG = "x" * 400_000


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.db"
    with StateStore.open(path) as store:
        for number in range(4):
            store.get_or_create_session("alice", str(number))
            store.append(str(number), UserMessage(BIG))
        store.save_markdown("notes", "one", BIG)
    return path


def _export(store: StateStore, place: Path) -> None:
    write_whole(place, export_sessions(store))


WAYS: dict[str, Callable[[StateStore, Path], object]] = {
    "export": _export,
    "backup": lambda store, place: store.backup(place),
    "copy into a directory": lambda store, place: copy_store(store, f"file:{place}"),
    "copy into a database": lambda store, place: copy_store(store, f"sqlite:{place}"),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_finds_no_room_is_told_and_can_be_done_when_there_is_some(way: str, source: Path, tmp_path: Path) -> None:
    place = tmp_path / "place" / "there"
    place.parent.mkdir()

    def work(_: Tell) -> None:
        with StateStore.open(source, read_only=True) as store:
            for size in (40_000, 100_000, 300_000):  # the source needs some, to be shared with others
                with no_file_above(size), pytest.raises(StateStoreError, match="there"):
                    WAYS[way](store, place)
                if not way.startswith("copy"):
                    assert list(place.parent.iterdir()) == []
            WAYS[way](store, place)  # a copy that was broken off goes on

    in_child(work)
    assert place.exists()
    if way != "export":
        with StateStore.open(f"file:{place}" if place.is_dir() else f"sqlite:{place}") as store:
            assert store.count_sessions() == 4
            assert store.check() == []


def _program(*arguments: object, size: int | None = None) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        if size is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

    return subprocess.run(
        [sys.executable, "-m", "statestore", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        preexec_fn=limit,
        check=False,
    )


@pytest.mark.parametrize("command", [("export", "-o"), ("backup",)], ids=["export", "backup"])
def test_the_command_says_that_there_is_no_room(command: tuple[str, ...], source: Path, tmp_path: Path) -> None:
    place = tmp_path / "place" / "there.jsonl"
    place.parent.mkdir()
    done = _program("--store", source, *command, place, size=100_000)
    assert done.returncode not in (0, None)
    assert "Traceback" not in done.stderr
    assert "there.jsonl" in done.stderr
    assert list(place.parent.iterdir()) == []


def test_an_export_to_a_full_device_is_told(source: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "statestore", "--store", str(source), "export"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "No space left" in done.stderr


def test_a_server_that_cannot_write_its_snapshot_refuses_and_goes_on_when_it_can() -> None:
    """Valkey then says MISCONF to every write: nothing of a batch happens, and reading goes on."""
    with server("--save", "3600 1000000", durable=False) as valkey, StateStore.open(valkey.url) as store:
        store.get_or_create_session("alice", "one")
        store.append("one", UserMessage("before"))
        (valkey.directory / "dump.rdb").mkdir()
        (valkey.directory / "dump.rdb" / "in the way").touch()
        _snapshot(valkey.client, "err")
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="MISCONF"):
                store.append("one", UserMessage("refused"))
        with pytest.raises(StoreUnavailable, match="MISCONF"), store.batch() as batch:
            batch.save_markdown("notes", "one", "refused")
            batch.delete_session("one")
        assert [entry.record.content for entry in store.timeline("one")] == ["before"]  # type: ignore[union-attr]
        assert store.list_category("notes") == []
        (valkey.directory / "dump.rdb" / "in the way").unlink()
        (valkey.directory / "dump.rdb").rmdir()
        _snapshot(valkey.client, "ok")
        store.append("one", UserMessage("after"))
        assert len(store.timeline("one")) == 2


def _snapshot(client: object, expected: str) -> None:
    """Have a server write a snapshot, and wait for what comes of it."""
    client.execute_command("BGSAVE")  # type: ignore[attr-defined]
    while True:
        told = client.info("persistence")  # type: ignore[attr-defined]
        if not told["rdb_bgsave_in_progress"]:
            assert told["rdb_last_bgsave_status"] == expected
            return
