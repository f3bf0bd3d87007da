"""What an adapter takes back or replaces is its framework's: what lies beside it in the session stays, once, in order.

A framework sees what a list of its own would hold after the same change, whatever lies between its items.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytest.importorskip("agents")
pytest.importorskip("llama_index.core")

from llama_index.core.llms import ChatMessage
from llama_index.core.storage.chat_store.base_db import MessageStatus

from statestore import AgentResponse, AsyncStateStore, Event, NotSupported, Record, UserMessage
from statestore.adapters.handoff import dialect_of
from statestore.adapters.llama_index import StateStoreChatStore, StateStoreDBChatStore
from statestore.adapters.openai_agents import StateStoreSession
from statestore.store.beneath import engine_of

TRIP = "trip"
OPENAI: list[Any] = [
    {"role": "user", "content": "Which ferry?"},
    {"role": "assistant", "content": "The 10:40."},
    {"type": "reasoning", "id": "rs", "summary": []},
    {"type": "function_call", "call_id": "c", "name": "timetable", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": "10:40"},
]
CALLS = [{"id": "c", "type": "function", "function": {"name": "timetable", "arguments": "{}"}}]
LLAMA: list[Any] = [
    ChatMessage(role="user", content="Which ferry?"),
    ChatMessage(role="assistant", content="Let me look.", additional_kwargs={"tool_calls": CALLS}),
    ChatMessage(role="tool", content="10:40", additional_kwargs={"tool_call_id": "c"}),
    ChatMessage(role="assistant", content="The 10:40."),
]
STRANDS: list[Any] = [
    {"message": {"role": "user", "content": [{"text": "Which ferry?"}]}, "message_id": 0},
    {
        "message": {
            "role": "assistant",
            "content": [{"text": "Let me look."}, {"toolUse": {"toolUseId": "s", "name": "timetable", "input": {}}}],
        },
        "message_id": 1,
    },
    {
        "message": {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "s", "status": "success", "content": [{"text": "10:40"}]}}],
        },
        "message_id": 2,
    },
]


def _plain(number: int) -> Record:
    """What the program itself notes as part of the conversation."""
    return (
        UserMessage(f"said {number}"),
        AgentResponse(f"answered {number}"),
        Event("tool_call", {"id": "p", "name": "weather", "arguments": {}}),
        Event("tool_result", {"id": "p", "output": str(number)}),
    )[number % 4]


class Step(NamedTuple):
    """Something that is added: the framework's own item, another's, the program's, or what lies beside them."""

    whose: str
    number: int


STEPS = st.lists(
    st.builds(Step, st.sampled_from(["own", "own", "strands", "plain", "event", "keyed", "twice"]), st.integers(0, 11)),
    max_size=14,
)


class Framework(NamedTuple):
    """A framework's own items, and how its adapter does what is tried."""

    own: list[Any]
    add: Callable[[AsyncStateStore, Any], Awaitable[object]]
    items: Callable[[AsyncStateStore], Awaitable[list[Any]]]
    pop: Callable[[AsyncStateStore], Awaitable[Any]]
    replace: Callable[[AsyncStateStore, list[Any]], Awaitable[object]]
    delete: Callable[[AsyncStateStore, int], Awaitable[Any]] | None = None


FRAMEWORKS = {
    "openai-agents": Framework(
        OPENAI,
        lambda store, item: StateStoreSession(TRIP, store).add_items([item]),
        lambda store: StateStoreSession(TRIP, store).get_items(),
        lambda store: StateStoreSession(TRIP, store).pop_item(),
        lambda store, items: StateStoreSession(TRIP, store)._atomic_replace_items(items),
    ),
    "llama-index": Framework(
        LLAMA,
        lambda store, message: StateStoreChatStore(store).async_add_message(TRIP, message),
        lambda store: StateStoreChatStore(store).aget_messages(TRIP),
        lambda store: StateStoreChatStore(store).adelete_last_message(TRIP),
        lambda store, messages: StateStoreChatStore(store).aset_messages(TRIP, messages),
        lambda store, index: StateStoreChatStore(store).adelete_message(TRIP, index),
    ),
}
NAMES = pytest.mark.parametrize("name", FRAMEWORKS)


async def _added(store: AsyncStateStore, framework: Framework, steps: list[Step]) -> None:
    await store.get_or_create_session("", TRIP)
    for place, (whose, number) in enumerate(steps):
        match whose:
            case "own":
                await framework.add(store, framework.own[number % len(framework.own)])
            case "strands":
                await store.append(TRIP, *dialect_of("strands").records(STRANDS[number % len(STRANDS)]))
            case "plain":
                await store.append(TRIP, _plain(number), keys=[f"plain {place}"])
            case "keyed":
                await store.append(TRIP, Event("feedback", {"stars": number}), keys=[f"feedback {place}"])
            case _:
                await store.append(TRIP, *[Event("audit", {"by": number})] * (1 + (whose == "twice")))


async def _beside(store: AsyncStateStore) -> list[tuple[bytes, str | None]]:
    """What is no item, as it is stored, with its keys."""
    stored = await engine_of(store).read_session(TRIP)
    assert stored is not None
    keys = stored.records.numbering.keys
    return [(one.body, keys.get(one.seq)) for one in stored.records.in_order() if one.kind in ("feedback", "audit")]


def _played(scene: Callable[[AsyncStateStore], Awaitable[None]], url: str = "memory:") -> None:
    async def play() -> None:
        async with AsyncStateStore.open(url) as store:
            await scene(store)

    asyncio.run(play())


@NAMES
@given(steps=STEPS)
@example(steps=[Step("own", 0), Step("own", 1), Step("keyed", 5), Step("own", 0), Step("own", 1), Step("twice", 1)])
def test_the_last_item_is_taken_back_and_nothing_else(name: str, steps: list[Step]) -> None:
    async def scene(store: AsyncStateStore) -> None:
        framework = FRAMEWORKS[name]
        await _added(store, framework, steps)
        model, beside = await framework.items(store), await _beside(store)
        while model:
            assert await framework.pop(store) == model.pop()
            assert await framework.items(store) == model
            assert await _beside(store) == beside
        assert await framework.pop(store) is None
        assert await _beside(store) == beside
        assert {entry.kind for entry in await store.timeline(TRIP)} <= {"feedback", "audit"}

    _played(scene)


@NAMES
@given(
    steps=STEPS,
    start=st.integers(0, 8),
    end=st.integers(0, 8),
    numbers=st.lists(st.integers(0, 4), max_size=3),
)
def test_any_part_of_the_items_is_replaced_and_nothing_else(
    name: str, steps: list[Step], start: int, end: int, numbers: list[int]
) -> None:
    async def scene(store: AsyncStateStore) -> None:
        framework = FRAMEWORKS[name]
        await _added(store, framework, steps)
        model, beside = await framework.items(store), await _beside(store)
        model[start:end] = [framework.own[number % len(framework.own)] for number in numbers]
        await framework.replace(store, list(model))
        assert await framework.items(store) == model
        assert await _beside(store) == beside
        before = await store.timeline(TRIP)
        await framework.replace(store, list(model))
        assert await store.timeline(TRIP) == before

    _played(scene)


@given(steps=STEPS, places=st.lists(st.integers(-6, 6), max_size=4))
def test_an_item_is_deleted_by_its_place_and_nothing_else(steps: list[Step], places: list[int]) -> None:
    async def scene(store: AsyncStateStore) -> None:
        framework = FRAMEWORKS["llama-index"]
        assert framework.delete is not None
        await _added(store, framework, steps)
        model, beside = await framework.items(store), await _beside(store)
        for place in places:
            expected = model.pop(place) if -len(model) <= place < len(model) else None
            assert await framework.delete(store, place) == expected
            assert await framework.items(store) == model
            assert await _beside(store) == beside

    _played(scene)


@given(
    steps=STEPS,
    acts=st.lists(st.tuples(st.sampled_from(["archive", "delete", "one", "archived", "set"]), st.integers(0, 3))),
)
def test_a_queue_loses_messages_and_nothing_else(steps: list[Step], acts: list[tuple[str, int]]) -> None:
    async def scene(store: AsyncStateStore) -> None:
        await _added(store, FRAMEWORKS["llama-index"], steps)
        chats = StateStoreDBChatStore(store)
        archived: list[ChatMessage] = []
        active, beside = await chats.get_messages(TRIP), await _beside(store)
        for act, number in acts:
            match act:
                case "archive":
                    assert await chats.archive_oldest_messages(TRIP, number) == active[:number]
                    archived, active = archived + active[:number], active[number:]
                case "delete":
                    assert await chats.delete_oldest_messages(TRIP, number) == active[:number]
                    active = active[number:]
                case "one":
                    rows = await chats._rows(TRIP, None)
                    if rows:
                        row = number % len(rows)
                        same = [index for index, one in enumerate(rows) if one.seq == rows[row].seq]
                        await chats.delete_message(TRIP, rows[row].seq)
                        left = [one for index, one in enumerate(archived + active) if index not in same]
                        count = len(archived) - sum(index < len(archived) for index in same)
                        archived, active = left[:count], left[count:]
                case "archived":
                    await chats.delete_messages(TRIP, MessageStatus.ARCHIVED)
                    archived = []
                case _:
                    archived, active = [], LLAMA[:number]
                    await chats.set_messages(TRIP, active)
            assert await chats.get_messages(TRIP) == active
            assert await chats.get_messages(TRIP, MessageStatus.ARCHIVED) == archived
            assert await _beside(store) == beside

    _played(scene)


@NAMES
@pytest.mark.parametrize("engine", ["sqlite:{}/state.db", "file:{}/state"])
def test_what_stays_keeps_its_number_its_key_its_moment_and_its_order(name: str, engine: str, tmp_path: Any) -> None:
    framework = FRAMEWORKS[name]
    own, other = framework.own[0], framework.own[-1]

    async def scene(store: AsyncStateStore) -> None:
        await framework.add(store, own)
        await store.append(TRIP, Event("feedback", 1), keys=["one"])
        await framework.add(store, own)
        await store.append(TRIP, Event("feedback", 2), UserMessage("And one more."), keys=["two", "three"])
        before = await store.timeline(TRIP)

        await framework.replace(store, [own, other, (await framework.items(store))[2]])
        after = await store.timeline(TRIP)
        assert after[:2] == before[:2]
        assert [entry.record for entry in after[3:]] == [entry.record for entry in before[3:]]
        assert await framework.items(store) == [own, other, (await framework.items(store))[2]]

        again = await store.append(TRIP, *(UserMessage("?"),) * 3, keys=["one", "two", "three"])
        assert again == [after[1].seq, after[3].seq, after[4].seq]
        assert await store.timeline(TRIP) == after

        await framework.replace(store, [own, other, (await framework.items(store))[2], own])
        assert (await store.timeline(TRIP))[:-1] == after

    _played(scene, engine.format(tmp_path))


def test_the_same_message_goes_whose_place_was_named() -> None:
    async def scene(store: AsyncStateStore) -> None:
        await store.get_or_create_session("", TRIP)
        await store.append(TRIP, UserMessage("Yes."), UserMessage("Yes."), keys=["first", "second"])
        await StateStoreChatStore(store).adelete_message(TRIP, 0)
        (left,) = await store.timeline(TRIP)
        assert await store.append(TRIP, UserMessage("Yes."), keys=["second"]) == [left.seq]

    _played(scene)


@NAMES
def test_what_is_appended_while_an_item_is_taken_back_stays(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    framework = FRAMEWORKS[name]

    async def scene(store: AsyncStateStore) -> None:
        await _added(store, framework, [Step("own", 0), Step("keyed", 3), Step("own", 1), Step("keyed", 4)])
        model, beside = await framework.items(store), await _beside(store)
        load, came = store.load_session, []

        async def overtaken(*arguments: Any, **options: Any) -> Any:
            loaded = await load(*arguments, **options)
            if len(came) < 2:
                came.append(await store.append(TRIP, Event("feedback", "late"), keys=[f"late {len(came)}"]))
            return loaded

        monkeypatch.setattr(store, "load_session", overtaken)
        assert await framework.pop(store) == model.pop()
        assert await framework.items(store) == model
        after = await _beside(store)
        assert after[: len(beside)] == beside
        assert [key for _, key in after[len(beside) :]] == ["late 0", "late 1"]

    _played(scene)


def test_many_take_back_and_append_at_once_and_nothing_is_lost(store_url: str) -> None:
    async def scene(store: AsyncStateStore) -> None:
        session = StateStoreSession(TRIP, store)
        for number in range(10):
            await session.add_items([{"role": "user", "content": str(number)}])
            await store.append(TRIP, Event("feedback", number), keys=[f"early {number}"])
        popped = await asyncio.gather(
            *(session.pop_item() for _ in range(8)),
            *(store.append(TRIP, Event("audit", number), keys=[f"late {number}"]) for number in range(8)),
        )
        taken = [item["content"] for item in popped if isinstance(item, dict)]
        assert sorted(taken) == [str(number) for number in range(2, 10)]
        assert [item["content"] for item in await session.get_items()] == ["0", "1"]
        keys = [key or "" for _, key in await _beside(store)]
        assert keys[:10] == [f"early {number}" for number in range(10)]
        assert sorted(keys[10:]) == [f"late {number}" for number in range(8)]

    _played(scene, store_url)


def test_a_record_goes_with_what_is_shown_beside_it() -> None:
    async def scene(store: AsyncStateStore) -> None:
        session = StateStoreSession(TRIP, store)
        await store.get_or_create_session("", TRIP)
        await store.append(TRIP, Event("feedback", 0), *dialect_of("strands").records(STRANDS[1]), Event("feedback", 1))
        assert (await session.pop_item() or {}).get("name") == "timetable"
        assert [entry.kind for entry in await store.timeline(TRIP)] == ["feedback", "agent", "feedback"]
        assert await session.pop_item() == {"role": "assistant", "content": "Let me look."}
        assert [entry.kind for entry in await store.timeline(TRIP)] == ["feedback", "feedback"]

    _played(scene)


@NAMES
def test_what_a_thread_of_langgraph_needs_is_not_taken_from_it(name: str) -> None:
    pytest.importorskip("langgraph")
    from langchain_core.messages import AIMessage, HumanMessage
    from langgraph.graph import START, MessagesState, StateGraph

    from statestore.adapters.langgraph import StateStoreSaver

    framework = FRAMEWORKS[name]

    async def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"So {len(state['messages'])}.")]}

    async def scene(store: AsyncStateStore) -> None:
        builder = StateGraph(MessagesState)
        builder.add_node("agent", answer)
        builder.add_edge(START, "agent")
        graph = builder.compile(checkpointer=StateStoreSaver(store))
        thread: Any = {"configurable": {"thread_id": TRIP}}

        async def said(text: str) -> list[Any]:
            state = await graph.ainvoke({"messages": [HumanMessage(text)]}, thread)
            return [message.content for message in state["messages"]]

        for text in ("1", "2"):
            await said(text)
        machinery = [entry.kind for entry in await store.timeline(TRIP) if entry.kind not in ("user", "agent")]
        await framework.add(store, framework.own[0])
        assert await framework.pop(store) == framework.own[0]
        assert await said("3") == ["1", "So 1.", "2", "So 3.", "3", "So 5."]

        items = await framework.items(store)
        before = await store.timeline(TRIP)
        for change in (framework.pop(store), framework.replace(store, items[1:])):
            with pytest.raises(NotSupported, match="is a LangGraph thread"):
                await change
        assert await store.timeline(TRIP) == before
        assert [entry.kind for entry in before if entry.kind not in ("user", "agent")][: len(machinery)] == machinery
        assert await said("4") == ["1", "So 1.", "2", "So 3.", "3", "So 5.", "4", "So 7."]

    _played(scene)
