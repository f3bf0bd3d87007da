"""A session file that we write is one that the Rust program could have written: rules, order, form."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from serdeform import check_session, pretty, ryu
from statestore import AgentResponse, Event, Session, StateStore, UserMessage

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.sampled_from(
    [
        "\x00",
        "".join(map(chr, range(32))),
        "\x7f\x80\x9f",
        "\u2028\u2029",
        "🦀👩‍👩‍👧",
        "é\u0301",
        '"\\/',
        "\ufeff",
        "\ufffe\uffff",
    ]
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
labels = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> tuple[StateStore, Path]:
    directory = tmp_path_factory.mktemp("form") / "state"
    return StateStore.open(directory, durability="relaxed"), directory


def text_of(directory: Path, session_id: str) -> str:
    return (directory / "sessions" / f"{session_id}.json").read_bytes().decode()


def test_a_new_empty_session_has_all_required_fields_and_no_optional_ones(
    files_store: StateStore, directory: Path
) -> None:
    session = Session("user", "s")
    files_store.save_session(session)
    assert text_of(directory, "s") == (
        "{\n"
        '  "id": "s",\n'
        '  "user_id": "user",\n'
        '  "user_messages": [],\n'
        '  "agent_responses": [],\n'
        f'  "created_at": "{session.created_text}",\n'
        f'  "updated_at": "{session.updated_text}",\n'
        '  "metadata": {}\n'
        "}"
    )
    check_session(text_of(directory, "s"))


def test_everything_a_session_can_hold_is_written_by_the_seeds_rules(files_store: StateStore, directory: Path) -> None:
    session = Session("user", "s")
    session.add_user_message("question")
    session.add_agent_response("bare")
    session.add_agent_response(AgentResponse("full", "s", "seed", "execute", True))
    session.add_agent_response(AgentResponse("failed", evaluation_passed=False))
    session.set_active_seed("seed")
    session.set_active_persona("persona")
    session.project_id = "project"
    session.parent_session_id = "parent"
    session.set_metadata("k", {"a": [], "b": {}, "c": [1.0, 1e16, -0.0, None]})
    session.add_event("tool", {"args": []}, key="k1")
    files_store.save_session(session)
    said = check_session(text_of(directory, "s"))
    assert [r["evaluation_passed"] for r in said["agent_responses"]] == [None, True, False]
    assert said["agent_responses"][0] == {
        "content": "bare",
        "session_id": None,
        "seed_id": None,
        "phase_reached": None,
        "evaluation_passed": None,
        "timestamp": session.agent_responses[0].timestamp_text,
    }
    assert said["active_seed_id"] == "seed"
    session.set_active_seed(None)
    session.set_active_persona(None)
    session.project_id = session.parent_session_id = None
    files_store.save_session(session)
    said = check_session(text_of(directory, "s"))
    assert not {"active_seed_id", "active_persona_id", "project_id", "parent_session_id"} & set(said)


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02T03:04:05Z"),
        (datetime(2026, 1, 2, 3, 4, 5, 120_000, tzinfo=UTC), "2026-01-02T03:04:05.120Z"),
        (datetime(2026, 1, 2, 3, 4, 5, 1, tzinfo=UTC), "2026-01-02T03:04:05.000001Z"),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=2))), "2026-01-02T01:04:05Z"),
        (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00Z"),
        (datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), "9999-12-31T23:59:59.999999Z"),
    ],
)
def test_moments_have_0_3_or_6_digits_and_a_z(shared: tuple[StateStore, Path], moment: datetime, text: str) -> None:
    store, directory = shared
    session = Session("user")
    session.user_messages.append(UserMessage("m", timestamp=moment))
    store.save_session(session)
    said = check_session(text_of(directory, session.id))
    assert said["user_messages"][0]["timestamp"] == text
    loaded = store.load_session(session.id)
    assert loaded is not None
    assert loaded.user_messages[0].timestamp == moment


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(
    contents=st.lists(texts, min_size=1, max_size=4), user=labels, key=labels.filter(bool), value=values, persona=texts
)
def test_any_text_and_value_round_trips_and_the_file_keeps_its_form(
    shared: tuple[StateStore, Path], contents: list[str], user: str, key: str, value: Any, persona: str
) -> None:
    store, directory = shared
    session = Session(user)
    for content in contents:
        session.add_user_message(content)
        session.add_agent_response(AgentResponse(content, phase_reached=content))
    session.set_active_persona(persona)
    if key != "statestore":
        session.set_metadata(key, value)
    store.save_session(session)
    check_session(text_of(directory, session.id))
    session.add_event("odd", value, key=key)  # and by splicing into what is there
    session.add_user_message(contents[-1])
    store.save_session(session)
    said = check_session(text_of(directory, session.id))
    with StateStore.open(directory, durability="relaxed") as fresh:
        loaded = fresh.load_session(session.id)
    assert loaded is not None
    assert [message.content for message in loaded.user_messages] == [*contents, contents[-1]]
    assert [message["content"] for message in said["user_messages"]] == [*contents, contents[-1]]
    assert [response.phase_reached for response in loaded.agent_responses] == contents
    assert (loaded.user_id, loaded.active_persona_id) == (user, persona)
    assert json.dumps(loaded.metadata.get(key)) == json.dumps(None if key == "statestore" else value)
    assert json.dumps(loaded.events[0].data) == json.dumps(value)


@settings(max_examples=150)
@given(value=values)
def test_a_json_document_is_what_serde_would_write(shared: tuple[StateStore, Path], value: Any) -> None:
    store, directory = shared
    store.save_json("values", "v", value)
    assert (directory / "values" / "v.json").read_bytes() == pretty(value).encode()
    assert json.dumps(store.load_json("values", "v")) == json.dumps(value)


def test_the_forms_of_floats_are_those_of_the_golden_files() -> None:
    numbers = [1.5, 1e16, 1e-7, 0.1, 1e300, -0.0, 0.5, 1e15, 123456789012345680.0, 0.00001, 1.5e-10]
    assert [ryu(number) for number in numbers] == [
        *("1.5", "1e16", "1e-7", "0.1", "1e300", "-0.0", "0.5"),
        *("1000000000000000.0", "1.2345678901234568e17", "0.00001", "1.5e-10"),
    ]


def test_events_are_kept_where_the_seed_keeps_them_for_us(files_store: StateStore, directory: Path) -> None:
    """The seed drops top-level fields that it does not know, and keeps metadata."""
    session = Session("user", "s")
    session.add_user_message("m")
    session.events.append(Event("tool", {"a": 1}, timestamp=datetime(2030, 1, 1, tzinfo=UTC)))
    files_store.save_session(session)
    said = check_session(text_of(directory, "s"))
    events = said["metadata"]["statestore"]["events"]
    assert events == [{"kind": "tool", "data": {"a": 1}, "timestamp": "2030-01-01T00:00:00Z"}]
    loaded = files_store.load_session("s")
    assert loaded is not None
    assert loaded.metadata == {}, "and it is hidden from users"
