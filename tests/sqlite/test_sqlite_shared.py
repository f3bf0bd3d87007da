"""The files beside a database have its permissions: a private store stays private, and a group can share one."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from children import Tell, in_child
from nobody import as_nobody
from statestore import StateStore, StoreUnavailable, UserMessage
from untried import untried

LOCKS = ("-gate", "-turn")
GROUP = 54321


@contextmanager
def umask(bits: int) -> Iterator[None]:
    before = os.umask(bits)
    try:
        yield
    finally:
        os.umask(before)


def modes(database: Path) -> set[int]:
    return {stat.S_IMODE(os.stat(f"{database}{suffix}").st_mode) for suffix in ("", *LOCKS)}


@pytest.mark.parametrize("bits", [0o600, 0o660, 0o664, 0o666])
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_new_lock_files_have_the_permissions_of_the_database(mask: int, bits: int, database: Path) -> None:
    database.touch()
    database.chmod(bits)
    with umask(mask), StateStore.open(database) as store:
        store.get_or_create_session("alice", "one")
        assert modes(database) == {bits}


def test_lock_files_follow_the_database_when_its_owner_opens_it(database: Path) -> None:
    StateStore.open(database).close()
    assert modes(database) == {0o600}
    for bits in (0o660, 0o600):
        database.chmod(bits)
        StateStore.open(database).close()
        assert modes(database) == {bits}


def test_a_file_that_has_another_name_too_keeps_its_permissions(tmp_path: Path, database: Path) -> None:
    StateStore.open(database).close()
    database.chmod(0o666)
    secret = tmp_path / "secret"
    secret.touch(0o600)
    for suffix in LOCKS:
        os.unlink(f"{database}{suffix}")
    os.link(secret, f"{database}-turn")
    StateStore.open(database).close()
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that others may enter."""
    with tempfile.TemporaryDirectory(prefix="statestore-") as name:
        place = Path(name)
        place.chmod(0o755)
        yield place


def test_users_of_a_group_share_a_store(place: Path) -> None:
    if os.geteuid() != 0:
        untried("ROOT", "only root can be several users")
    os.chown(place, 0, GROUP)
    place.chmod(0o2770)
    database = place / "state.db"

    def as_user(user: int, text: str) -> None:
        def work(_: Tell) -> None:
            os.setgroups([])
            os.setresgid(GROUP, GROUP, GROUP)
            os.setresuid(user, user, user)
            os.umask(0o022)
            if not database.exists():
                database.touch()
                database.chmod(0o660)
            with StateStore.open(database) as store:
                store.get_or_create_session("alice", "one")
                store.append("one", UserMessage(text))

        in_child(work)

    for user, text in ((GROUP + 1, "a"), (GROUP + 2, "b"), (GROUP + 1, "c")):
        as_user(user, text)
    with StateStore.open(database, read_only=True) as store:
        assert [entry.record.content for entry in store.timeline("one")] == list("abc")  # type: ignore[union-attr]


@pytest.mark.parametrize("suffix", LOCKS)
def test_the_file_that_may_not_be_opened_is_named(suffix: str, place: Path) -> None:
    database = place / "state.db"
    StateStore.open(database).close()
    place.chmod(0o777)
    database.chmod(0o666)
    for other in LOCKS:
        os.chmod(f"{database}{other}", 0o600 if other == suffix else 0o666)

    def work() -> None:
        with pytest.raises(StoreUnavailable, match=rf"state\.db{suffix}: Permission denied"):
            StateStore.open(database)

    if os.geteuid() != 0:
        os.chmod(f"{database}{suffix}", 0)
    as_nobody(work, place, is_owner=False)
