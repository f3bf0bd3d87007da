"""Databases that were damaged: every call returns or raises an error of ours, and nothing is made worse by looking."""

from __future__ import annotations

import os
import random
import shutil
import signal
import traceback
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Literal

import pytest
from sqlite_hooks import raw, said, wreck

from children import Child, Tell, in_child
from statestore import (
    AgentResponse,
    CorruptData,
    CorruptSession,
    Event,
    PruneConfig,
    Record,
    Session,
    StateStore,
    StateStoreError,
    UserMessage,
)

PAGE = 4096


def furnish(store: StateStore) -> None:
    """Something of everything."""
    for number in range(12):
        session = Session("alice" if number % 2 else "bob", f"session-{number}")
        session.set_metadata("title", f"Talk {number}")
        session.set_metadata("filler", "m" * 50 * number)
        for turn in range(number):
            session.add_user_message(f"question {turn} " + "x" * 20 * turn)
            session.add_agent_response(f"answer {turn} ferry")
            session.add_event("tool", {"turn": turn})
        store.save_session(session)
        store.append(session.id, UserMessage("keyed"), keys=["key"])
    store.save_markdown("notes", "one", "# One")
    store.save_json("notes/deep", "two", {"a": [1, 2, 3]})
    store.save_bytes("blobs", "three", bytes(range(256)) * 40)
    store.search_sessions("ferry")


@pytest.fixture(scope="session")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database to be copied and damaged."""
    path = tmp_path_factory.mktemp("furnished") / "state.db"
    with StateStore.open(path) as store:
        furnish(store)
    return path


def reads(store: StateStore) -> list[Callable[[], object]]:
    """Every way to look."""
    calls: list[Callable[[], object]] = [
        store.list_sessions,
        lambda: store.list_sessions(user_id="alice", order="id", limit=3),
        lambda: store.list_sessions(top_level=True, project_id="x"),
        store.count_sessions,
        lambda: store.count_sessions(user_id="bob"),
        store.list_categories,
        lambda: store.list_documents("notes"),
        lambda: store.list_category("blobs"),
        lambda: store.load_markdown("notes", "one"),
        lambda: store.load_json("notes/deep", "two"),
        lambda: store.load_bytes("blobs", "three"),
        store.change_cursor,
        lambda: store.prune_sessions(dry_run=True),
        store.check,
    ]
    for number in range(12):
        name = f"session-{number}"
        calls += [
            lambda name=name: store.load_session(name),
            lambda name=name: store.load_session(name, last=3),
            lambda name=name: store.timeline(name, before=8, limit=4),
            lambda name=name: store.timeline(name),
            lambda name=name: store.session_exists(name),
        ]
    return calls


def writes(store: StateStore) -> list[Callable[[], object]]:
    """Many ways to change something, searching included, which brings the index up to date."""

    def save() -> None:
        session = store.load_session("session-7")
        if session is not None:
            session.add_user_message("one more")
            session.set_metadata("colour", "blue")
            store.save_session(session)

    return [
        lambda: store.search_sessions("ferry question"),
        lambda: store.append("session-3", UserMessage("more"), AgentResponse("yes"), Event("tool", 1)),
        lambda: store.append("session-3", UserMessage("keyed"), keys=["key"]),
        lambda: store.append("session-11", UserMessage("keyed"), keys=["other"]),
        save,
        lambda: store.rewind_session("session-5", to=4),
        lambda: store.fork_session("session-6", at=5),
        lambda: store.get_or_create_session("alice", "new"),
        lambda: store.save_markdown("notes", "one", "new"),
        lambda: store.delete_file("notes/deep", "two"),
        lambda: store.delete_category("blobs"),
        lambda: store.delete_session("session-2"),
        store.prune_sessions,
        lambda: store.erase_user("bob"),
    ]


class Use:
    """Makes calls, and keeps what they raised: errors of ours, and others, of which there must be none."""

    def __init__(self) -> None:
        self.ours: list[StateStoreError] = []
        self.others: list[str] = []

    def make(self, calls: list[Callable[[], object]]) -> None:
        for call in calls:
            try:
                call()
            except StateStoreError as error:
                self.ours.append(error)
            except Exception as error:  # noqa: BLE001 - all are to be seen at once
                where = traceback.extract_tb(error.__traceback__)[-1]
                self.others.append(f"{error!r} in {where.filename.rpartition('/')[2]}:{where.lineno} {where.name}")


def use_damaged(path: Path) -> list[str]:
    """Look at a damaged database for reading, then open it for writing and do everything; others' errors."""
    use = Use()
    before = path.read_bytes()

    def look() -> None:
        with StateStore.open(path, read_only=True) as reader:
            use.make(reads(reader))

    def work() -> None:
        with StateStore.open(path, durability="relaxed") as store:
            use.make(reads(store))
            use.make(writes(store))
            use.make(reads(store))

    use.make([look])
    assert path.read_bytes() == before, "reading changed the file"
    use.make([work])
    assert all(map(str, use.ours))
    return use.others


def _damaged_in_child(copies: list[tuple[str, Path]]) -> None:
    """Use damaged databases in a process of its own, which a hang or a crash does not take ours down with."""

    def work(tell: Tell) -> None:
        for what, path in copies:
            for other in sorted(set(use_damaged(path))):
                tell(f"{what}: {other}")
            for suffix in ("", "-wal", "-shm", "-gate", "-turn"):
                Path(f"{path}{suffix}").unlink(missing_ok=True)

    told = in_child(work)
    assert not told, "\n".join(told)


def _use_sound(path: Path) -> None:
    use = Use()
    with StateStore.open(path) as store:
        use.make(reads(store))
        use.make(writes(store))
    assert use.ours == []
    assert not use.others, "\n".join(use.others)


def _copied(furnished: Path, path: Path, change: Callable[[bytearray], object]) -> Path:
    content = bytearray(furnished.read_bytes())
    change(content)
    path.write_bytes(content)
    return path


def test_a_file_that_was_cut_is_an_error_of_ours(furnished: Path, tmp_path: Path) -> None:
    size = furnished.stat().st_size
    chance = random.Random(2)
    sizes = {99, 100, 101, 511, 512, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE, size // 2, size - PAGE, size - 1}
    sizes |= {chance.randrange(PAGE, size) for _ in range(12)}
    copies: list[tuple[str, Path]] = []
    for end in sorted(sizes):
        path = tmp_path / f"cut-{end}.db"
        path.write_bytes(furnished.read_bytes()[:end])
        copies.append((f"cut at {end}", path))
    _damaged_in_child(copies)


def test_a_check_tells_of_a_page_that_is_damaged_wherever_it_is(furnished: Path, tmp_path: Path) -> None:
    told: list[int] = []
    pages = furnished.stat().st_size // PAGE
    for page in range(1, pages):

        def overwrite(content: bytearray, page: int = page) -> None:
            content[page * PAGE : (page + 1) * PAGE] = b"\xff" * PAGE

        try:
            with StateStore.open(_copied(furnished, tmp_path / f"page-{page}.db", overwrite)) as store:
                problems = store.check()
        except CorruptData:
            continue  # it could not even be opened
        assert problems, page
        told.append(page)
    assert len(told) > pages // 2


@pytest.mark.parametrize("seed", range(2))
def test_flipped_bytes_are_an_error_of_ours(seed: int, furnished: Path, tmp_path: Path) -> None:
    chance = random.Random(seed)
    pages = furnished.stat().st_size // PAGE
    copies: list[tuple[str, Path]] = []
    for number in range(40):
        page = chance.randrange(pages)

        def flip(content: bytearray, page: int = page) -> None:
            for _ in range(chance.choice([1, 3, 30])):
                # the beginning of a page, where its cells are told of, and anywhere
                offset = chance.choice([chance.randrange(24), chance.randrange(100), chance.randrange(PAGE)])
                content[page * PAGE + offset] ^= 1 << chance.randrange(8)

        copies.append((f"seed {seed}, copy {number}", _copied(furnished, tmp_path / f"flip-{number}.db", flip)))
    _damaged_in_child(copies)


def test_a_page_of_zeros_is_an_error_of_ours(furnished: Path, tmp_path: Path) -> None:
    copies: list[tuple[str, Path]] = []
    for page in range(furnished.stat().st_size // PAGE):

        def zero(content: bytearray, page: int = page) -> None:
            content[page * PAGE : (page + 1) * PAGE] = bytes(PAGE)

        copies.append((f"page {page}", _copied(furnished, tmp_path / f"zero-{page}.db", zero)))
    _damaged_in_child(copies)


def _with_log(tmp_path: Path) -> Path:
    """A database and its log, as a process leaves them that was killed."""
    path = tmp_path / "log.db"

    def work(_tell: Tell) -> None:
        store = StateStore.open(path)
        furnish(store)
        os.kill(os.getpid(), signal.SIGKILL)

    assert Child(work).ended().was_killed
    assert Path(f"{path}-wal").stat().st_size > 10 * PAGE
    return path


def test_a_damaged_log_is_an_error_of_ours_or_is_cut_where_it_is_damaged(tmp_path: Path) -> None:
    origin = _with_log(tmp_path)
    log = Path(f"{origin}-wal").read_bytes()
    chance = random.Random(5)
    copies: list[tuple[str, Path]] = []
    for number in range(20):
        path = tmp_path / f"copy-{number}.db"
        shutil.copy(origin, path)
        content = bytearray(log)
        if number % 2:
            del content[chance.choice([10, 31, 32, 56, 500, chance.randrange(len(log))]) :]
        else:
            content[chance.choice([chance.randrange(32), chance.randrange(len(log))])] ^= 1 << chance.randrange(8)
        Path(f"{path}-wal").write_bytes(content)
        copies.append((f"copy {number}", path))
    _damaged_in_child(copies)


@pytest.mark.parametrize("gone", [("-wal",), ("-shm",), ("-wal", "-shm"), ("-gate", "-turn")], ids=str)
def test_what_lies_beside_a_closed_store_may_be_deleted(gone: tuple[str, ...], furnished: Path, tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    for suffix in ("", "-gate", "-turn"):
        shutil.copy(f"{furnished}{suffix}", f"{path}{suffix}")
    for suffix in gone:
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    _use_sound(path)


def test_a_killed_stores_shared_memory_may_be_deleted(tmp_path: Path) -> None:
    path = _with_log(tmp_path)
    Path(f"{path}-shm").write_bytes(os.urandom(32768))
    _use_sound(path)


def test_reading_a_session_whose_rows_make_no_sense_is_an_error_that_names_it(database: Path) -> None:
    """Rows that only another program can have written: each is told, none breaks anything else."""
    nonsense = {
        "a body that is no JSON": "UPDATE records SET body = '{'",
        "a body that is no record": "UPDATE records SET body = '[]'",
        "two bodies in one": "UPDATE records SET body = body || ',' || body",
        "an unknown kind": "UPDATE records SET kind = 7",
        "a kind of two digits": "UPDATE records SET kind = 12",
        "a kind below zero": "UPDATE records SET kind = -1",
        "a kind that is another's": "UPDATE records SET kind = 2",
        "metadata that is no JSON": "UPDATE extras SET metadata = 'nonsense'",
        "metadata that is no object": "UPDATE extras SET metadata = '[1]'",
        "metadata that is too deep": f"""UPDATE extras SET metadata = '{{"a":{"[" * 5000}{"]" * 5000}}}'""",
        "a moment that is none": "UPDATE sessions SET updated = 'yesterday' WHERE id = 'bad'",
        "a moment of creation that is none": "UPDATE sessions SET created = '' WHERE id = 'bad'",
        "a layout that is none": "UPDATE extras SET layout = x'00'",
    }
    use = Use()
    for what, statement in nonsense.items():
        database.unlink(missing_ok=True)
        with StateStore.open(database, durability="relaxed") as store:
            since = store.change_cursor()
            session = Session("alice", "bad")
            session.add_user_message("hello")
            session.set_metadata("colour", "blue")
            store.save_session(session)
            store.get_or_create_session("alice", "good")
        wreck(database, statement)
        with StateStore.open(database, durability="relaxed") as store:
            use.make(
                [
                    lambda store=store: store.load_session("bad"),
                    lambda store=store: store.timeline("bad"),
                    lambda store=store: store.append("bad", UserMessage("more")),
                    lambda store=store: store.search_sessions("hello"),
                    lambda store=store: store.list_sessions(),
                    lambda store=store, since=since: list(zip(range(2), store.watch(after=since), strict=False)),
                    lambda store=store: store.get_or_create_session("alice", "bad"),
                    lambda store=store: store.update_session_with("bad", lambda bad: bad.set_metadata("a", 1)),
                    lambda store=store: store.fork_session("bad"),
                    lambda store=store: store.rewind_session("bad", to=0),
                ]
            )
            assert store.session_exists("good"), what
            assert store.append("good", UserMessage("hello")) == [1]
    assert not use.others, "\n".join(use.others)
    unnamed = [repr(error) for error in use.ours if "bad" not in str(error)]
    assert not unnamed, "\n".join(unnamed)


def test_a_body_that_is_no_json_is_a_corrupt_session(database: Path) -> None:
    with StateStore.open(database) as store:
        store.get_or_create_session("alice", "bad")
        store.append("bad", UserMessage("hello"))
    wreck(database, "UPDATE records SET body = '{\"content\": '")
    with StateStore.open(database) as store:
        with pytest.raises(CorruptSession, match="bad"):
            store.load_session("bad")
        with pytest.raises(CorruptSession, match="bad"):
            store.timeline("bad")


# -- what check() finds ---------------------------------------------------------------------------------------------

FIRST = "(SELECT number FROM sessions WHERE id = 'first')"
WRECKS = {
    "a record too few": f"DELETE FROM records WHERE place = ({FIRST} << 32) + 1",
    "a record too many": f"INSERT INTO records SELECT ({FIRST} << 32) + 3, 0, body FROM records LIMIT 1",
    "a wrong count": "UPDATE sessions SET agents = 5 WHERE id = 'first'",
    "the next number too low": "UPDATE sessions SET next_seq = 2 WHERE id = 'first'",
    "a body that is no JSON": f"UPDATE records SET body = '{{' WHERE place = ({FIRST} << 32) + 1",
    "a wrong size": "UPDATE sessions SET size = size + 1 WHERE id = 'first'",
    "an unknown kind": f"UPDATE records SET kind = 9 WHERE place = ({FIRST} << 32) + 1",
    "a key of no record": f"INSERT INTO keys VALUES ({FIRST}, 'lost', 77)",
    "metadata that is no JSON": f"UPDATE extras SET metadata = '{{' WHERE number = {FIRST}",
    "metadata that is no object": f"UPDATE extras SET metadata = '[]' WHERE number = {FIRST}",
    "a layout that is no JSON": f"UPDATE extras SET layout = x'7b' WHERE number = {FIRST}",
    "a layout that is not UTF-8": f"UPDATE extras SET layout = x'7b2261223a22ff227d' WHERE number = {FIRST}",
    "a layout that is no object": f"UPDATE extras SET layout = CAST('[]' AS BLOB) WHERE number = {FIRST}",
    "a moment that is none": "UPDATE sessions SET updated = 'soon' WHERE id = 'first'",
    "a version that is none": "UPDATE sessions SET version = '' WHERE id = 'first'",
}


@pytest.fixture
def checked(database: Path) -> Path:
    with StateStore.open(database) as store:
        for name in ("first", "second"):
            session = Session("alice", name)
            session.add_user_message("hello")
            session.add_agent_response("hello")
            session.set_metadata("colour", "blue")
            store.save_session(session)
            store.append(name, UserMessage("keyed"), keys=["key"])
            store.rewind_session(name, to=2)
        store.save_json("notes", "one", {"a": 1})
        assert store.check() == []
    return database


@pytest.mark.parametrize("what", WRECKS)
def test_check_tells_what_is_wrong_with_a_session(what: str, checked: Path) -> None:
    wreck(checked, WRECKS[what])
    for read_only in (False, True):
        with StateStore.open(checked, read_only=read_only) as store:
            problems = store.check()
            assert problems
            assert all("first" in problem.where for problem in problems)
            assert all(problem.what and problem.advice for problem in problems)


def test_check_tells_of_a_session_whose_order_is_not_what_its_header_says(checked: Path) -> None:
    """Two messages in a row, in a session that is said to alternate: its records would get wrong numbers."""
    with StateStore.open(checked) as store:
        store.append("first", UserMessage("one"), UserMessage("two"))
    wreck(checked, "UPDATE sessions SET alternates = 1 WHERE id = 'first'")
    with StateStore.open(checked) as store:
        problems = store.check()
        assert problems
        assert all("first" in problem.where for problem in problems)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO records VALUES ((77 << 32) + 1, 0, '{}')",
        "INSERT INTO keys VALUES (77, 'lost', 1)",
        "INSERT INTO extras VALUES (77, '{}', NULL)",
        "DELETE FROM sessions WHERE id = 'first'",
    ],
)
def test_check_tells_of_rows_that_belong_to_no_session(statement: str, checked: Path) -> None:
    wreck(checked, statement)
    with StateStore.open(checked) as store:
        problems = store.check()
        assert problems
        assert all(problem.where and problem.what and problem.advice for problem in problems)


def test_check_tells_of_a_document_that_is_none(checked: Path) -> None:
    wreck(checked, "UPDATE documents SET body = x'7b'")
    with StateStore.open(checked) as store:
        (problem,) = store.check()
        assert "notes/one" in problem.where


def test_check_tells_of_a_damaged_file(furnished: Path, tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with raw(furnished) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'sessions_newest'").fetchone()

    def damage(content: bytearray) -> None:
        content[(root - 1) * PAGE + 200 : root * PAGE] = bytes(PAGE - 200)

    _copied(furnished, path, damage)
    before = path.read_bytes()
    with StateStore.open(path, read_only=True) as store:
        problems = store.check()
        assert problems
        assert any("backup" in problem.advice for problem in problems)
    assert path.read_bytes() == before


def test_check_finds_nothing_in_a_sound_store_and_changes_nothing(furnished: Path, tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    shutil.copy(furnished, path)
    before = path.read_bytes()
    with StateStore.open(path, read_only=True) as store:
        assert store.check() == []
        assert said(store, "session-1") == ["question 0 ", "answer 0 ferry", "{'turn': 0}", "keyed"]
    assert path.read_bytes() == before


@pytest.mark.parametrize("read", [StateStore.load_session, StateStore.timeline], ids=["load_session", "timeline"])
def test_who_reads_a_session_with_a_record_missing_is_told_how_many_there_are(
    tmp_path: Path, read: Callable[[StateStore, str], object]
) -> None:
    with StateStore.open(tmp_path / "state.db") as store:
        store.save_session(Session("alice", "one"))
        store.append("one", UserMessage("first"), AgentResponse("yes"), UserMessage("second"), AgentResponse("no"))
        with raw(tmp_path / "state.db") as connection:
            connection.execute("DELETE FROM records WHERE body LIKE '%second%'")
        with pytest.raises(CorruptSession, match=r"session one .* \[1, 2, 0\] messages, .* of \[2, 2, 0\]"):
            read(store, "one")


@pytest.mark.parametrize("column", ["created", "updated"])
def test_a_session_that_tells_no_moment_is_left_out_of_listings_and_stops_no_pruning(
    database: Path, column: str, caplog: pytest.LogCaptureFixture
) -> None:
    with StateStore.open(database) as store:
        for session_id in ("good", "bad", "fine"):
            store.save_session(Session("alice", session_id))
        wreck(database, f"UPDATE sessions SET {column} = 'never' WHERE id = 'bad'")
        assert [summary.id for summary in store.list_sessions()] == ["fine", "good"]
        assert "'bad' is left out of the listing" in caplog.text
        assert store.prune_sessions(PruneConfig(max_sessions=1)) == 1
        assert store.session_exists("fine")


@pytest.mark.parametrize("order", ["id", "updated"])
def test_a_session_that_is_left_out_makes_no_page_shorter(database: Path, order: Literal["id", "updated"]) -> None:
    """Who goes through the store page by page takes a short one for the last."""
    with StateStore.open(database) as store:
        for number in range(9):
            store.save_session(Session("alice", f"session-{number}"))
        wreck(database, "UPDATE sessions SET updated = 'never' WHERE id IN ('session-1', 'session-7', 'session-8')")
        found: list[str] = []
        after = None
        while page := store.list_sessions(order=order, limit=2, after=after):
            assert len(page) == 2
            found += [summary.id for summary in page]
            after = page[-1].cursor
        assert sorted(found) == [f"session-{number}" for number in (0, 2, 3, 4, 5, 6)]


def test_each_session_that_is_left_out_is_read_and_told_once(database: Path, caplog: pytest.LogCaptureFixture) -> None:
    with StateStore.open(database) as store:
        for number in range(60):
            store.save_session(Session("alice", f"session-{number:02}"))
        wreck(database, "UPDATE sessions SET updated = 'never' WHERE id >= 'session-10'")
        assert [summary.id for summary in store.list_sessions(limit=3)] == ["session-09", "session-08", "session-07"]
    told = [record.getMessage() for record in caplog.records if "left out of the listing" in record.getMessage()]
    assert len(told) == len(set(told)) == 50


NOT_UTF8 = {
    "a title": "UPDATE sessions SET title = CAST(x'54ff' AS TEXT) WHERE id = 'bad'",
    "an opening": "UPDATE sessions SET title = NULL, opening = CAST(x'54ff' AS TEXT) WHERE id = 'bad'",
    "a message": "UPDATE records SET body = CAST(replace(body, 'e', x'ff') AS TEXT) WHERE body LIKE '%bad horse%'",
    "an event": "UPDATE records SET body = CAST(replace(body, 'e', x'ff') AS TEXT) WHERE body LIKE '%bad tool%'",
    "metadata": "UPDATE extras SET metadata = CAST(replace(metadata, 'blue', x'ff62ff62') AS TEXT) WHERE number = 2",
}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("what", NOT_UTF8)
def test_a_text_that_is_not_utf8_stops_no_listing_and_no_search_and_is_told_by_check(
    what: str, when: str, database: Path
) -> None:
    with StateStore.open(database) as store:
        for session_id in ("good", "bad", "fine"):
            session = Session("alice", session_id)
            session.add_user_message(f"{session_id} horse")
            session.add_event("tool", f"{session_id} tool")
            session.set_metadata("title", f"about {session_id}")
            session.set_metadata("colour", "blue")
            store.save_session(session)
        if when == "after":
            assert len(store.search_sessions("horse")) == 3
        wreck(database, NOT_UTF8[what])
    for read_only in (True, False):
        with StateStore.open(database, read_only=read_only) as store:
            assert {"good", "fine"} <= {summary.id for summary in store.list_sessions()}
            assert {"good", "fine"} <= {hit.session_id for hit in store.search_sessions("horse")}
            assert {"good", "fine"} <= {hit.session_id for hit in store.search_sessions("about")}
            problems = store.check()
            assert problems
            assert all(problem.where.startswith("session bad") for problem in problems)


@pytest.mark.parametrize("record", [UserMessage("a mule"), Event("mule", 1)], ids=["message", "event"])
def test_a_watcher_hears_all_that_was_said_before_a_text_that_is_not_utf8_and_after_it(
    record: Record, store: StateStore, database: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for session_id in ("good", "bad"):
        store.save_session(Session("alice", session_id))
    since = store.change_cursor()
    store.append("good", UserMessage("a horse"))
    store.append("bad", record)
    store.append("good", UserMessage("another horse"))
    wreck(database, "UPDATE records SET body = CAST(replace(body, 'mule', x'6dff6c65') AS TEXT)")
    notices = store.watch(after=since)
    assert [(notice.session_id, notice.seq) for notice in islice(notices, 2)] == [("good", 1), ("good", 2)]
    notices.close()
    assert "watchers are not told of record 1: session bad" in caplog.text


def test_a_user_is_not_said_to_be_erased_while_sessions_are_left_that_cannot_be_listed(database: Path) -> None:
    with StateStore.open(database) as store:
        for session_id in ("good", "bad"):
            store.save_session(Session("alice", session_id))
        wreck(database, "UPDATE sessions SET updated = 'never' WHERE id = 'bad'")
        with pytest.raises(CorruptData, match="1 sessions of 'alice' are damaged, and were left"):
            store.erase_user("alice")
        assert not store.session_exists("good")
        assert store.delete_session("bad")
        assert store.erase_user("alice") == 0
