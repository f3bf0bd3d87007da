"""Values that some engine, or the Rust program, could not give back are refused, saying what and where."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
from msgspec import structs

from snapshots import snapshot
from statestore import (
    AgentResponse,
    CorruptDocument,
    Event,
    InvalidCursor,
    InvalidValue,
    PruneConfig,
    PruneThrottle,
    Session,
    StateStore,
    UserMessage,
)


class Colour(enum.Enum):
    RED = "red"


NUMBER = UUID("12345678-1234-5678-1234-567812345678")


@pytest.mark.parametrize(
    ("key", "value", "title", "project"),
    [
        ("title", Colour.RED, "red", None),
        ("title", date(2026, 1, 31), "2026-01-31", None),
        ("title", 5, "hello", None),
        ("project_id", NUMBER, "hello", str(NUMBER)),
        ("project_ids", (NUMBER, "other"), "hello", str(NUMBER)),
        ("project_ids", [], "hello", None),
    ],
)
def test_listings_show_what_is_stored_whatever_it_was_made_of(
    store: StateStore, key: str, value: Any, title: str, project: str | None
) -> None:
    session = Session("alice", "s")
    session.add_user_message("hello")
    session.set_metadata(key, value)
    store.save_session(session)
    for _ in range(2):
        (summary,) = store.list_sessions()
        assert (summary.title, summary.project_id) == (title, project)
        if project:
            assert [found.id for found in store.list_sessions(project_id=project)] == ["s"]
        store.delete_session("s", trash_hours=1)
        store.restore_session("s")


def test_what_another_program_stored_is_saved_again_as_it_is(tmp_path: Path) -> None:
    with StateStore.open(tmp_path) as store:
        session = Session("alice", "s")
        session.project_id = "short"
        store.save_session(session)
        (file,) = tmp_path.glob("sessions/s.json")
        file.write_text(file.read_text().replace("short", "long" * 200))
        loaded = store.load_session("s")
        assert loaded is not None
        loaded.add_user_message("more")
        store.save_session(loaded)
        assert store.count_sessions(project_id="long" * 200) == 1
        loaded.project_id = "other" * 200
        with pytest.raises(InvalidValue, match="project_id is longer than 500 bytes"):
            store.save_session(loaded)


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


def endless() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


BAD: dict[str, tuple[Any, str]] = {
    "nan": (math.nan, "nan"),
    "inf": (math.inf, "inf"),
    "minus inf": (-math.inf, "inf"),
    "int key": ({1: "a"}, "key 1"),
    "none key": ({None: "a"}, "key None"),
    "bool key": ({True: "a"}, "key True"),
    "tuple key": ({(1, 2): "a"}, "key|tuple"),
    "naive datetime": (datetime(2026, 1, 1), "naive"),  # noqa: DTZ001
    "2**64": (2**64, "fit"),
    "below -2**63": (-(2**63) - 1, r"fit in 64 bits, from -2\*\*63 to 2\*\*64-1"),
    "10**30": (10**30, "fit"),
    "10**5000": (10**5000, "fit"),
    "101 levels": (nested(101), "100 levels"),
    "5000 levels": (nested(5000), "100 levels"),
    "200000 levels": (nested(200_000), "100 levels"),
    "itself": (endless(), "itself|100 levels"),
    "lone surrogate": ("\ud800", "surrogate"),
    "lone surrogate key": ({"\udfff": 1}, "surrogate"),
    "bytes": (b"x", "bytes"),
    "bytearray": (bytearray(b"x"), "bytearray|bytes"),
    "set": ({1, 2}, "set"),
    "frozenset": (frozenset([1]), "set"),
    "object": (object(), "object"),
    "complex": (1j, "complex"),
    "function": (len, "function|method"),
    "class": (dict, "type"),
    "path": (Path("x"), "Path"),
    "session": (Session("u"), "Session"),
    "ellipsis": (..., "ellipsis"),
    "generator": ((x for x in ()), "generator"),
}


def save_json(store: StateStore, value: Any) -> None:
    store.save_json("notes", "bad", value)


def save_json_in_a_batch(store: StateStore, value: Any) -> None:
    with store.batch() as batch:
        batch.save_markdown("notes", "good", "text")
        batch.save_json("notes", "bad", value)


def set_metadata(store: StateStore, value: Any) -> None:
    session = Session("alice")
    session.set_metadata("bad", value)
    store.save_session(session)


def assign_metadata(store: StateStore, value: Any) -> None:
    session = Session("alice")
    session.metadata["good"] = 1
    session.metadata["bad"] = value
    store.save_session(session)


def assign_all_metadata(store: StateStore, value: Any) -> None:
    session = Session("alice")
    session.metadata = {"bad": value}
    with store.batch() as batch:
        batch.save_markdown("notes", "good", "text")
        batch.save_session(session)


def change_stored_metadata(store: StateStore, value: Any) -> None:
    def change(session: Session) -> None:
        session.metadata["bad"] = value

    store.update_session_with("kept", change)


def add_event(store: StateStore, value: Any) -> None:
    session = Session("alice")
    session.add_event("bad", value)
    store.save_session(session)


def append_event(store: StateStore, value: Any) -> None:
    store.append("kept", UserMessage("good"), Event("bad", value))


WRITERS = [
    save_json,
    save_json_in_a_batch,
    set_metadata,
    assign_metadata,
    assign_all_metadata,
    change_stored_metadata,
    add_event,
    append_event,
]
PLACES = {
    "save_json": "notes/bad.json",
    "save_json_in_a_batch": "notes/bad.json",
    "add_event": "event's data",
    "append_event": "event's data",
}


def contents(store: StateStore) -> object:
    sessions = [(s.id, s.version) for s in store.list_sessions()]
    return store.list_categories(), store.list_category("notes"), sessions


@pytest.mark.parametrize(("value", "what"), BAD.values(), ids=BAD)
def test_a_bad_value_is_refused_everywhere_and_nothing_is_written(
    store: StateStore, directory: Path, value: Any, what: str
) -> None:
    store.save_session(Session("alice", "kept"))
    held = contents(store)
    before = snapshot(directory)
    for write in WRITERS:
        with pytest.raises(InvalidValue, match=what) as caught:
            write(store, value)
        assert PLACES.get(write.__name__, "metadata['bad']") in str(caught.value), write.__name__
        assert snapshot(directory) == before, write.__name__
    assert contents(store) == held


@pytest.mark.parametrize("deep", [lambda v: {"a": [0, {"b": v}]}, lambda v: [v], lambda v: {"k": v}])
def test_the_error_says_where_in_the_value(store: StateStore, deep: Callable[[Any], Any]) -> None:
    paths = {"[0]": [math.nan], ".a[1].b": {"a": [0, {"b": math.nan}]}}
    for path, value in paths.items():
        with pytest.raises(InvalidValue) as caught:
            store.save_json("notes", "n", value)
        assert f"notes/n.json{path}" in str(caught.value)
    with pytest.raises(InvalidValue):
        store.save_json("notes", "n", deep(2**64))


GOOD: dict[str, tuple[Any, Any]] = {
    "the largest": (2**64 - 1, 2**64 - 1),
    "the smallest": (-(2**63), -(2**63)),
    "100 levels": (nested(100), nested(100)),
    "tuple": ((1, (2,)), [1, [2]]),
    "aware datetime": (datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00Z"),
    "tiny": (5e-324, 5e-324),
    "texts": ("\0\u2028🦀", "\0\u2028🦀"),
    "empty": ({"": {}}, {"": {}}),
}


@pytest.mark.parametrize(("value", "back"), GOOD.values(), ids=GOOD)
def test_values_at_the_limits_come_back(store: StateStore, value: Any, back: Any) -> None:
    store.save_json("notes", "n", value)
    assert store.load_json("notes", "n") == back
    session = Session("alice", "s")
    session.set_metadata("k", value)
    session.add_event("e", value)
    store.save_session(session)
    loaded = store.load_session("s")
    assert loaded is not None
    assert loaded.metadata == {"k": back}
    assert loaded.events[0].data == back


class Point(msgspec.Struct):
    x: int


@dataclass
class Pair:
    a: Point
    b: str | None = None


def test_structs_and_dataclasses_are_values_too(store: StateStore) -> None:
    store.save_json("notes", "n", Pair(Point(1)))
    assert store.load_json("notes", "n") == {"a": {"x": 1}, "b": None}
    assert store.load_json("notes", "n", type=Pair) == Pair(Point(1))


class Text(str):
    __slots__ = ()


class Whole(int):
    pass


def test_subclasses_of_plain_types_are_what_they_stand_for(store: StateStore) -> None:
    value = {"t": Text("t"), "n": Whole(7), Text("k"): [Text("x")]}
    store.save_json("notes", "n", value)
    assert store.load_json("notes", "n") == {"t": "t", "n": 7, "k": ["x"]}
    session = Session("alice", "s")
    for key, item in value.items():
        session.set_metadata(key, item)
    session.add_event(Text("tool"), value, key=Text("key"))
    session.add_user_message(Text("m"), key=Text("key-2"))
    session.add_agent_response(AgentResponse(Text("r"), session.id, Text("seed"), Text("phase")))
    session.set_active_seed(Text("seed"))
    store.save_session(session)
    loaded = store.load_session("s")
    assert loaded is not None
    assert loaded.metadata == {"t": "t", "n": 7, "k": ["x"]}
    assert loaded.agent_responses[0].session_id == "s"
    assert (loaded.events[0].kind, loaded.active_seed_id) == ("tool", "seed")
    store.save_session(session)
    assert session.version == loaded.version, "nothing changed, so nothing was written"


@pytest.mark.parametrize("label", ["a\0b", "x" * 501, "é" * 251, "\ud800", b"x", 1])
def test_users_projects_kinds_and_keys_are_short_texts(store: StateStore, label: Any) -> None:
    session = Session("alice", "s")
    store.save_session(session)
    refused: list[Callable[[], Any]] = [
        lambda: Session(label),
        lambda: Event(label),
        lambda: session.add_event(label),
        lambda: session.add_user_message("m", key=label),
        lambda: session.add_agent_response("r", key=label),
        lambda: session.add_event("e", key=label),
        lambda: session.set_metadata(label, 1),
        lambda: store.append("s", UserMessage("m"), keys=[label]),
        lambda: store.get_or_create_session(label),
        lambda: store.for_user(label),
        lambda: store.erase_user(label),
    ]
    for refuse in refused:
        with pytest.raises(InvalidValue):
            refuse()
    assert session.timeline == []
    session.project_id = label
    with pytest.raises(InvalidValue, match="project_id"):
        store.save_session(session)
    session.project_id = None
    session.metadata[label] = 1
    with pytest.raises(InvalidValue, match="metadata key"):
        store.save_session(session)
    assert store.timeline("s") == []


def test_labels_of_500_bytes_are_fine(store: StateStore) -> None:
    label = "é" * 250
    session = Session(label, "s")
    session.project_id = label
    session.add_event(label, key=label)
    session.set_metadata(label, label)
    store.save_session(session)
    assert [s.id for s in store.list_sessions(user_id=label, project_id=label)] == ["s"]


@pytest.mark.parametrize("kind", ["user", "agent", ""])
def test_an_events_kind_is_not_that_of_a_message(kind: str) -> None:
    with pytest.raises(InvalidValue, match="kind"):
        Event(kind)
    with pytest.raises(InvalidValue, match="kind"):
        Session("alice").add_event(kind)


@pytest.mark.parametrize("bad", [None, 1, b"x", ["x"], "\ud800"])
def test_contents_are_texts(store: StateStore, bad: Any) -> None:
    session = Session("alice", "s")
    refused: list[Callable[[], Any]] = [
        lambda: UserMessage(bad),
        lambda: AgentResponse(bad),
        lambda: session.add_user_message(bad),
        lambda: session.add_agent_response(bad),
        lambda: store.save_markdown("notes", "n", bad),
    ]
    for refuse in refused:
        with pytest.raises(InvalidValue):
            refuse()
    assert session.timeline == []
    if bad is not None:
        for field in ("session_id", "seed_id", "phase_reached"):
            with pytest.raises(InvalidValue, match=field):
                AgentResponse("r", **{field: bad})
        session.active_seed_id = bad
        with pytest.raises(InvalidValue, match="active_seed_id"):
            store.save_session(session)
    for flag in (0, 1, "true"):
        with pytest.raises(InvalidValue, match="evaluation_passed"):
            AgentResponse("r", evaluation_passed=flag)  # type: ignore[arg-type]
    assert store.count_sessions() == 0


@pytest.mark.parametrize("bad", ["text", 1, None, [1]])
def test_bytes_are_bytes(store: StateStore, bad: Any) -> None:
    with pytest.raises(InvalidValue):
        store.save_bytes("notes", "n", bad)
    assert store.list_categories() == []


@pytest.mark.parametrize("moment", [datetime(2026, 1, 1), "2026-01-01T00:00:00Z", 0])  # noqa: DTZ001
def test_moments_are_aware_datetimes(store: StateStore, moment: Any) -> None:
    session = Session("alice")
    refused: list[Callable[[], Any]] = [
        lambda: UserMessage("m", timestamp=moment),
        lambda: AgentResponse("m", timestamp=moment),
        lambda: Event("m", timestamp=moment),
        lambda: setattr(session, "updated_at", moment),
        lambda: store.list_sessions(updated_since=moment),
        lambda: store.count_sessions(updated_since=moment),
    ]
    for refuse in refused:
        with pytest.raises(InvalidValue):
            refuse()


@pytest.mark.parametrize("metadata", [None, [], "text", [("a", 1)]])
def test_metadata_is_a_dict(store: StateStore, metadata: Any) -> None:
    session = Session("alice", "s")
    store.save_session(session)
    with pytest.raises(InvalidValue, match="metadata"):
        session.metadata = metadata
    assert session.metadata == {}


def test_the_key_of_our_notes_is_reserved(store: StateStore) -> None:
    session = Session("alice", "s")
    with pytest.raises(InvalidValue, match="reserved"):
        session.set_metadata("statestore", {})
    session.metadata["statestore"] = {"events": []}
    with pytest.raises(InvalidValue, match="reserved"):
        store.save_session(session)
    assert not store.session_exists("s")


# -- numbers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["max_sessions", "ttl_hours", "max_sessions_per_user"])
@pytest.mark.parametrize("bad", [-1, -(10**30), 0.5, 1.0, math.nan, math.inf, "1", "", True, False, None, [1], b"1"])
def test_a_prune_config_takes_whole_numbers_from_0_up(field: str, bad: Any) -> None:
    with pytest.raises(InvalidValue, match=field):
        PruneConfig(**{field: bad})


@pytest.mark.parametrize("huge", [2**63, 2**64, 10**30])
def test_nothing_is_older_than_a_huge_number_of_hours(store: StateStore, huge: int) -> None:
    session = Session("alice", "old")
    session.updated_at = datetime(1, 1, 1, tzinfo=UTC)
    store.save_session(session)
    for config in (
        PruneConfig(ttl_hours=huge),
        PruneConfig(ttl_hours=huge, max_sessions=huge, max_sessions_per_user=huge),
    ):
        assert store.prune_sessions(config, dry_run=True) == []
        assert store.prune_sessions(config) == 0
    assert store.session_exists("old")
    assert store.prune_sessions(PruneConfig(ttl_hours=1)) == 1


def test_zero_means_no_limit(store: StateStore) -> None:
    session = Session("alice", "old")
    session.updated_at = datetime.now(UTC) - timedelta(days=10_000)
    store.save_session(session)
    assert store.prune_sessions(PruneConfig(max_sessions=0, ttl_hours=0)) == 0


@pytest.mark.parametrize("bad", [-1, -0.1, math.nan, "60", None])
def test_a_throttle_takes_a_number_from_0_up(bad: Any) -> None:
    with pytest.raises(InvalidValue, match="cooldown_secs"):
        PruneThrottle(bad)
    with pytest.raises(InvalidValue, match="cooldown_secs"):
        StateStore.open("memory:", prune_cooldown_secs=bad)


@pytest.mark.parametrize("bad", [-1, 0.5, 1.0, "1", True, math.nan, [1], b"1"])
def test_counts_and_record_numbers_are_whole_numbers_from_0_up(store: StateStore, bad: Any) -> None:
    session = Session("alice", "s")
    session.add_user_message("m")
    store.save_session(session)
    refused: list[tuple[str, Callable[[], Any]]] = [
        ("limit", lambda: store.list_sessions(limit=bad)),
        ("last", lambda: store.load_session("s", last=bad)),
        ("before", lambda: store.timeline("s", before=bad)),
        ("limit", lambda: store.timeline("s", limit=bad)),
        ("at", lambda: store.fork_session("s", at=bad)),
        ("to", lambda: store.rewind_session("s", to=bad)),
    ]
    for name, refuse in refused:
        with pytest.raises(InvalidValue, match=rf"\b{name}\b"):
            refuse()
    with pytest.raises(InvalidValue):
        store.rewind_session("s", to=None)  # type: ignore[arg-type]
    assert store.count_sessions() == 1
    assert len(store.timeline("s")) == 1


@pytest.mark.parametrize("huge", [2**31, 2**63, 2**64, 10**30])
def test_huge_counts_mean_all(store: StateStore, huge: int) -> None:
    session = Session("alice", "s")
    session.add_user_message("m")
    store.save_session(session)
    assert len(store.list_sessions(limit=huge)) == 1
    loaded = store.load_session("s", last=huge)
    assert loaded is not None
    assert len(loaded.user_messages) == 1
    assert len(store.timeline("s", before=huge, limit=huge)) == 1
    assert len(store.fork_session("s", at=huge).user_messages) == 1
    assert store.rewind_session("s", to=huge) == []


@pytest.mark.parametrize("bad", ["", "x", "é", "\ud800", "=", "MTox=", "MTo x", 1, b"MTp4", [], "9" * 5000, "Og"])
@pytest.mark.parametrize("order", ["updated", "id"])
def test_a_cursor_is_one_that_a_summary_gave(store: StateStore, bad: Any, order: Any) -> None:
    with pytest.raises(InvalidCursor, match="cursor"):
        store.list_sessions(after=bad, order=order)


@pytest.mark.parametrize("bad", ["newest", "", None, 1, "ID"])
def test_there_are_two_orders(store: StateStore, bad: Any) -> None:
    with pytest.raises(InvalidValue, match="order"):
        store.list_sessions(order=bad)


@pytest.mark.parametrize("bad", ["", "txt", "JSON", 1, b"json"])
def test_there_are_three_kinds_of_documents(store: StateStore, bad: Any) -> None:
    store.save_json("notes", "n", 1)
    with pytest.raises(InvalidValue, match="kind"):
        store.get_document("notes", "n", kind=bad)
    with pytest.raises(InvalidValue, match="kind"):
        store.delete_file("notes", "n", kind=bad)
    with pytest.raises(InvalidValue, match="kind"), store.batch() as batch:
        batch.delete_file("notes", "n", kind=bad)
    assert store.load_json("notes", "n") == 1


def test_appending_takes_records_and_one_key_for_each(store: StateStore) -> None:
    store.save_session(Session("alice", "s"))
    for bad in ("text", None, {"content": "x"}, Session("alice")):
        with pytest.raises(InvalidValue, match="record"):
            store.append("s", UserMessage("good"), bad)  # type: ignore[arg-type]
    for keys in ([], ["a", "b"], [""]):
        with pytest.raises(InvalidValue, match="key"):
            store.append("s", UserMessage("good"), keys=keys)
    assert store.timeline("s") == []


def test_fields_of_a_programs_own_are_kept_beside_a_record(store: StateStore) -> None:
    session = Session("alice", "with-extra")
    extra = {"item": {"id": "x1", "parts": [1, None]}, "body": "a word like any other", "kind": "user"}
    session.user_messages.append(UserMessage("hello", extra=extra))
    session.agent_responses.append(AgentResponse("hi", seed_id="s", extra=extra))
    event_extra = {"item": [1], "content": "of an event"}
    session.events.append(Event("tool", {"a": 1}, extra=event_extra))
    store.save_session(session)
    loaded = store.load_session("with-extra")
    assert loaded is not None
    assert (loaded.user_messages[0].content, loaded.user_messages[0].extra) == ("hello", extra)
    response = loaded.agent_responses[0]
    assert (response.content, response.seed_id, response.extra) == ("hi", "s", extra)
    assert (loaded.events[0].data, loaded.events[0].extra) == ({"a": 1}, event_extra)
    told = [msgspec.json.decode(record.json) for record in (loaded.user_messages[0], response, loaded.events[0])]
    assert told == [value for _, value in store.timeline_as("with-extra", dict[str, Any])]
    assert UserMessage("hello", extra={}).extra == {}


def test_a_record_that_is_made_of_another_tells_what_was_replaced_and_keeps_the_rest(store: StateStore) -> None:
    message = structs.replace(UserMessage("my secret", extra={"body": 1, "tags": ["a"]}), content="(redacted)")
    response = structs.replace(AgentResponse("yes", seed_id="s", extra={"cost": 3}), seed_id=None)
    event = structs.replace(Event("tool", {"a": 1}, extra={"item": 2}), kind="call")
    session = Session("alice", "replaced")
    session.user_messages.append(message)
    session.agent_responses.append(response)
    session.events.append(event)
    store.save_session(session)
    loaded = store.load_session("replaced")
    assert loaded is not None
    (found,) = loaded.user_messages
    assert (found.content, found.extra) == ("(redacted)", {"body": 1, "tags": ["a"]})
    assert (loaded.agent_responses[0].seed_id, loaded.agent_responses[0].extra) == (None, {"cost": 3})
    assert (loaded.events[0].kind, loaded.events[0].data, loaded.events[0].extra) == ("call", {"a": 1}, {"item": 2})
    assert message == found
    assert "secret" not in repr(message)


@dataclass
class Holder:
    inside: Any


@pytest.mark.parametrize("value", [b"abc", bytearray(b"abc"), memoryview(b"abc")])
def test_bytes_are_refused_inside_of_objects_too(store: StateStore, value: Any) -> None:
    """JSON would give back something else."""
    for holder in (value, Holder(value), [Holder({"deep": value})]):
        with pytest.raises(InvalidValue, match="is not JSON: use a list or a text, or save_bytes"):
            store.save_json("notes", "n", holder)
    assert store.list_categories() == []


def test_a_number_that_json_does_not_have_is_damage_and_no_wrong_type(tmp_path: Path) -> None:
    with StateStore.open(tmp_path) as store:
        store.save_json("notes", "n", 5)
        (tmp_path / "notes" / "n.json").write_text("1e999")
        with pytest.raises(CorruptDocument, match=r"notes/n\.json cannot be read"):
            store.load_json("notes", "n")


@pytest.mark.parametrize(
    "bad", [{"content": "other"}, {"timestamp": 1}, {1: 2}, {"a": float("nan")}, {"a": b""}, 5, ["a"]]
)
def test_extra_fields_are_json_under_names_of_their_own(bad: Any) -> None:
    with pytest.raises(InvalidValue, match="extra"):
        UserMessage("hello", extra=bad)
