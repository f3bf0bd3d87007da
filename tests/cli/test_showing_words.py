"""``show`` on a terminal renders markdown, and hides nothing of what was said."""

from __future__ import annotations

import random
import re
from itertools import count
from pathlib import Path

import pytest
from program import STYLE, screen

from statestore import Session, StateStore
from statestore.cli.rendering import LONGEST, MOST_TOKENS, as_written, rendered

PIECES = (
    "List<%s>",
    "<%s>\n%s\n</%s>\n",
    "<!-- %s -->",
    "<br title='%s'/>\n",
    "<div>\n%s\n</div>\n\n",
    "![%s](https://%s.example/%s.png '%s')",
    "[%s](https://%s.example '%s')",
    "[%s](<%s %s>)",
    "<https://%s.example>",
    "\n\n[%s]: https://%s.example '%s'\n\n",
    "[%s][%s]",
    "\n```%s %s\n%s\n```\n",
    "\n    %s\n",
    "`%s`",
    "**%s** _%s_ ~~%s~~",
    "\n# %s\n",
    "\n%s\n===\n",
    "\n> %s\n> > %s\n",
    "\n- %s\n  - %s\n",
    "\n1. %s\n7. %s\n",
    "\n|%s|%s|\n|-|-|\n|%s|%s|%s|\n",
    "&%s;",
    "\\%s",
    "%s %s\n%s",
)


def shown(place: Path, *messages: str) -> str:
    """What a terminal shows of a conversation, without its styles."""
    with StateStore.open(place / "state.db", durability="relaxed") as store:
        session = Session("alice", "odd")
        for message in messages:
            session.add_agent_response(message)
        store.save_session(session)
    return STYLE.sub("", screen(place, 200, "show", "odd", PAGER="cat"))


def test_every_word_of_a_message_is_shown_on_a_terminal(tmp_path: Path) -> None:
    dice, numbers = random.Random(1), count()
    messages: list[str] = []
    for _ in range(400):
        pattern = "".join(dice.choices(PIECES, k=dice.randrange(1, 5)))
        messages.append(re.sub("%s", lambda _: f"w{next(numbers):05}z", pattern))
    text = shown(tmp_path, *messages)
    missing = [message for message in messages if any(word not in text for word in re.findall(r"w\d+z", message))]
    assert missing == []


@pytest.mark.parametrize(
    "message",
    [
        "Why does List<String> fail?",
        "See https://a.example/?x=1&lt=2 and [this](https://b.example/%C3%BC?q=ü).",
        ">" * 3000 + "x",
        "- " * 30 + "🙂",
        ">",
    ],
)
def test_what_rendering_would_hide_is_shown_as_it_is_written(tmp_path: Path, message: str) -> None:
    assert message in shown(tmp_path, message)


def test_a_cell_that_is_too_wide_is_shown_whole(tmp_path: Path) -> None:
    address = "https://example.com/" + "x" * 300
    assert address in shown(tmp_path, f"|a|b|\n|-|-|\n|1|{address}|\n")


def test_what_would_take_long_to_render_is_shown_as_it_is_written() -> None:
    table = "|a|b|\n|-|-|\n"
    long_one = table + "|1|2|\n" * (LONGEST // 6)
    wide = "|a" * 10 + "|\n" + "|-" * 10 + "|\n"
    many_cells = wide + "|1\n" * (MOST_TOKENS // 30)
    assert len(many_cells) < LONGEST < len(long_one)
    assert [rendered(long_one), rendered(many_cells)] == [as_written(long_one), as_written(many_cells)]
    assert "|" not in rendered(table + "|1|2|\n" * 100) + rendered(wide + "|1\n" * 100)


def test_no_spelling_of_a_direction_control_turns_the_terminal(tmp_path: Path) -> None:
    messages = ("a&#x202e;drow", "b&#8238;drow", "[c](https://d/&#x202e;e)")
    text = shown(tmp_path, *messages, "```&#x202e;\nf\n```")
    assert re.findall("[\u202a-\u202e\u2066-\u2069]", text) == []
    assert [message for message in messages if message not in text] == []
