"""A disk that is full, or that fails, in the middle of a write: an error with its cause, and all is as it was."""

from __future__ import annotations

import errno
import resource
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import deeds
import dying
import pytest
from contents import leftovers, snapshot
from deeds import Deed

from children import forked
from disks import fill
from statestore import Session, StateStore, StoreUnavailable, UserMessage

BIG = "x" * 300_000


def _writes(store: StateStore) -> dict[str, Callable[[], object]]:
    """Ways to write more than there is room for."""
    session = store.load_session("first")
    assert session is not None
    session.add_user_message(BIG)

    def batch() -> None:
        with store.batch() as batch:
            batch.save_markdown("notes", "small", "small")
            batch.save_session(session)
            batch.save_markdown("notes", "replaced", BIG)

    return {
        "a save": lambda: store.save_session(session),
        "an append": lambda: store.append("first", UserMessage(BIG)),
        "a document": lambda: store.save_markdown("notes", "replaced", BIG),
        "a batch": batch,
    }


WAYS = ("a save", "an append", "a document", "a batch")


def _check_refused_then_works(root: Path, way: str, make_room: Callable[[], None], causes: set[int]) -> None:
    with StateStore.open(root) as store:
        state = deeds.seen(store)
        write = _writes(store)[way]
        files = snapshot(root)
        for _ in range(2):
            with pytest.raises(StoreUnavailable) as raised:
                write()
            assert isinstance(raised.value.__cause__, OSError)
            assert raised.value.__cause__.errno in causes
            assert leftovers(root) == []
            assert snapshot(root) == files
            assert deeds.seen(store) == state
        make_room()
        write()
        session = store.load_session("first")
        assert session is not None
        if way != "a document":
            assert [message.content for message in session.user_messages] == ["first: question", BIG]
        if way in ("a document", "a batch"):
            assert store.load_markdown("notes", "replaced") == BIG
        assert leftovers(root) == []
        assert store.check() == []


@pytest.mark.parametrize("way", WAYS)
def test_a_limit_on_the_size_of_files_is_an_error_and_costs_nothing(way: str, root: Path) -> None:
    with StateStore.open(root) as store:
        deeds.furnish(store)
        store.list_sessions()

    def work(_: Callable[[str], None]) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
        room = (hard, hard)
        _check_refused_then_works(root, way, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, room), {errno.EFBIG})

    ended = forked(work)
    assert not ended.error, ended.error


@pytest.mark.parametrize("room", [0, 100_000], ids=["no room at all", "some room"])
@pytest.mark.parametrize("way", WAYS)
def test_a_full_disk_is_an_error_and_costs_nothing(way: str, room: int, small_disk: Path) -> None:
    root = small_disk / "state"
    with StateStore.open(root) as store:
        deeds.furnish(store)
        store.list_sessions()
        for stripe in range(64):  # every lock has its file: a full disk must not stop those who only look
            store.save_markdown("notes", f"stripe-{stripe}", "x")
        _writes(store)["a save"]()
        store.rewind_session("first", to=3)
    filler = fill(small_disk, room)
    _check_refused_then_works(root, way, filler.unlink, {errno.ENOSPC})


def test_on_a_full_disk_one_can_read_list_and_delete(small_disk: Path) -> None:
    root = small_disk / "state"
    with StateStore.open(root) as store:
        deeds.furnish(store)
        state = deeds.seen(store)
    fill(small_disk, 0)
    with StateStore.open(root) as store:
        assert deeds.seen(store) == state
        assert store.check() == []
        assert store.delete_session("doomed")
        assert store.delete_file("notes", "gone")
        assert not store.session_exists("doomed")


def test_a_batch_into_a_new_category_on_a_full_disk_happens_not_at_all(small_disk: Path) -> None:
    root = small_disk / "state"
    with StateStore.open(root) as store:
        deeds.furnish(store)
        state = deeds.seen(store)
        for pages in range(24):
            filler = fill(small_disk, pages * 4096)
            try:
                with store.batch() as batch:
                    batch.save_markdown("notes", "replaced", "new")
                    batch.save_markdown("brand/new", "one", "new")
                is_done = True
            except StoreUnavailable:
                is_done = False
            seen = deeds.seen(store)  # whatever happened, the store can be read while the disk is full
            assert is_done or seen == state
            filler.unlink()
            if is_done:
                assert seen["brand/new/one.md"] == seen["notes/replaced.md"] == b"new"
                return
    pytest.fail("the batch never found room")


FAILURES = {
    "no space for a write": ("writev", errno.ENOSPC),
    "a flush that fails": ("fsync", errno.EIO),
    "no space for a directory": ("mkdir", errno.ENOSPC),
    "a rename that fails": ("rename", errno.ENOSPC),
    "no descriptor": ("open", errno.EMFILE),
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("deed", deeds.ALL, ids=[deed.name for deed in deeds.ALL])
def test_whichever_call_fails_all_happened_or_nothing_and_the_store_goes_on(
    deed: Deed, failure: str, tmp_path: Path
) -> None:
    call, error = FAILURES[failure]
    may_spare = deed.name == "a prune" and call == "open"  # what a prune cannot read it leaves
    template = tmp_path / "template"
    with StateStore.open(template, durability="relaxed") as store:
        deeds.furnish(store)
        before = deeds.seen(store)
    done = Path(shutil.copytree(template, tmp_path / "done"))
    with StateStore.open(done) as store:
        deed.prepared(store)()
        after = deeds.seen(store)
    for nth in range(1, 100):
        root = Path(shutil.copytree(template, tmp_path / f"fails-{nth}"))
        with StateStore.open(root) as store:
            do = deed.prepared(store)
            failing = dying.fail_at(nth, (call,), error)
            raised: Exception | None = None
            try:
                do()
            except StoreUnavailable as unavailable:
                raised = unavailable
            finally:
                dying.restore()
            if raised:
                assert isinstance(raised.__cause__, OSError)
                assert raised.__cause__.errno == error
            state = deeds.seen(store)
            assert may_spare or state in ([before, after] if raised else [after])
            if raised or may_spare:
                do()  # what may have happened is not done twice
                expected = [after] if deed.name != "an append" else [after, _twice(before, after)]
                assert deeds.seen(store) in expected
            assert leftovers(root) == []
            assert store.check() == []
        if failing.count < nth:
            return
    pytest.fail("the calls never came to their end")


def _twice(before: dict[str, object], after: dict[str, object]) -> dict[str, object]:
    """An append without a key whose flush failed may be there already: repeating it is the caller's choice."""
    records, *rest = after["session first"]  # type: ignore[misc]
    seq, said = records[-1]
    assert before != after
    return after | {"session first": ([*records, (seq + 1, said)], *rest)}


def test_a_new_session_whose_save_failed_can_be_saved_again(root: Path, store: StateStore) -> None:
    store.get_or_create_session("alice", "another")
    session = Session("alice", "one")
    session.add_user_message("hello")
    for nth in (1, 2):
        failing = dying.fail_at(nth, ("fsync",), errno.EIO)
        try:
            with pytest.raises(StoreUnavailable):
                store.save_session(session)
        finally:
            dying.restore()
        assert failing.count == nth
    store.save_session(session)
    loaded = store.load_session("one")
    assert loaded is not None
    assert [message.content for message in loaded.user_messages] == ["hello"]
    assert leftovers(root) == []
