"""What the processes of a contest do. Each opens the store itself, on any engine, and returns what it was told.

And how to see that nobody's words were lost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime

from statestore import DocumentConflict, PruneConfig, Session, SessionNotFound, StateStore, UserMessage
from words import user_words

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
FIVE = tuple("abcde")


def append_many(target: str, session_id: str, writer: str, count: int) -> list[int]:
    """Append without loading; the numbers given out."""
    with StateStore.open(target) as store:
        return [store.append(session_id, UserMessage(f"{writer}:{turn}"))[0] for turn in range(count)]


def save_many(target: str, session_id: str, writer: str, count: int) -> int:
    """Load, add, save."""
    with StateStore.open(target) as store:
        for turn in range(count):
            session = store.load_session(session_id)
            assert session is not None
            session.add_user_message(f"{writer}:{turn}")
            store.save_session(session)
    return count


def create_and_greet(target: str, writer: str, session_ids: list[str]) -> list[str]:
    """Get or create sessions that others create too; when each was created, as this process was told."""
    told: list[str] = []
    with StateStore.open(target) as store:
        for session_id in session_ids:
            session = store.get_or_create_session("alice", session_id)
            told.append(session.created_text)
            session.add_user_message(writer)
            store.save_session(session)
    return told


def batch_up(target: str, batches: int) -> int:
    """Write one number, higher than all before it, to five documents and five sessions in one batch."""
    done = 0
    with StateStore.open(target) as store:
        while done < batches:
            first = store.get_document("five", FIVE[0], kind="json")
            assert first is not None
            sessions = [store.load_session(name) for name in FIVE]
            try:
                with store.batch() as batch:
                    number = first.value + 1
                    batch.save_json("five", FIVE[0], number, if_version=first.version)
                    for name in FIVE[1:]:
                        batch.save_json("five", name, number)
                    for session in sessions:
                        assert session is not None
                        session.set_metadata("title", str(number))
                        batch.save_session(session)
            except DocumentConflict:
                continue
            done += 1
    store_flag(target)
    return done


def store_flag(target: str) -> None:
    """Leave a sign that a writer is done."""
    with StateStore.open(target) as store:
        store.save_json("done", f"{id(store)}-{datetime.now(UTC).timestamp()}", True)


def read_five(target: str, order: str, writers: int) -> list[list[int]]:
    """Read the five documents in one order, again and again until the writers are done."""
    seen: list[list[int]] = []
    with StateStore.open(target) as store:
        is_over = False
        while not is_over:
            is_over = len(store.list_category("done")) == writers
            seen.append([store.load_json("five", name) for name in order])
    return seen


def list_five(target: str, writers: int) -> list[list[str]]:
    """List the five sessions, again and again until the writers are done; the titles that each listing showed."""
    seen: list[list[str]] = []
    with StateStore.open(target) as store:
        is_over = False
        while not is_over:
            is_over = len(store.list_category("done")) == writers
            seen.append([str(summary.title) for summary in store.list_sessions(order="id")])
    return seen


def revive_many(target: str, writer: str, count: int) -> list[str]:
    """Make sessions that are long out of date and say something in each: those whose message was acknowledged."""
    kept: list[str] = []
    with StateStore.open(target) as store:
        for turn in range(count):
            session = Session("alice", f"{writer}-{turn}")
            session.updated_at = LONG_AGO
            store.save_session(session)
            try:
                store.append(session.id, UserMessage("I am still here"))
            except SessionNotFound:
                continue  # pruned before it was said
            kept.append(session.id)
    store_flag(target)
    return kept


def prune_all_the_time(target: str, writers: int) -> int:
    """Prune what is older than an hour until the writers are done; how many went."""
    pruned = 0
    with StateStore.open(target) as store:
        is_over = False
        while not is_over:
            is_over = len(store.list_category("done")) == writers
            pruned += store.prune_sessions(PruneConfig(max_sessions=0, ttl_hours=1))
    return pruned


def create_and_delete(target: str, writer: str, count: int) -> int:
    """Documents that come and go."""
    with StateStore.open(target) as store:
        for turn in range(count):
            store.save_markdown("come-and-go", f"{writer}-{turn % 7}", "here")
            store.delete_file("come-and-go", f"{writer}-{turn % 7}", kind="md")
    store_flag(target)
    return count


def list_all_the_time(target: str, writers: int) -> int:
    """List and check while documents come and go; how often."""
    listings = 0
    with StateStore.open(target) as store:
        is_over = False
        while not is_over:
            is_over = len(store.list_category("done")) == writers
            store.list_documents("come-and-go")
            store.list_categories()
            assert not [problem for problem in store.check() if not problem.where.startswith(".statestore/tmp")]
            listings += 1
    return listings


def list_once(target: str) -> list[tuple[str, int]]:
    """One listing: ids and numbers of messages."""
    with StateStore.open(target) as store:
        return [(summary.id, summary.message_count) for summary in store.list_sessions(order="id")]


def open_many(target: str, count: int) -> int:
    """Open and close, again and again."""
    for _ in range(count):
        StateStore.open(target).close()
    return count


def save_sessions(target: str, writer: str, count: int) -> int:
    """New sessions, one after the other."""
    with StateStore.open(target) as store:
        for number in range(count):
            store.save_session(Session("alice", f"{writer}-{number}"))
    store_flag(target)
    return count


def list_until_done(target: str, writers: int) -> list[str]:
    """List until the writers are done; what the last listing showed."""
    listed: list[str] = []
    with StateStore.open(target) as store:
        is_over = False
        while not is_over:
            is_over = len(store.list_category("done")) == writers
            now = [summary.id for summary in store.list_sessions()]
            assert set(listed) <= set(now), "a session that was listed is not any more"
            assert len(now) == len(set(now))
            listed = now
    return listed


def read_all(target: str, session_id: str) -> list[str]:
    """What was said, as this process sees it."""
    with StateStore.open(target, read_only=True) as store:
        return user_words(store, session_id)


def open_write_and_close(target: str, count: int) -> int:
    """Two records in one batch, in a store that is opened and closed for each: now it is at rest, now it is not."""
    for turn in range(count):
        with StateStore.open(target, durability="relaxed") as store:
            store.append("shared", UserMessage(f"{turn}"), UserMessage(f"{turn}"))
    with StateStore.open(target) as store:
        store.save_json("done", "writer", True)
    return count


def read_until_done(target: str) -> int:
    """Read through a store that is open for reading, until the writer is done; how often."""
    reads = known = 0
    with StateStore.open(target, read_only=True) as store:
        is_over = False
        while not is_over:
            is_over = store.load_json("done", "writer") is not None
            words = [str(entry.record.content) for entry in store.timeline("shared")]  # type: ignore[union-attr]
            assert words == [str(turn) for turn in range(len(words) // 2) for _ in range(2)]
            assert len(words) >= known, "what was there is gone"
            known = len(words)
            assert [summary.id for summary in store.list_sessions()] == ["shared"]
            reads += 1
    return reads


def append_in_threads(target: str, session_id: str, writer: str, threads: int, count: int) -> dict[str, list[int]]:
    """Append from several threads through one store; the numbers given out to each."""
    told: dict[str, list[int]] = {}
    with StateStore.open(target) as store:

        def append(name: str) -> None:
            told[name] = [store.append(session_id, UserMessage(f"{name}:{turn}"))[0] for turn in range(count)]

        in_threads(append, [f"{writer}{number}" for number in range(threads)])
    return told


def in_threads(work: Callable[[str], object], names: list[str]) -> None:
    """Run something in one thread for each name, and wait for all of them; an error in one is ours."""
    errors: list[BaseException] = []

    def run(name: str) -> None:
        try:
            work(name)
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def append_with_keys(target: str, session_id: str, count: int, times: int) -> list[list[int]]:
    """Append the same messages under the same keys, again and again; the numbers given out each time."""
    with StateStore.open(target) as store:
        return [
            [store.append(session_id, UserMessage(f"key-{turn}"), keys=[f"key-{turn}"])[0] for turn in range(count)]
            for _ in range(times)
        ]


def count_in_metadata(target: str, session_id: str, count: int) -> int:
    """Add one to a number in the metadata, again and again."""

    def count_one(session: Session) -> None:
        session.set_metadata("count", (session.get_metadata("count") or 0) + 1)

    with StateStore.open(target) as store:
        for _ in range(count):
            store.update_session_with(session_id, count_one)
    return count


def count_in_document(target: str, successes: int) -> list[tuple[int, str, int, str]]:
    """Replace a counter by one more, if it is what was read; each success with both values and versions."""
    done: list[tuple[int, str, int, str]] = []
    with StateStore.open(target) as store:
        while len(done) < successes:
            document = store.get_document("counters", "one", kind="json")
            value, version = (0, "") if document is None else (document.value, document.version)
            try:
                new = store.save_json("counters", "one", value + 1, if_version=version)
            except DocumentConflict:
                continue
            done.append((value, version, value + 1, new))
    return done


def open_and_greet(target: str, writer: str) -> list[int]:
    """Open what may not be there yet, and write at once."""
    with StateStore.open(target) as store:
        store.get_or_create_session("alice", "shared")
        return store.append("shared", UserMessage(writer))


def check_each_is_there_once(
    store: StateStore, writers: dict[str, int], told: dict[str, list[int]] | None = None
) -> None:
    """The only session has all that these writers said, so many turns each, under the numbers that they were told."""
    entries = store.timeline("shared")
    seqs = [entry.seq for entry in entries]
    assert seqs == sorted(set(seqs))
    by_writer: dict[str, list[tuple[int, int]]] = {writer: [] for writer in writers}
    for entry in entries:
        assert isinstance(entry.record, UserMessage)
        writer, _, turn = entry.record.content.partition(":")
        by_writer[writer].append((int(turn), entry.seq))
    for writer, count in writers.items():
        assert [turn for turn, _ in by_writer[writer]] == list(range(count))
        if told:
            assert [seq for _, seq in by_writer[writer]] == told[writer]
    assert len(entries) == sum(writers.values())
    (summary,) = store.list_sessions()
    assert summary.message_count == len(entries)
    assert store.check() == []
