"""``python -m statestore.conformance URL``: a report, and an exit status that can be relied on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from statestore import StateStore

BROKEN = """
import sys
import statestore.opening
sys.path.insert(0, sys.argv.pop(1))
statestore.opening._BUILT_IN |= {"broken": "broken_engines:open_broken", "nothing": "broken_engines:open_nothing"}
from statestore.conformance.__main__ import main
sys.exit(main())
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "statestore.conformance", *arguments], capture_output=True, text=True, check=False
    )


def run_broken(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", BROKEN, str(Path(__file__).parent), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_good_engine_gets_a_good_report() -> None:
    ended = run("memory:", "-k", "TestEngine and (keys or version)", "--json")
    report = json.loads(ended.stdout)
    assert (ended.returncode, report["is_good"], report["broken"]) == (0, True, 0)
    assert report["kept"] + report["not_offered"] == len(report["promises"]) > 10
    for promise in report["promises"]:
        assert set(promise["faces"]) == {"plain", "async"}
        assert promise["promise"].endswith(".")


def test_the_report_for_people_goes_promise_by_promise() -> None:
    ended = run("file:{place}", "-k", "test_the_last_put_wins or test_ties_go_by_id")
    assert ended.returncode == 0
    assert "Documents are kept.\n  kept    Writing a document again replaces it whole" in ended.stdout
    assert ended.stdout.endswith("2 promises: 2 kept, 0 broken (not all were tried)\n")


def test_what_is_not_offered_is_told_apart_from_what_is_kept() -> None:
    words = "test_the_best_comes_first or test_a_deletion_is_told or test_ties_go_by_id"
    of_sqlite = ["backup", "compact", "group", "point", "search", "watch"]
    for url, offers, kept in (("memory:", [], 1), ("sqlite:{place}.db", of_sqlite, 3)):
        report = json.loads(run(url, "-k", words, "--json").stdout)
        assert (report["is_good"], report["offers"]) == (True, offers)
        assert (report["kept"], report["broken"], report["not_offered"]) == (kept, 0, 3 - kept)
    ended = run("memory:", "-k", words)
    assert "offers nothing besides" in ended.stdout
    assert "1 kept, 0 broken, 2 of what is not offered, and is refused" in ended.stdout


def test_a_store_of_its_own_is_used_and_left_empty(tmp_path: Path) -> None:
    ended = run(
        f"file:{tmp_path}/shared", "-k", "test_three_kinds_share_a_name or merge or any_history", "--examples", "3"
    )
    assert ended.returncode == 0, ended.stdout
    with StateStore.open(f"file:{tmp_path}/shared") as store:
        assert (store.list_categories(), store.count_sessions()) == ([], 0)


def test_a_store_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    with StateStore.open(f"file:{tmp_path}/full") as store:
        store.save_json("notes", "precious", 1)
    ended = run(f"file:{tmp_path}/full")
    assert ended.returncode == 2
    assert "is not empty" in ended.stderr
    with StateStore.open(f"file:{tmp_path}/full") as store:
        assert store.load_json("notes", "precious") == 1


def test_a_broken_promise_is_told_and_ends_with_1() -> None:
    ended = run_broken("broken:{place}", "-k", "names_each_item_once or share_a_name")
    assert ended.returncode == 1
    assert "BROKEN  A batch that names an item twice is refused whole" in ended.stdout
    assert "2 promises: 1 kept, 1 broken" in ended.stdout


def test_what_is_no_engine_breaks_every_promise() -> None:
    ended = run_broken("nothing:{place}", "--json", "--examples", "1")
    report = json.loads(ended.stdout)
    assert (ended.returncode, report["is_good"], report["kept"]) == (1, False, 0)
    assert report["broken"] > 150


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["nothing:"], 1, "could not be opened"),
        (["no-such-engine:"], 2, "no engine"),
        (["memory:", "-k", "no_such_case"], 1, "nothing could be tried"),
    ],
)
def test_what_cannot_be_tried_is_not_good(arguments: list[str], status: int, said: str) -> None:
    ended = run_broken(*arguments)
    assert ended.returncode == status
    assert said in ended.stdout + ended.stderr
