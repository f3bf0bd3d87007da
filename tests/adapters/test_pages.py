"""The pages of the adapters are true: their Python runs, once the reader has brought a model."""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from adapters.running import loaded
from children import SOURCE
from statestore import StateStore

PAGES = SOURCE.parent / "docs" / "adapters"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TOLD = re.compile(r"^(\w.*\))  # ('.*')$", re.MULTILINE)
ANSWER = "The 10:40."
Brought = dict[str, Any]
"""The names that a page takes for given."""


def bring_openai_agents(_: pytest.MonkeyPatch) -> Brought:
    import agents

    agents.set_tracing_disabled(True)
    return {"agent": agents.Agent(name="Skipper", model=loaded("openai_agents").ScriptedModel(ANSWER))}


def bring_langgraph(_: pytest.MonkeyPatch) -> Brought:
    from langgraph.graph import START, MessagesState, StateGraph

    builder = StateGraph(MessagesState)
    builder.add_node("agent", lambda state: {"messages": [("ai", ANSWER)]})
    builder.add_edge(START, "agent")
    return {"builder": builder}


def bring_google_adk(_: pytest.MonkeyPatch) -> Brought:
    from google.adk.agents import LlmAgent

    from statestore.adapters.google_adk import StateStoreSessionService

    return {"agent": LlmAgent(name="skipper"), "service": StateStoreSessionService("state.db")}


def bring_pydantic_ai(_: pytest.MonkeyPatch) -> Brought:
    from pydantic_ai import Agent
    from pydantic_ai.messages import TextPart

    model, _given = loaded("pydantic_ai_agent").scripted(TextPart(ANSWER))
    return {"agent": Agent(model)}


def bring_claude_agent_sdk(patch: pytest.MonkeyPatch) -> Brought:
    import claude_agent_sdk

    claude = loaded("claude_agent_sdk_chat").ScriptedClaude(ANSWER)
    patch.setattr(claude_agent_sdk, "query", partial(claude_agent_sdk.query, transport=claude))
    return {}


def bring_strands(patch: pytest.MonkeyPatch) -> Brought:
    import strands

    model = loaded("strands_chat").ScriptedModel(ANSWER)
    patch.setattr(strands, "Agent", partial(strands.Agent, model=model, callback_handler=None))
    return {}


def bring_agent_framework(_: pytest.MonkeyPatch) -> Brought:
    from agent_framework import FunctionExecutor

    async def pass_on(text: str) -> None:
        """A step of a workflow."""

    return {
        "client": loaded("agent_framework_chat").ScriptedClient(ANSWER),
        "start": FunctionExecutor(pass_on, id="start"),
        "store": StateStore.open("memory:"),
    }


def bring_langchain(_: pytest.MonkeyPatch) -> Brought:
    from langchain_core.language_models import FakeListChatModel

    return {"model": FakeListChatModel(responses=[ANSWER])}


def bring_llama_index(_: pytest.MonkeyPatch) -> Brought:
    from llama_index.core.llms import ChatMessage

    return {"messages": [ChatMessage(content="Which ferry?")]}


def bring_several(_: pytest.MonkeyPatch) -> Brought:
    store = StateStore.open("memory:")
    store.get_or_create_session("alice", "trip")
    return {"store": store}


BRINGS: dict[str, tuple[str, Callable[[pytest.MonkeyPatch], Brought]]] = {
    "agent-framework": ("agent_framework", bring_agent_framework),
    "claude-agent-sdk": ("claude_agent_sdk", bring_claude_agent_sdk),
    "google-adk": ("google.adk", bring_google_adk),
    "index": ("agents", bring_several),
    "langchain": ("langchain_core", bring_langchain),
    "langgraph": ("langgraph.graph", bring_langgraph),
    "llama-index": ("llama_index.core", bring_llama_index),
    "openai-agents": ("agents", bring_openai_agents),
    "pydantic-ai": ("pydantic_ai", bring_pydantic_ai),
    "strands-agents": ("strands", bring_strands),
}
"""By page: what must be installed, and what the reader brings."""


def test_every_page_is_tried() -> None:
    assert sorted(path.stem for path in PAGES.glob("*.md")) == sorted(BRINGS)


@pytest.mark.filterwarnings("ignore")  # the frameworks' own
@pytest.mark.parametrize("page", BRINGS)
def test_the_blocks_of_a_page_run_and_give_what_they_say(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed, bring = BRINGS[page]
    pytest.importorskip(needed)
    monkeypatch.chdir(tmp_path)
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8").replace("postgresql://db/agents", "state.db")

    async def read() -> None:
        brought = bring(monkeypatch)
        names: Brought = {}
        for block in BLOCK.finditer(text):
            names |= brought
            padded = "\n" * text.count("\n", 0, block.start(1)) + block[1]  # a traceback shows the page's own lines
            running = eval(compile(padded, f"{page}.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
            if running is not None:
                await running
            for call, told in TOLD.findall(block[1]):
                assert repr(eval(call, names)) == told
        await close(brought)

    asyncio.run(read())


async def close(brought: Brought) -> None:
    """Close the stores and services among what was brought."""
    for one in brought.values():
        if isinstance(one, StateStore):
            one.close()
        elif hasattr(one, "close"):
            await one.close()


def test_links_of_the_pages_lead_to_files_that_exist() -> None:
    links = [(path, link) for path in PAGES.glob("*.md") for link in re.findall(r"\]\(([^)#:]+)\)", path.read_text())]
    assert links
    assert [(path.name, link) for path, link in links if not (PAGES / link).exists()] == []
