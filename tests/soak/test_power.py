"""Power cuts, in short: every deed cut at every point, deaths before cuts, and a few histories by chance."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from processes import deeds
from processes.deeds import Deed
from soak.power import database, scenes
from soak.power.calls import Recording
from soak.power.database import POWER_SQLITE
from soak.power.files import POWER_FILES, Judge
from soak.power.histories import Step, first_steps
from soak.power.scenes import MORE, REPEATED
from soak.power.sqlite_calls import can_record
from soak.power.staging import in_memory, lay_out
from soak.power.story import Story
from soak.power.views import view
from soak.proof import shortly
from sqlite.make_golden import GOLDEN
from sqlite.sqlite_hooks import verdict
from statestore import StateStore
from statestore.engines.sqlite import SqliteEngine
from statestore.engines.sqlite.connecting import Journal

FULL, EXTRA = 2, 3
AUDITED = ("journal_mode", "synchronous", "wal_autocheckpoint")

DEEDS = (*deeds.ALL, *MORE)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store to begin with."""
    template = tmp_path_factory.mktemp("template") / "state"
    scenes.furnish(template)
    return template


@pytest.fixture
def scratch() -> Iterator[Path]:
    """Where states are laid out."""
    with in_memory() as place:
        yield place


def _judged(story: Story, scratch: Path, *, most: int = 10**6) -> int:
    story.recording.check_against_the_directory()
    judge = Judge(scratch, story, random.Random(1))
    judge.judge_all(most=most)
    return judge.states


@pytest.mark.parametrize("deed", DEEDS, ids=[deed.name for deed in DEEDS])
def test_a_cut_leaves_all_of_a_deed_or_nothing(deed: Deed, template: Path, tmp_path: Path, scratch: Path) -> None:
    story = scenes.of_one_deed(deed, template, tmp_path / "disk")
    assert _judged(story, scratch, most=20) >= 4


def test_a_store_lasts_from_its_first_opening_on(tmp_path: Path, scratch: Path) -> None:
    place = tmp_path / "disk"
    place.mkdir()
    story = Story(place, "a/b/state")
    store = story.open()
    assert store is not None
    story.do(store, Step("a document", lambda store: store.save_markdown("notes", "first", "hello")))
    story.close(store)
    assert _judged(story, scratch, most=20) > 20


def test_a_store_whose_maker_died_lasts_once_another_has_opened_it(tmp_path: Path, scratch: Path) -> None:
    for dies_after in range(40):
        place = tmp_path / str(dies_after)
        place.mkdir()
        story = Story(place, "a/state")
        is_done = story.open(dies_after=dies_after) is not None
        story.first = len(story.periods)
        store = story.open()
        assert store is not None
        story.close(store)
        assert _judged(story, scratch, most=4) > 0
        if is_done:
            assert dies_after > 5
            return
    pytest.fail("it never came to its end")


def test_a_document_lasts_in_directories_that_another_program_made(tmp_path: Path, scratch: Path) -> None:
    story = Story(tmp_path)
    store = story.open()
    assert store is not None
    with story.recording.running():
        for path in ("x", "x/y"):
            os.mkdir(story.root / path)
    story.do(store, Step("a document", lambda store: store.save_markdown("x/y", "name", "text")))
    story.close(store)
    assert _judged(story, scratch, most=20) > 5


@pytest.mark.parametrize(
    "make_step",
    [scenes.change_with_a_fixed_moment, *(lambda _, step=step: step for step in REPEATED)],
    ids=["a change without effect", *(step.name for step in REPEATED)],
)
def test_what_a_dead_process_began_lasts_once_another_has_had_it_acknowledged(
    make_step: Callable[[Story], Step], template: Path, tmp_path: Path, scratch: Path
) -> None:
    for dies_after in range(100):
        story = scenes.of_two_lives(make_step, dies_after, template, tmp_path / "disk")
        if story is None:
            assert dies_after > 1
            return
        assert _judged(story, scratch, most=2) > 0
    pytest.fail("it never came to its end")


def test_a_journal_does_not_come_back(template: Path, tmp_path: Path, scratch: Path) -> None:
    story = scenes.of_a_journal_that_could_come_back(template, tmp_path / "disk")
    assert _judged(story, scratch, most=10) > 50


def test_what_is_moved_aside_is_not_lost(template: Path, tmp_path: Path, scratch: Path) -> None:
    assert _judged(scenes.of_a_repair(template, tmp_path / "disk"), scratch) > 10


def test_a_recording_refuses_what_it_does_not_know(tmp_path: Path) -> None:
    recording = Recording(tmp_path, lambda _: False)
    with recording.running(), pytest.raises(AssertionError, match="does not know"):
        os.symlink("elsewhere", tmp_path / "link")
    (tmp_path / "behind its back").write_text("hello")
    with pytest.raises(AssertionError, match="not recorded"):
        recording.check_against_the_directory()


def test_a_recovery_that_is_cut_is_finished_by_the_next_one(template: Path, tmp_path: Path, scratch: Path) -> None:
    story = scenes.of_one_deed(deeds.BATCH, template, tmp_path / "disk")
    chance = random.Random(1)
    graves = [tree for tree, _ in story.cuts(chance, most=4) if "state/.statestore/journal" in tree]
    judged: list[int] = []
    for number, grave in enumerate(chance.sample(graves, 8)):
        place = tmp_path / f"grave-{number}"
        place.mkdir()
        lay_out(grave, place)
        recovery = Story(place)
        store = recovery.open()
        assert store is not None
        recovery.close(store)
        done = recovery.periods[-1].possible  # and nothing else: the journal was there from the first
        recovery.periods = [replace(period, possible=done) for period in recovery.periods]
        judged.append(_judged(recovery, scratch, most=6))
    assert min(judged) > 3  # the fewer, the further the dead one had come
    assert sum(judged) > 100


def test_a_recovery_that_dies_leaves_to_the_next_one_what_is_to_be_merged(template: Path, tmp_path: Path) -> None:
    """Another program wrote to a session of a batch whose writer died."""
    grave = scenes.leave_a_batch_half_made(template, tmp_path / "grave")
    for dies_after in range(60):
        story = scenes.begun(grave, tmp_path / "disk")
        path = story.root / "sessions" / "first.json"
        path.write_bytes(path.read_bytes().replace(b"first: answer", b"another word"))
        is_done = story.open(dies_after=dies_after) is not None
        with StateStore.open(story.root) as store:
            session = store.load_session("first")
            assert session is not None
            assert [message.content for message in session.user_messages] == ["first: question", "one more"]
            assert session.agent_responses[0].content == "another word"
        if is_done:
            assert dies_after > 5
            return
    pytest.fail("the recovery never came to its end")


def test_directories_last_through_any_cut() -> None:
    shortly(POWER_FILES, "files", rounds=3)


# -- SQLite

needs_sqlite_calls = pytest.mark.skipif(not can_record(), reason="this Python's SQLite cannot be reached")


@needs_sqlite_calls
def test_databases_last_through_any_cut() -> None:
    shortly(POWER_SQLITE, "sqlite", rounds=4)


@needs_sqlite_calls
@pytest.mark.parametrize("journal", ["wal", "rollback"])
def test_a_database_lasts_from_its_first_opening_on(journal: Journal, tmp_path: Path, scratch: Path) -> None:
    story = database.Story(tmp_path, journal, way="a/b/state.db")
    with story.opened() as store:
        story.do(store, first_steps()[0])
    story.recording.check_against_the_directory()
    judge = database.Judge(scratch, story, random.Random(1))
    judge.judge_all(most=24, most_points=10)
    assert judge.states > 20


@needs_sqlite_calls
@pytest.mark.parametrize("journal", ["wal", "rollback"])
def test_what_a_dead_process_committed_lasts_once_another_has_had_it_acknowledged(
    journal: Journal, tmp_path: Path, scratch: Path
) -> None:
    step = Step("a document deleted", lambda store: store.delete_file("notes", "d0", kind="md"))
    for dies_after in range(60):
        story = database.Story(_made(tmp_path / str(dies_after)), journal)
        with story.opened() as store:
            story.do(store, first_steps()[-1])
        is_dead = story.die_over(step, dies_after)
        with story.opened() as store:
            story.do(store, step)
            story.first = len(story.periods) - 1
        judge = database.Judge(scratch, story, random.Random(1))
        judge.judge_all(most=6, most_points=0)
        if not is_dead:
            assert dies_after > 5
            return
    pytest.fail("it never came to its end")


def _made(path: Path) -> Path:
    path.mkdir()
    return path


@needs_sqlite_calls
def test_a_backup_that_returned_is_there_and_none_is_there_in_part(tmp_path: Path, scratch: Path) -> None:
    story = database.Story(tmp_path)
    with story.opened() as store:
        for step in first_steps():
            story.do(store, step)
        story.do(store, Step("a backup", lambda store: store.backup(tmp_path / "backup.db")))
    chance = random.Random(1)
    found = 0
    for tree, period in story.cuts(chance, most=6, most_points=6):
        if period.what == "a backup, acknowledged":
            assert "backup.db" in tree, "a backup is gone that was made"
        if period.what.startswith("a backup") and "backup.db" in tree:
            place = scratch / str(found)
            place.mkdir()
            lay_out(tree, place)
            assert verdict(place / "backup.db") == "ok"
            with StateStore.open(engine := SqliteEngine(place / "backup.db", durability="relaxed")) as store:
                assert view(engine, store, with_versions=True) == period.possible[-1]
            found += 1
    assert found


@pytest.fixture
def audited(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, int, int]]:
    """The file of every connection that is closed, and how it was kept."""
    seen: list[tuple[str, str, int, int]] = []

    def audited(base: type[sqlite3.Connection]) -> type[sqlite3.Connection]:
        class Audited(base):
            def close(self) -> None:
                with suppress(sqlite3.Error):
                    values = [self.execute(f"PRAGMA {name}").fetchone()[0] for name in AUDITED]
                    (_, _, file) = self.execute("PRAGMA database_list").fetchone()
                    seen.append((os.path.basename(file), *values))
                super().close()

        return Audited

    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3,
        "connect",
        lambda *a, **o: connect(*a, **o | {"factory": audited(o.get("factory", sqlite3.Connection))}),
    )
    return seen


def test_the_log_of_a_files_store_is_flushed_before_a_cursor_is_told(
    tmp_path: Path, audited: list[tuple[str, str, int, int]]
) -> None:
    """Or the numbers of changes would begin again after a power cut, and a cursor from before would skip some."""
    with StateStore.open(f"file:{tmp_path}/state") as store:
        first_steps()[0].do(store)
        store.change_cursor()
    assert {(name, mode, synchronous) for name, mode, synchronous, _ in audited if name == "changes.db"} == {
        ("changes.db", "wal", FULL)
    }


def test_every_connection_that_writes_flushes_what_it_commits(
    tmp_path: Path, audited: list[tuple[str, str, int, int]]
) -> None:
    """Whatever opened it: a new store, a migration, a reader, a backup, a rollback journal."""
    for journal in ("wal", "rollback"):
        with StateStore.open(f"sqlite:{tmp_path}/{journal}.db?journal={journal}") as store:
            first_steps()[0].do(store)
            store.search_sessions("question")
            store.load_session("s0")
            store.backup(tmp_path / f"{journal}.copy")
    shutil.copy(GOLDEN, tmp_path / "old.db")
    StateStore.open(tmp_path / "old.db").close()
    writers = {found for found in audited if found[3] != 1000 or found[0].endswith(".unfinished")}
    assert {name.partition("-")[0] for name, *_ in writers} == {
        "wal.db",
        "rollback.db",
        "old.db",
        "wal.copy",
        "rollback.copy",
    }
    for name, mode, synchronous, checkpoint in writers:
        is_copy = name.endswith(".unfinished")
        assert mode == ("delete" if is_copy or name == "rollback.db" else "wal")
        assert synchronous == (FULL if is_copy else EXTRA)
        assert is_copy or checkpoint == 0
