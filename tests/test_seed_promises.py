"""What the Rust program's own seven tests promise."""

from datetime import UTC, datetime, timedelta

from statestore import PruneConfig, Session, StateStore


def test_a_new_session_persists(store: StateStore) -> None:
    session = Session.new("user-123")
    session.add_user_message("Hello")
    store.save_session(session)
    loaded = store.load_session(session.id)
    assert loaded is not None
    assert loaded.user_id == "user-123"
    assert [message.content for message in loaded.user_messages] == ["Hello"]


def test_sessions_are_listed_by_their_last_update_newest_first(store: StateStore) -> None:
    first = Session.new("user-0")
    others = [Session.new("user-1"), Session.new("user-2")]
    for number, session in enumerate([first, *others]):
        session.add_user_message(f"Message {number}")
        session.updated_at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=number)
        store.save_session(session)
    assert [summary.user_id for summary in store.list_sessions()] == ["user-2", "user-1", "user-0"]
    first.add_user_message("again")
    store.save_session(first)
    assert [summary.user_id for summary in store.list_sessions()] == ["user-0", "user-2", "user-1"]


def test_a_deleted_session_is_gone(store: StateStore) -> None:
    session = Session.new("user-123")
    store.save_session(session)
    assert store.delete_session(session.id) is True
    assert store.load_session(session.id) is None
    assert store.delete_session(session.id) is False


def test_get_or_create_gets_the_session_that_exists(store: StateStore) -> None:
    existing = Session.new("user-123")
    existing.add_user_message("Original message")
    store.save_session(existing)
    retrieved = store.get_or_create_session("user-123", existing.id)
    assert retrieved.id == existing.id
    assert [message.content for message in retrieved.user_messages] == ["Original message"]


def test_get_or_create_creates_and_stores_a_session(store: StateStore) -> None:
    session = store.get_or_create_session("user-456")
    assert session.user_id == "user-456"
    assert session.user_messages == []
    assert session.is_empty
    assert store.session_exists(session.id)
    named = store.get_or_create_session("user-456", "named")
    assert named.id == "named"
    assert store.session_exists("named")


def test_pruning_by_count_keeps_the_newest(store: StateStore) -> None:
    for number in range(5):
        session = Session.new(f"user-{number}")
        session.add_user_message(f"Message {number}")
        session.updated_at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number)
        store.save_session(session)
    assert store.prune_sessions(PruneConfig(max_sessions=3, ttl_hours=0)) == 2
    assert {summary.user_id for summary in store.list_sessions()} == {"user-2", "user-3", "user-4"}


def test_pruning_by_age_removes_what_is_older(store: StateStore) -> None:
    old = Session.new("old-user")
    old.updated_at = datetime.now(UTC) - timedelta(hours=48)
    store.save_session(old)
    recent = Session.new("recent-user")
    recent.add_user_message("Hello")
    store.save_session(recent)
    assert store.prune_sessions(PruneConfig(max_sessions=0, ttl_hours=24)) == 1
    assert [summary.user_id for summary in store.list_sessions()] == ["recent-user"]
