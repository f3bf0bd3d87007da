"""The exported page in a real browser: it reads well on a screen and a phone, light and dark, and runs nothing."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from exchanging import exported

from statestore import AgentResponse, StateStore
from untried import untried

NAMES = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next((found for name in NAMES if (found := shutil.which(name))), None)
MEASURE = """
<script>
const seen = {
  width: document.documentElement.scrollWidth, room: innerWidth, title: document.title,
  paper: getComputedStyle(document.body).backgroundColor, ink: getComputedStyle(document.body).color,
  found: ["ferry arrives", "10:40", "東京都", "שלום", "timetable"].map(words => [words, window.find(words)]),
  open: [...document.querySelectorAll("details")].map(each => each.open),
  rightward: getComputedStyle(document.querySelector(".said")).direction,
  tall: document.querySelector("details pre").getBoundingClientRect().height,
};
document.documentElement.dataset.seen = JSON.stringify(seen);
</script>
"""
"""What the tests add to a copy of the page to look at it; the page itself has no script, and allows none."""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with all that is hard to show."""
    if BROWSER is None:
        untried("BROWSER", "there is no chromium to open the page in (apt-get install chromium)")
    evil = "<script>document.title='taken over'</script><img src=x onerror=\"document.title='taken over'\">"
    with StateStore.open("memory:") as store:
        session = store.get_or_create_session("alice", "trip")
        session.set_metadata("title", f"A day {evil}")
        session.add_user_message(f"Which ferry arrives before noon? {evil}\n" + "nospaces" * 60)
        session.add_event("tool_call", {"name": "timetable", "long": "x" * 500, evil: evil})
        session.add_agent_response(
            AgentResponse(
                f"The **10:40**. {evil}\n\n| a | b |\n|---|---|\n| {'wide' * 60} | {'table' * 60} |\n\n"
                f"```\n{'code' * 100}\n```\n\n私は東京都に住んでいます\n\n[x](javascript:document.title='taken')",
                phase_reached="execute" * 20,
            )
        )
        session.add_user_message("שלום עולם, 10:40?")
        store.save_session(session)
        text = exported(store, "trip", format="html")
    path = tmp_path_factory.mktemp("page") / "trip.html"
    path.write_bytes(text)
    return path


def browse(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    assert BROWSER is not None
    home = path.parent / "profile"
    return subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={home}", *options, path.as_uri()],
        capture_output=True,
        encoding="utf-8",
        timeout=100,
        check=True,
    )


def seen_in(page: Path, *options: str) -> dict[str, Any]:
    """What a script sees in a copy of the page that allows scripts."""
    text = re.sub(r"<meta http-equiv=[^>]*>", "", page.read_text(), count=1).replace("</body>", MEASURE + "</body>")
    copy = page.with_name("measured.html")
    copy.write_text(text)
    found = re.search(r'data-seen="([^"]*)"', browse(copy, "--dump-dom", *options).stdout)
    assert found is not None
    return json.loads(html.unescape(found[1]))


def test_nothing_that_was_said_runs_even_where_scripts_are_allowed(page: Path) -> None:
    assert seen_in(page)["title"].startswith("A day <script>document.title=")


@pytest.mark.parametrize("width", [1200, 500])
def test_the_page_is_never_wider_than_the_screen_and_words_are_found(page: Path, width: int) -> None:
    seen = seen_in(page, f"--window-size={width},900")
    assert seen["width"] <= seen["room"]
    assert [words for words, is_found in seen["found"][:4] if not is_found] == []
    assert seen["open"] == [False, False]


def test_the_page_is_light_or_dark_as_the_reader_likes(page: Path) -> None:
    def brightness(colour: str) -> int:
        return sum(map(int, re.findall(r"\d+", colour)[:3]))

    light = seen_in(page, "--blink-settings=preferredColorScheme=1")
    dark = seen_in(page, "--blink-settings=preferredColorScheme=0")
    assert brightness(light["paper"]) > 700
    assert brightness(light["ink"]) < 150
    assert brightness(dark["paper"]) < 150
    assert brightness(dark["ink"]) > 600


def test_the_page_itself_opens_without_complaint_and_prints(page: Path) -> None:
    dom = browse(page, "--dump-dom").stdout
    assert "<title>A day &lt;script&gt;" in dom
    assert "<script" not in dom
    printed = page.with_name("trip.pdf")
    browse(page, f"--print-to-pdf={printed}")
    assert printed.read_bytes().startswith(b"%PDF")
