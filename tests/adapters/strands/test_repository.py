"""The session repository of Strands: first the framework's own on files, then ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("strands")

from strands.session.file_session_manager import FileSessionManager
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

from adapters.conftest import ENGINES, new_url
from statestore.adapters.strands import StateStoreRepository

QUESTION: Any = {"role": "user", "content": [{"text": "Which ferry arrives before noon?"}]}
CALL: Any = {
    "role": "assistant",
    "content": [
        {"text": "Let me look."},
        {"toolUse": {"toolUseId": "t1", "name": "timetable", "input": {"before": "12:00"}}},
    ],
}
RESULT: Any = {
    "role": "user",
    "content": [{"toolResult": {"toolUseId": "t1", "status": "success", "content": [{"text": "10:40"}]}}],
}
ANSWER: Any = {"role": "assistant", "content": [{"text": "The 10:40."}]}
PICTURE: Any = {
    "role": "user",
    "content": [{"text": "And this pier?"}, {"image": {"format": "png", "source": {"bytes": b"\x89PNG\x00"}}}],
}
UNKNOWN: Any = {"role": "assistant", "content": [{"aBlockOfTomorrow": {"deep": [1, 2.5, None, "東京", "\u0000"]}}]}
THOUGHT: Any = {"role": "assistant", "content": [{"reasoningContent": {"reasoningText": {"text": "Hm."}}}]}
MESSAGES = [QUESTION, CALL, RESULT, ANSWER, PICTURE, UNKNOWN, THOUGHT]

Repository = Any


@pytest.fixture(params=["theirs", *ENGINES])
def repository(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Repository]:
    if request.param == "theirs":
        yield FileSessionManager("unused", storage_dir=str(tmp_path))
        return
    for url in new_url(request.param, tmp_path):
        ours = StateStoreRepository(url)
        yield ours
        ours.close()


@pytest.fixture
def filled(repository: Repository) -> Repository:
    """One with a session and an agent."""
    repository.create_session(Session("trip", SessionType.AGENT))
    repository.create_agent("trip", SessionAgent("skipper", {"stops": 1}, {"window": 40}, {"x": [1]}))
    return repository


def add(repository: Repository, *messages: Any, agent: str = "skipper", first: int = 0) -> list[SessionMessage]:
    added = [SessionMessage.from_message(message, number) for number, message in enumerate(messages, first)]
    for one in added:
        repository.create_message("trip", agent, one)
    return added


def test_a_session_is_made_once_and_read(repository: Repository) -> None:
    assert repository.read_session("trip") is None
    session = Session("trip", SessionType.AGENT)
    assert repository.create_session(session) is session
    assert repository.read_session("trip") == session
    with pytest.raises(SessionException, match="already exists"):
        repository.create_session(Session("trip", SessionType.AGENT))


def test_a_session_is_deleted_with_everything_in_it(filled: Repository) -> None:
    add(filled, *MESSAGES)
    filled.delete_session("trip")
    assert filled.read_session("trip") is None
    assert filled.read_agent("trip", "skipper") is None
    with pytest.raises(SessionException, match="does not exist"):
        filled.delete_session("trip")


def test_an_agent_is_read_as_it_was_written(filled: Repository) -> None:
    found = filled.read_agent("trip", "skipper")
    assert (found.agent_id, found.state, found.conversation_manager_state) == ("skipper", {"stops": 1}, {"window": 40})
    assert found._internal_state == {"x": [1]}
    assert filled.read_agent("trip", "nobody") is None


def test_an_agent_is_updated_and_keeps_the_moment_of_its_making(filled: Repository) -> None:
    before = filled.read_agent("trip", "skipper")
    filled.update_agent("trip", SessionAgent("skipper", {"stops": 2, "raw": b"\x00\xff"}, {}))
    after = filled.read_agent("trip", "skipper")
    assert after.state == {"stops": 2, "raw": b"\x00\xff"}
    assert after.created_at == before.created_at
    with pytest.raises(SessionException, match="does not exist"):
        filled.update_agent("trip", SessionAgent("nobody", {}, {}))


def test_messages_come_back_exactly_and_in_order(filled: Repository) -> None:
    assert filled.list_messages("trip", "skipper") == []
    added = add(filled, *MESSAGES)
    found = filled.list_messages("trip", "skipper")
    assert found == added
    assert [one.to_message() for one in found] == MESSAGES


def test_messages_are_listed_by_their_numbers(filled: Repository) -> None:
    for number in (2, 0, 11, 1):
        filled.create_message("trip", "skipper", SessionMessage.from_message(QUESTION, number))
    assert [one.message_id for one in filled.list_messages("trip", "skipper")] == [0, 1, 2, 11]


@pytest.mark.parametrize(("limit", "offset"), [(None, 0), (2, 0), (2, 3), (None, 4), (0, 0), (5, 100), (100, 5)])
def test_a_part_of_the_messages_can_be_listed(filled: Repository, limit: int | None, offset: int) -> None:
    added = add(filled, *MESSAGES)
    end = None if limit is None else offset + limit
    assert filled.list_messages("trip", "skipper", limit=limit, offset=offset) == added[offset:end]


def test_a_message_is_read_by_its_number(filled: Repository) -> None:
    added = add(filled, *MESSAGES)
    for one in added:
        assert filled.read_message("trip", "skipper", one.message_id) == one
    assert filled.read_message("trip", "skipper", 99) is None


@pytest.mark.parametrize("number", [0, 1, 3, 6])
def test_a_message_is_redacted_in_its_place(filled: Repository, number: int) -> None:
    added = add(filled, *MESSAGES)
    redacted = SessionMessage(MESSAGES[number], number, redact_message=ANSWER)
    filled.update_message("trip", "skipper", redacted)
    found = filled.list_messages("trip", "skipper")
    assert [one.to_message() for one in found] == [*MESSAGES[:number], ANSWER, *MESSAGES[number + 1 :]]
    assert found[number].created_at == added[number].created_at
    assert [one.message_id for one in found] == list(range(len(MESSAGES)))
    with pytest.raises(SessionException, match="does not exist"):
        filled.update_message("trip", "skipper", SessionMessage(ANSWER, 99))


def test_a_message_far_back_is_redacted(filled: Repository) -> None:
    add(filled, *[QUESTION, ANSWER] * 20)
    filled.update_message("trip", "skipper", SessionMessage(QUESTION, 2, redact_message=RESULT))
    found = [one.to_message() for one in filled.list_messages("trip", "skipper")]
    assert found == [QUESTION, ANSWER, RESULT, ANSWER, *[QUESTION, ANSWER] * 18]


def test_agents_have_messages_of_their_own(filled: Repository) -> None:
    filled.create_agent("trip", SessionAgent("cook", {}, {}))
    add(filled, QUESTION, CALL)
    add(filled, QUESTION, agent="cook")
    add(filled, RESULT, first=2)
    add(filled, ANSWER, agent="cook", first=1)
    assert [one.to_message() for one in filled.list_messages("trip", "skipper")] == [QUESTION, CALL, RESULT]
    assert [one.to_message() for one in filled.list_messages("trip", "cook")] == [QUESTION, ANSWER]
    filled.update_message("trip", "cook", SessionMessage(QUESTION, 0, redact_message=ANSWER))
    assert [one.to_message() for one in filled.list_messages("trip", "skipper")] == [QUESTION, CALL, RESULT]
    assert [one.to_message() for one in filled.list_messages("trip", "cook")] == [ANSWER, ANSWER]


def test_messages_of_an_agent_that_is_not_there_are_an_error(filled: Repository) -> None:
    with pytest.raises(SessionException):
        filled.list_messages("trip", "nobody")


class Swarm:
    """Several agents, as far as a repository sees them."""

    def __init__(self, name: str, state: Any) -> None:
        self.id = name
        self.state = state

    def serialize_state(self) -> Any:
        return self.state


def test_several_agents_have_a_state_together(filled: Repository) -> None:
    assert filled.read_multi_agent("trip", "crew") is None
    filled.create_multi_agent("trip", Swarm("crew", {"next": ["cook"]}))
    assert filled.read_multi_agent("trip", "crew") == {"next": ["cook"]}
    filled.update_multi_agent("trip", Swarm("crew", {"next": []}))
    assert filled.read_multi_agent("trip", "crew") == {"next": []}
    with pytest.raises(SessionException, match="does not exist"):
        filled.update_multi_agent("trip", Swarm("nobody", {}))


@pytest.mark.parametrize("bad", [{1, 2}, object()])
def test_what_is_not_json_is_refused_and_nothing_is_written(filled: Repository, bad: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        filled.create_message("trip", "skipper", SessionMessage({"role": "user", "content": [{"text": bad}]}, 0))
    assert filled.list_messages("trip", "skipper") == []
