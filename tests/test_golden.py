"""A directory that the compiled Rust program wrote: every value is read, and what is not touched stays as it is."""

from __future__ import annotations

import json
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from faces import Face
from serdeform import CHRONO, pretty
from snapshots import visible
from statestore import AgentResponse, Session, StateStore

GOLDEN = Path(__file__).parent / "data" / "golden"
EMPTY = "11111111-1111-4111-8111-111111111111"
FULL = "22222222-2222-4222-8222-222222222222"
LISTED = "33333333-3333-4333-8333-333333333333"
LONG = "44444444-4444-4444-8444-444444444444"
NEWER = "55555555-5555-4555-8555-555555555555"
PLAIN = "plain-id_with.dots"
SESSIONS = [EMPTY, FULL, LISTED, LONG, NEWER, PLAIN]
FOX = "The quick brown fox jumps over the lazy "


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    shutil.copytree(GOLDEN, tmp_path / "golden")
    return tmp_path / "golden"


@pytest.fixture
def golden(face: Face, directory: Path) -> StateStore:
    return face.open(directory)


def loaded(store: StateStore, session_id: str) -> Session:
    session = store.load_session(session_id)
    assert session is not None
    return session


def text_of(directory: Path, session_id: str) -> str:
    return (directory / "sessions" / f"{session_id}.json").read_bytes().decode()


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)


def messages(session: Session) -> list[tuple[str, str]]:
    return [(message.content, message.timestamp_text) for message in session.user_messages]


def responses(session: Session) -> list[tuple[object, ...]]:
    return [
        (r.content, r.session_id, r.seed_id, r.phase_reached, r.evaluation_passed, r.timestamp_text)
        for r in session.agent_responses
    ]


# -- every value --------------------------------------------------------------------------------------------------


def test_there_are_the_six_sessions_and_nothing_is_wrong(golden: StateStore) -> None:
    assert sorted(summary.id for summary in golden.list_sessions()) == SESSIONS
    assert golden.check() == []


def test_the_empty_session(golden: StateStore) -> None:
    session = loaded(golden, EMPTY)
    assert (session.id, session.user_id) == (EMPTY, "user-empty")
    assert session.user_messages == session.agent_responses == session.events == []
    assert (session.active_seed_id, session.active_persona_id) == (None, None)
    assert (session.project_id, session.parent_session_id) == (None, None)
    assert session.created_at == session.updated_at == utc(2023, 11, 14, 22, 13, 20)
    assert session.metadata == {}
    assert session.is_empty
    assert session.exchange_count == 0


def test_the_full_session(golden: StateStore) -> None:
    session = loaded(golden, FULL)
    assert (session.id, session.user_id) == (FULL, "ユーザー-1")
    assert messages(session) == [
        ("Hello", "2023-11-14T22:13:30Z"),
        (session.user_messages[1].content, "2023-11-14T22:13:31.120Z"),
        ("naïve café 日本語 🦀", "2023-11-14T22:13:32.123456Z"),
        ("", "2023-11-14T22:13:33.123456789Z"),
    ]
    assert session.user_messages[1].content.startswith('quotes " and \\ and / and \b\f\n\r\t and \x01 ')
    assert session.user_messages[1].content == json.loads(text_of(GOLDEN, FULL))["user_messages"][1]["content"]
    assert [message.timestamp for message in session.user_messages] == [
        utc(2023, 11, 14, 22, 13, 30),
        utc(2023, 11, 14, 22, 13, 31, 120_000),
        utc(2023, 11, 14, 22, 13, 32, 123_456),
        utc(2023, 11, 14, 22, 13, 33, 123_456),
    ]
    assert responses(session) == [
        ("all set", FULL, "seed-a", "evaluate", True, "2023-11-14T22:13:31.000000005Z"),
        ("nulls", None, None, None, None, "2023-11-14T22:13:32Z"),
        ("failed", None, None, "execute", False, "2023-11-14T22:13:33.000001Z"),
    ]
    assert (session.active_seed_id, session.active_persona_id) == ("seed-a", "persona-π")
    assert session.created_at == utc(2023, 11, 14, 22, 13, 21, 123_000)
    assert session.updated_at == utc(2023, 11, 14, 22, 13, 40, 999_999), "cut, never rounded"
    assert session.updated_text == "2023-11-14T22:13:40.999999999Z"
    numbers = [0, -1, 1.5, 1e16, 1e-7, 18446744073709551615, -9223372036854775808, 0.1, 1e300, -0.0]
    nested = {"a": {"b": [True, False, None, {"c": "d"}]}, "empty_list": [], "empty_map": {}}
    assert session.metadata == {
        "null": None,
        "project_ids": "project-7",
        "nested": nested,
        "numbers": numbers,
        "キー": "値",
    }
    assert list(map(type, session.metadata["numbers"])) == list(map(type, numbers))
    assert str(session.metadata["numbers"][-1]) == "-0.0"
    assert session.exchange_count == 3


def test_the_order_of_the_full_session_follows_the_nanoseconds(golden: StateStore) -> None:
    told = [(entry.seq, entry.kind, entry.record.content) for entry in golden.timeline(FULL)]  # type: ignore[union-attr]
    contents = [content for content, _ in messages(loaded(golden, FULL))]
    assert told == [
        (1, "user", "Hello"),
        (2, "agent", "all set"),
        (3, "user", contents[1]),
        (4, "agent", "nulls"),
        (5, "user", contents[2]),
        (6, "agent", "failed"),
        (7, "user", ""),
    ]


def test_the_session_with_a_list_of_projects(golden: StateStore) -> None:
    session = loaded(golden, LISTED)
    assert session.user_id == "user-list"
    assert messages(session) == [(FOX, "2026-11-15T00:43:34.465292246Z"), (FOX, "2026-11-15T00:43:34.465293082Z")]
    assert responses(session) == [
        (FOX, LISTED, "seed-1", "execute", True, "2026-11-15T00:43:34.465292762Z"),
        (FOX, LISTED, "seed-1", "execute", True, "2026-11-15T00:43:34.465293447Z"),
    ]
    assert session.metadata == {"project_ids": ["p1", "p2"]}
    assert (session.created_text, session.updated_text) == (
        "2026-11-15T00:43:34.465291299Z",
        "2026-11-15T00:43:34.465293511Z",
    )
    assert [entry.kind for entry in session.timeline] == ["user", "agent", "user", "agent"], "under one microsecond"


def test_the_newer_session(golden: StateStore) -> None:
    session = loaded(golden, NEWER)
    assert session.user_id == "user-newer"
    assert messages(session) == [("with extras", "2026-06-01T10:00:00.000000001Z")]
    assert session.user_messages[0].timestamp == utc(2026, 6, 1, 10)
    assert session.user_messages[0].extra == {"attachments": [{"name": "a.png"}]}
    assert responses(session) == [("done", NEWER, None, "execute", None, "2026-06-01T10:00:01.5Z")]
    assert session.agent_responses[0].timestamp == utc(2026, 6, 1, 10, 0, 1, 500_000)
    assert session.agent_responses[0].extra == {"trajectory_range": {"start": 0, "end": 1}}
    assert (session.project_id, session.parent_session_id) == ("project-9", FULL)
    assert session.created_at == utc(2026, 6, 1, 9, 59, 59)
    assert session.updated_at == utc(2026, 6, 1, 10, 0, 1, 500_000)
    assert session.metadata == {"title": "A newer session"}


def test_the_plain_session(golden: StateStore) -> None:
    session = loaded(golden, PLAIN)
    assert session.user_id == "user-plain"
    assert messages(session) == [("The quick brown fox ", "2026-11-15T00:43:34.465784272Z")]
    assert responses(session) == [
        ("The quick brown fox ", PLAIN, "seed-1", "execute", True, "2026-11-15T00:43:34.465784886Z")
    ]
    assert session.metadata == {"project_ids": 42}
    assert session.created_text == "2026-11-15T00:43:34.465783790Z"
    assert session.updated_text == "2026-11-15T00:43:34.465784985Z"


@pytest.mark.parametrize("session_id", SESSIONS)
def test_every_value_is_what_the_json_module_reads(golden: StateStore, session_id: str) -> None:
    said = json.loads(text_of(GOLDEN, session_id))
    session = loaded(golden, session_id)
    assert (session.id, session.user_id) == (said["id"], said["user_id"])
    assert messages(session) == [(m["content"], m["timestamp"]) for m in said["user_messages"]]
    names = ("content", "session_id", "seed_id", "phase_reached", "evaluation_passed", "timestamp")
    assert responses(session) == [tuple(r.get(name) for name in names) for r in said["agent_responses"]]
    for name in ("active_seed_id", "active_persona_id", "project_id", "parent_session_id"):
        assert getattr(session, name) == said.get(name)
    assert (session.created_text, session.updated_text) == (said["created_at"], said["updated_at"])
    assert session.metadata == said["metadata"]
    assert golden.load_json("sessions", session_id) == said


def test_the_long_session_is_all_there_in_order(golden: StateStore) -> None:
    said = json.loads(text_of(GOLDEN, LONG))
    assert len(said["user_messages"]) > 100
    records = [("user", m["timestamp"]) for m in said["user_messages"]]
    records += [("agent", r["timestamp"]) for r in said["agent_responses"]]
    records.sort(key=lambda record: record[1].removesuffix("Z").ljust(len("2026-11-15T00:43:34.465937772"), "0"))
    timeline = golden.timeline(LONG)
    assert [(entry.kind, entry.record.timestamp_text) for entry in timeline] == records
    assert [entry.seq for entry in timeline] == list(range(1, len(records) + 1))


def test_the_summaries(golden: StateStore) -> None:
    told = {
        s.id: (
            s.user_id,
            s.message_count,
            s.response_count,
            s.project_id,
            s.title,
            s.active_seed_id,
            s.parent_session_id,
        )
        for s in golden.list_sessions()
    }
    count = len(json.loads(text_of(GOLDEN, LONG))["user_messages"])
    assert told[LONG][:4] == ("user-long", count, count, told[LONG][3])
    assert {key: value for key, value in told.items() if key != LONG} == {
        EMPTY: ("user-empty", 0, 0, None, None, None, None),
        FULL: ("ユーザー-1", 4, 3, "project-7", "Hello", "seed-a", None),
        LISTED: ("user-list", 2, 2, "p1", FOX.strip(), None, None),
        NEWER: ("user-newer", 1, 1, "project-9", "A newer session", None, FULL),
        PLAIN: ("user-plain", 1, 1, None, "The quick brown fox", None, None),
    }


# -- documents ----------------------------------------------------------------------------------------------------


def test_the_documents(golden: StateStore) -> None:
    assert golden.list_categories() == ["agents", "mixed", "notes", "projects/alpha"]
    assert golden.list_categories("projects") == ["projects/alpha"]
    assert golden.list_category("agents") == ["agent-1", "list"]
    assert golden.list_category("mixed") == ["a.b.c", "both"]
    assert golden.list_category("notes") == ["empty", "today"]
    assert golden.list_category("projects") == []
    assert golden.list_category("sessions") == SESSIONS
    assert golden.load_json("agents", "agent-1") == {"name": "a", "score": 0.5, "tags": []}
    assert golden.load_json("agents", "list") == [1, "two", None]
    assert golden.load_json("mixed", "a.b.c") == {}
    assert golden.load_json("mixed", "both") == {"kind": "json"}
    assert golden.load_markdown("mixed", "both") == (GOLDEN / "mixed/both.md").read_text(encoding="utf-8")
    assert golden.load_markdown("notes", "empty") == ""
    assert golden.load_markdown("notes", "today") == "# Today\n\n- naïve 日本語 🦀\r\n- second\n"
    assert golden.load_markdown("projects/alpha", "plan") == "nested category\n"
    assert golden.load_markdown("notes", "absent") is None
    assert golden.load_json("notes", "today") is None


def test_a_document_saved_with_the_value_it_has_keeps_its_bytes(golden: StateStore, directory: Path) -> None:
    for category, name in [("agents", "agent-1"), ("agents", "list"), ("mixed", "a.b.c"), ("mixed", "both")]:
        golden.save_json(category, name, golden.load_json(category, name))
        path = Path(category, f"{name}.json")
        assert (directory / path).read_bytes() == (GOLDEN / path).read_bytes()


# -- what is not touched stays ------------------------------------------------------------------------------------


def with_updated(text: str, session: Session) -> str:
    """The same file with a new ``updated_at``."""
    assert CHRONO.fullmatch(session.updated_text)
    return re.sub(r'(?<=\n  "updated_at": )"[^"]*"', f'"{session.updated_text}"', text, count=1)


def with_record(text: str, array: str, record: dict[str, object]) -> str:
    """The same file with one more element in one of its arrays."""
    element = "\n    " + pretty(record, indent=2)
    opening = f'\n  "{array}": ['
    place = text.index(opening) + len(opening)
    if text[place] == "]":
        return text[:place] + element + "\n  " + text[place:]
    end = text.index("\n  ]", place)
    return text[:end] + "," + element + text[end:]


def with_metadata(text: str, key: str, value: object) -> str:
    """The same file with one more metadata key, as the last."""
    member = "\n    " + json.dumps(key, ensure_ascii=False) + ": " + pretty(value, indent=2)
    if text.endswith('"metadata": {}\n}'):
        return text.removesuffix("}\n}") + member + "\n  }\n}"
    return text.removesuffix("\n  }\n}") + "," + member + "\n  }\n}"


def response_json(response: AgentResponse) -> dict[str, object]:
    return {
        "content": response.content,
        "session_id": response.session_id,
        "seed_id": response.seed_id,
        "phase_reached": response.phase_reached,
        "evaluation_passed": response.evaluation_passed,
        "timestamp": response.timestamp_text,
    }


@pytest.mark.parametrize("session_id", SESSIONS)
def test_one_more_message_changes_nothing_else(golden: StateStore, directory: Path, session_id: str) -> None:
    before = text_of(directory, session_id)
    session = loaded(golden, session_id)
    message = session.add_user_message('new "line"\n\u0007 日本')
    golden.save_session(session)
    record = {"content": message.content, "timestamp": message.timestamp_text}
    assert text_of(directory, session_id) == with_updated(with_record(before, "user_messages", record), session)
    again = loaded(golden, session_id)
    assert messages(again) == messages(session)
    assert again.updated_text == session.updated_text


@pytest.mark.parametrize("session_id", SESSIONS)
@pytest.mark.parametrize("is_full", [False, True])
def test_one_more_response_changes_nothing_else(
    golden: StateStore, directory: Path, session_id: str, is_full: bool
) -> None:
    before = text_of(directory, session_id)
    session = loaded(golden, session_id)
    given = AgentResponse("r", "s-1", "seed", "execute", False) if is_full else "r"
    response = session.add_agent_response(given)
    golden.save_session(session)
    expected = with_updated(with_record(before, "agent_responses", response_json(response)), session)
    assert text_of(directory, session_id) == expected


@pytest.mark.parametrize("session_id", SESSIONS)
def test_an_exchange_appended_without_a_load_changes_nothing_else(
    golden: StateStore, directory: Path, session_id: str
) -> None:
    before = text_of(directory, session_id)
    message = Session("user").add_user_message("question")
    response = AgentResponse("answer", timestamp=utc(2999, 1, 1))
    golden.append(session_id, message, response)
    text = with_record(before, "user_messages", {"content": "question", "timestamp": message.timestamp_text})
    expected = with_updated(with_record(text, "agent_responses", response_json(response)), loaded(golden, session_id))
    assert text_of(directory, session_id) == expected


@pytest.mark.parametrize("session_id", SESSIONS)
def test_one_event_is_one_more_metadata_key(golden: StateStore, directory: Path, session_id: str) -> None:
    before = text_of(directory, session_id)
    session = loaded(golden, session_id)
    event = session.add_event("tool", {"name": "bash", "args": [], "cost": 1e16})
    golden.save_session(session)
    note = {"events": [{"kind": "tool", "data": event.data, "timestamp": event.timestamp_text}]}
    assert text_of(directory, session_id) == with_updated(with_metadata(before, "statestore", note), session)


@pytest.mark.parametrize("session_id", SESSIONS)
def test_metadata_set_and_unset_changes_nothing_else(golden: StateStore, directory: Path, session_id: str) -> None:
    before = text_of(directory, session_id)
    session = loaded(golden, session_id)
    session.set_metadata("new κ", {"a": [1, 2.5]})
    golden.save_session(session)
    assert text_of(directory, session_id) == with_updated(with_metadata(before, "new κ", {"a": [1, 2.5]}), session)
    del session.metadata["new κ"]
    golden.save_session(session)
    assert text_of(directory, session_id) == with_updated(before, session)


def test_a_metadata_key_keeps_its_place_when_it_is_set_again(golden: StateStore, directory: Path) -> None:
    before = text_of(directory, FULL)
    session = loaded(golden, FULL)
    session.set_metadata("project_ids", "other")
    golden.save_session(session)
    expected = before.replace('"project_ids": "project-7"', '"project_ids": "other"')
    assert text_of(directory, FULL) == with_updated(expected, session)


def test_unsetting_a_metadata_key_takes_its_line_alone(golden: StateStore, directory: Path) -> None:
    before = text_of(directory, FULL)
    session = loaded(golden, FULL)
    del session.metadata["null"]
    golden.save_session(session)
    assert text_of(directory, FULL) == with_updated(before.replace('    "null": null,\n', ""), session)


@pytest.mark.parametrize("session_id", SESSIONS)
@pytest.mark.parametrize("field", ["active_seed_id", "active_persona_id"])
def test_an_active_field_set_and_unset_changes_nothing_else(
    golden: StateStore, directory: Path, session_id: str, field: str
) -> None:
    before = text_of(directory, session_id)
    session = loaded(golden, session_id)
    setattr(session, field, "new-é")
    golden.save_session(session)
    line = f'  "{field}": "new-é",\n'
    if f'\n  "{field}": ' in before:
        expected = re.sub(rf'  "{field}": .*\n', line, before)
    else:
        following = "project_id" if session_id == NEWER else "created_at"
        expected = before.replace(f'  "{following}": ', f'{line}  "{following}": ', 1)
    assert text_of(directory, session_id) == with_updated(expected, session)
    setattr(session, field, None)
    golden.save_session(session)
    assert text_of(directory, session_id) == with_updated(expected.replace(line, ""), session)


@pytest.mark.parametrize("session_id", SESSIONS)
def test_saving_what_did_not_change_writes_nothing_at_all(golden: StateStore, directory: Path, session_id: str) -> None:
    before = visible(directory)
    session = loaded(golden, session_id)
    assert session.metadata is not None
    assert len(session.timeline) == len(session.user_messages) + len(session.agent_responses)
    golden.save_session(session)
    golden.update_session(session)
    with golden.batch() as batch:
        batch.save_session(session)
    session.metadata = dict(session.metadata)
    golden.save_session(session)
    assert visible(directory) == before


def test_reading_everything_writes_nothing_but_the_index(golden: StateStore, directory: Path) -> None:
    before = visible(directory)
    for summary in golden.list_sessions():
        golden.load_session(summary.id)
        golden.timeline(summary.id)
    golden.check()
    golden.list_categories()
    assert visible(directory) == before
