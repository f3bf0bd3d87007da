"""Another process swaps files and directories of a store for links, pipes and the like, all the time, while we use it.

Whatever is read or written: what lies outside the store stays as it is, is not read through a link, and nobody waits
for a pipe.
"""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import stat
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from children import Child, Tell
from soak.hostile.sessions import GOOD
from soak.hostile.trying import Tries, bounded
from soak.hostile.using import VICTIM, Call, changes, follows, furnish, looks
from soak.proof import Proof, Round
from statestore import PruneConfig, StateStore

TURNS: Final = 6
SECRET: Final = b"SECRET, and not for the store"
OWN: Final = ".statestore"
IN_A_DIRECTORY: Final = (
    *(f"sessions/{VICTIM}.json", f"notes/{VICTIM}.json", f"notes/{VICTIM}.md", "sessions", "notes", "notes/deep"),
    *(f"{OWN}/tmp", f"{OWN}/locks", f"{OWN}/locks/batches", f"{OWN}/locks/00", f"{OWN}/trash", f"{OWN}/aside"),
    *(f"{OWN}/journal", f"{OWN}/index.db", f"{OWN}/index.db-wal", f"{OWN}/index.db-shm"),
    *(f"{OWN}/changes.db", f"{OWN}/changes.db-wal", f"{OWN}/changes.db-shm", f"{OWN}/Names-\u00c9"),
)
OF_A_DATABASE: Final = tuple(f"state.db{suffix}" for suffix in ("-wal", "-shm", "-gate", "-turn", "-journal"))
"""Not the database itself: SQLite follows a link there, and a link that comes in the instant of opening leads out."""
OPENED_BY_SQLITE: Final = frozenset(
    f"{name}{suffix}" for name in ("state.db", "index.db", "changes.db") for suffix in ("", "-wal", "-shm", "-journal")
)
"""SQLite opens these by their path: it takes a hard link in their place for the file itself, and waits for a pipe."""


class Outside(NamedTuple):
    """What must not be touched: a directory whose files are named as ours are, and hold a secret."""

    place: Path

    def furnish(self) -> None:
        """Put sentinels there."""
        for name in ("sessions", "notes", "tmp", "locks", "trash", "deep"):
            (self.place / name).mkdir(parents=True)
        session = GOOD[0].replace(b'"id": "11111111-1111-4111-8111-111111111111"', b'"id": "%b"' % VICTIM.encode())
        for directory in (self.place, self.place / "sessions", self.place / "notes"):
            (directory / f"{VICTIM}.json").write_bytes(session.replace(b'"user_id": "', b'"user_id": "%b' % SECRET))
            (directory / f"{VICTIM}.md").write_bytes(SECRET)
        for name in ("index.db", "changes.db", "state.db"):
            with closing(sqlite3.connect(self.place / name, isolation_level=None)) as connection:
                connection.execute("CREATE TABLE files (id TEXT, entry TEXT, summary TEXT)")
                connection.execute("INSERT INTO files VALUES ('x', ?, ?)", (SECRET.decode(), SECRET.decode()))
        for name in ("journal", "00", "batches", "state.db-turn", "index.db-wal", "changes.db-wal"):
            (self.place / name).write_bytes(SECRET)

    def files(self) -> list[Path]:
        """Its files."""
        return sorted(path for path in self.place.rglob("*") if path.is_file())

    def state(self) -> dict[str, tuple[int, bytes]]:
        """All that is there: kinds, permissions, bytes."""
        return {
            str(path.relative_to(self.place)): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
            for path in sorted(self.place.rglob("*"))
        }


def _round(this: Round) -> Mapping[str, int]:
    is_directory = this.ground.engine == "files"
    root = this.ground.directory / "state" if is_directory else this.ground.directory
    outside = Outside(this.ground.directory / "outside")
    outside.furnish()
    before = outside.state()
    with StateStore.open(this.ground.target, durability="relaxed") as store:
        furnish(store)
        store.search_sessions("ferry")
    has_hard_links = bool(this.seed % 2)
    places = IN_A_DIRECTORY if is_directory else OF_A_DATABASE

    def use(tries: Tries) -> None:
        chance = this.random("use")
        swapper = Child(_Swapper(this.random("swap"), root, places, outside, has_hard_links=has_hard_links).run)
        swapper.wait_for_words()
        try:
            for _ in range(TURNS):
                _use(tries, chance, this, is_secret=not has_hard_links)
        finally:
            swapper.kill()
            swapper.ended()

    counts = bounded(use, megabytes=None)
    after = outside.state()
    changed = {name for name in before | after if before.get(name) != after.get(name)}
    assert not changed, f"outside the store these changed: {sorted(changed)}"
    return counts


class _Swapper:
    """Swaps one thing after the other, and puts each back."""

    def __init__(
        self, chance: Random, root: Path, places: tuple[str, ...], outside: Outside, *, has_hard_links: bool
    ) -> None:
        self._chance = chance
        self._root = root
        self._places = places
        self._outside = outside
        self._hidden = outside.place.parent / "hidden"
        self._kinds = [self._link, self._link, self._link, self._pipe, os.mkdir, self._socket, self._nowhere]
        if has_hard_links:
            self._kinds += [self._hard_link, self._hard_link]

    def run(self, tell: Tell) -> None:
        """Go on until killed, or until whoever began this is gone."""
        user = os.getppid()
        tell("begun")
        while os.getppid() == user:
            path = self._root / self._chance.choice(self._places)
            with suppress(OSError):  # we race with those who use the store
                self._swap(path)

    def _swap(self, path: Path) -> None:
        is_there = os.path.lexists(path)
        if is_there:
            os.rename(path, self._hidden)
        try:
            for _ in range(self._chance.choice((1, 1, 3))):
                self._chance.choice(self._kinds)(path)
                for _ in range(self._chance.choice((0, 10, 1000, 20_000))):
                    pass
                _remove(path)
        finally:
            if is_there:
                _remove(path)
                os.rename(self._hidden, path)
            if os.path.lexists(self._hidden):
                _remove(self._hidden)

    def _link(self, path: Path) -> None:
        same = self._outside.place / path.name
        target = same if same.exists() and self._chance.random() < 0.7 else self._chance.choice(self._outside.files())
        os.symlink(target, path)

    def _hard_link(self, path: Path) -> None:
        if path.name in OPENED_BY_SQLITE:
            self._link(path)
        else:
            os.link(self._chance.choice(self._outside.files()), path)

    def _pipe(self, path: Path) -> None:
        if path.name in OPENED_BY_SQLITE:
            self._link(path)
        else:
            os.mkfifo(path)

    def _nowhere(self, path: Path) -> None:
        os.symlink(self._outside.place / f"new-{path.name}", path)

    @staticmethod
    def _socket(path: Path) -> None:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))


def _remove(path: Path) -> None:
    with suppress(FileNotFoundError):
        if stat.S_ISDIR(path.lstat().st_mode):
            shutil.rmtree(path)
        else:
            path.unlink()


def _use(tries: Tries, chance: Random, this: Round, *, is_secret: bool) -> None:
    """Open the store and use it in every way, in any order; what is read is not what lies outside."""
    read_only = chance.random() < 0.2
    tries.take(("turn", read_only))
    store = tries.attempt(
        lambda: StateStore.open(this.ground.target, create=False, read_only=read_only, durability="relaxed")
    )
    if store is None:
        return
    with store:
        calls: list[Call] = [*looks(store), *follows(store), *changes(store), *_more(store, this, chance)]
        chance.shuffle(calls)
        for call in calls:
            found = tries.attempt(call)
            assert not is_secret or SECRET.decode() not in repr(found), "what lies outside was read through a link"


def _more(store: StateStore, this: Round, chance: Random) -> list[Call]:
    def batch() -> None:
        with store.batch() as made:
            made.save_json("notes", VICTIM, {"in": "a batch"})
            made.save_markdown("notes", VICTIM, "in a batch")

    number = chance.randrange(10**9)
    found: list[Callable[[], object]] = [
        batch,
        lambda: store.get_or_create_session("alice", VICTIM),
        lambda: store.prune_sessions(PruneConfig(max_sessions=2, trash_hours=1)),
        lambda: store.delete_category("notes/deep"),
        lambda: store.save_bytes("notes/deep", VICTIM, b"x" * 1000),
        lambda: store.check(repair=True),
        lambda: store.backup(str(this.ground.directory / f"copy-{number}.db")),
    ]
    return found


SWAPPED_FOR_LINKS = Proof(
    name="swapped-for-links",
    promise="files and directories swapped for links, pipes, sockets at any moment lead nobody out of the store",
    engines=("files", "sqlite"),
    round=_round,
    goal={"calls": 50_000},
)
