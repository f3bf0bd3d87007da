"""Exports that people read: nothing that was said is markup, and everything that was said is there."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest
from exchanging import exported, store_with
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from statestore import AgentResponse, StateStore
from statestore.exchange import Format
from statestore.exchange.rendering import html_of

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"


def store_with_evil() -> StateStore:
    store = store_with()
    session = store.get_or_create_session(f"al{EVIL}", "s")
    session.set_metadata("title", f"Title {EVIL} \u202e")
    session.add_user_message(f"{EVIL} \x1b[31mred\x1b[0m \x9b31m \x7f \u202eobeyed")
    session.add_event(f"kind{EVIL}", {EVIL: f"</pre></details>{EVIL}"})
    session.add_agent_response(
        AgentResponse(
            f"{EVIL}\n\n[a](javascript:alert(3)) ![b](https://example.org/b.png) [c](https://example.org/?a=1&b=2)",
            phase_reached=EVIL,
            evaluation_passed=False,
        )
    )
    store.save_session(session)
    return store


class Seen(HTMLParser):
    """What a page holds: its elements, their attributes, and its text."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_no_text_becomes_an_element_of_the_page() -> None:
    with store_with_evil() as store:
        page = exported(store, format="html")
    seen = Seen(page)
    assert not {"script", "img", "iframe", "object", "link", "form"} & set(seen.elements)
    assert not [name for name, _ in seen.attributes if name.startswith("on")]
    links = [value for name, value in seen.attributes if name == "href" and not value.startswith("#")]
    assert links == ["https://example.org/b.png", "https://example.org/?a=1&b=2"]
    assert seen.text.count("<script>alert(1)</script>") >= 7  # title twice, user, speaker, message, event, answer
    assert "default-src 'none'" in dict(seen.attributes)["content"] or b"default-src 'none'" in page


def test_controls_are_shown_and_not_obeyed_in_what_people_read() -> None:
    with store_with_evil() as store:
        for format in ("html", "markdown"):
            text = exported(store, format=format).decode()
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
            assert "␛[31mred" in text
            assert r"\x9b31m" in text
            assert r"\u202eobeyed" in text


def test_a_page_names_title_participants_times_and_folds_events() -> None:
    with StateStore.open("memory:") as store:
        session = store.get_or_create_session("alice", "trip")
        session.project_id = "summer"
        session.add_user_message("Which ferry?\n  the early one")
        session.add_event("tool_call", {"name": "timetable"})
        session.add_agent_response("The **10:40**.")
        store.save_session(session)
        page = exported(store, "trip", format="html").decode()
        moment = f"{session.user_messages[0].timestamp:%Y-%m-%d %H:%M:%S} UTC"
    assert "<title>Which ferry?</title>" in page
    assert page.count(">alice<") == 2
    assert ">summer<" in page
    assert moment in page
    assert "Which ferry?\n  the early one" in page
    assert "<strong>10:40</strong>" in page
    assert re.search(r"<details><summary><b><bdi>tool_call</bdi></b>.*?</summary><pre", page, re.DOTALL)


def test_several_sessions_are_listed_first_and_newest_first() -> None:
    with StateStore.open("memory:") as store:
        for name in ("b one", "a two", "c/three".replace("/", "é")):
            session = store.get_or_create_session("alice", name)
            session.add_user_message(f"about {name}")
            store.save_session(session)
        page = exported(store, format="html").decode()
    links = re.findall(r'<li><a href="#([^"]*)">', page)
    assert links == ["session-c%C3%A9three", "session-a~20~two", "session-b~20~one"]
    assert re.findall(r'<article id="([^"]*)">', page) == ["session-céthree", "session-a~20~two", "session-b~20~one"]


def test_every_session_of_a_page_has_an_anchor_of_its_own_and_a_link_to_it() -> None:
    ids = {"a b", "a-b", "a~20~b", "a\u2028b", "a\xa0b", "a\u202eb", "a%20b", 'a"b', "a&b", "a_b"}
    with StateStore.open("memory:") as store:
        for each in ids:
            store.get_or_create_session("alice", each)
        page = exported(store, format="html").decode()
    anchors = re.findall(r'<article id="([^"]*)">', page)
    assert len(set(anchors)) == len(ids)
    assert not [anchor for anchor in anchors if re.search(r"\s", anchor)]
    assert [unquote(link) for link in re.findall(r'<li><a href="#([^"]*)">', page)] == anchors


@pytest.mark.parametrize("depth", [14, 25, 33, 34, 50, 99, 100, 101, 2000])
@pytest.mark.parametrize("nesting", ["> ", ">", "- ", "1. "])
def test_nothing_is_lost_however_deep_it_is_nested(nesting: str, depth: int) -> None:
    assert "secret" in html_of(nesting * depth + "secret")


def test_a_list_of_many_levels_is_still_a_list_and_has_them_all() -> None:
    for depth in (14, 60):
        page = html_of("".join("  " * level + f"- level {level}.\n" for level in range(depth)))
        assert [level for level in range(depth) if f"level {level}." not in page] == []
        assert ("<li>" in page) == (depth == 14)


@pytest.mark.parametrize("format", ["html", "markdown"])
def test_what_newer_programs_wrote_is_shown_too(format: Format) -> None:
    from exchanging import GOLDEN

    with StateStore.open(f"file:{GOLDEN}", read_only=True) as store:
        text = exported(store, "55555555-5555-4555-8555-555555555555", format=format).decode()
    assert "A newer session" in text
    assert "with extras" in text
    assert ("attachments" in text) == (format == "html")


SWALLOWING = st.lists(
    st.sampled_from(
        ["```", "~~~", "- a", "  ", "\n", "> ", "<!--", "<script>", "<pre>", "text", "1. ", "    ", "[x]: "]
    ),
    max_size=12,
).map("".join)


@settings(max_examples=200)
@given(SWALLOWING, SWALLOWING)
def test_no_message_swallows_the_next_one_in_markdown(one: str, other: str) -> None:
    with StateStore.open("memory:") as store:
        session = store.get_or_create_session("alice", "s")
        session.set_metadata("title", "T")
        session.add_user_message(one)
        session.add_agent_response(other)
        session.add_event("tool", {"a": "```"})
        session.add_user_message("last")
        store.save_session(session)
        text = exported(store, format="markdown").decode()
    tokens = MarkdownIt("commonmark").parse(text)
    headings = [
        tokens[place + 1].content.split(" · ")[0]
        for place, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0 and " · 20" in tokens[place + 1].content
    ]
    assert headings == ["alice", "agent", "alice"]


STAMP = "2026-01-01 00:00:00 UTC"
POSING = (
    f"hi\n\n## agent · {STAMP}\n\nI promise a refund",
    f"   ##\tagent · {STAMP} ##",
    f"agent · {STAMP}\n---\nI promise",
    "agent ·\n2026-01-01\n00:00:00 UTC\n---",
    "## agent &middot; 2026&#45;01-01 00:00:00 UTC",
    "## *agent* · 2026\\-**01**-01 00:00:00 `UTC`",
    f"<h2>agent · {STAMP}</h2>",
    f"<h2>agent ·\n\n{STAMP}</h2>",
    f"well <h2>agent · {STAMP}</h2>",
    f"- a list\n\n  ## agent · {STAMP}",
    f"> - > 1. ## agent · {STAMP}",
    f"<details>\n<summary>tool · {STAMP}</summary>\n\nx\n\n</details>",
    "bye\n\n---\n\n# Another\n\n- Session: other\n- User: bob",
    "# " + "long " * 50_000 + f"\n\n## agent · {STAMP}",
)
ORDINARY = (
    "# Title\n\n## Part\n\n- one\n- two",
    f"It was at {STAMP}.",
    "Title\n---\n\ntext",
    f"```\n## agent · {STAMP}\n```",
    "# Release 2026-01-01\n\n- Sessions: 3",
    "a <b>bold</b> word",
)


@pytest.mark.parametrize("text", POSING)
def test_no_message_poses_as_another_one_in_markdown(text: str) -> None:
    with StateStore.open("memory:") as store:
        session = store.get_or_create_session("alice", "s")
        session.add_user_message(text)
        store.save_session(session)
        tokens = MarkdownIt("commonmark").parse(exported(store, format="markdown").decode())
    assert [token.tag for token in tokens if token.type == "heading_open"] == ["h1", "h2"]
    assert (tokens[-1].type, tokens[-1].content) == ("fence", text + "\n")


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_headings_stay_as_they_were_written_in_markdown(text: str) -> None:
    with StateStore.open("memory:") as store:
        session = store.get_or_create_session("alice", "s")
        session.add_agent_response(text)
        store.save_session(session)
        assert exported(store, format="markdown").decode().endswith(f" UTC\n\n{text}\n")


def test_chat_messages_have_roles_and_events_only_if_they_are_messages() -> None:
    with StateStore.open("memory:") as store:
        session = store.get_or_create_session("alice", "s")
        call = {"role": "assistant", "tool_calls": [{"id": "c", "type": "function"}]}
        session.add_user_message("hi\n東京")
        session.add_event("thought", "hm")
        session.add_event("message", call)
        session.add_event("message", {"role": "tool", "tool_call_id": "c", "content": "4"})
        session.add_agent_response("4")
        store.save_session(session)
        store.get_or_create_session("bob", "t")
        lines = [json.loads(line) for line in exported(store, format="openai").splitlines()]
    assert lines == [
        {
            "messages": [
                {"role": "user", "content": "hi\n東京"},
                call,
                {"role": "tool", "tool_call_id": "c", "content": "4"},
                {"role": "assistant", "content": "4"},
            ]
        },
        {"messages": []},
    ]


def test_an_event_whose_role_is_not_a_text_is_no_chat_message() -> None:
    with StateStore.open("memory:") as store:
        session = store.get_or_create_session("alice", "s")
        for role in (["user"], {"user": 1}, None, 1, "nobody"):
            session.add_event("e", {"role": role})
        store.save_session(session)
        assert exported(store, format="openai") == b'{"messages":[]}\n'
