"""The commands that look, into a pipe: what they find, and what their JSON is."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import threading
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from leftovers import ANSWER
from program import command, environment, lines_of, refused, run

from children import PATIENCE
from disks import unwritable
from statestore import Session, StateStore, UserMessage


def json_lines(here: Path, *arguments: str) -> list[Any]:
    return [json.loads(line) for line in lines_of(here, *arguments, "--json")]


# -- ls ----------------------------------------------------------------------------------------------------------


def test_ls_lists_the_newest_first_with_whole_ids_and_no_styles(here: Path) -> None:
    head, first, *others = lines_of(here, "ls")
    assert head.split() == ["title", "id", "user", "project", "messages", "age", "size"]
    assert first.split() == [
        *("Which", "ferry", "arrives", "before", "noon?"),
        *("trip", "alice", "holidays", "2", "now", "449", "B"),
    ]
    assert "0aaaaaaa-2000-4000-8000-000000000000" in others[-1]
    assert "4w" in others[-1] or "30d" in others[-1]
    assert not set("\x1b─│╭╮╰╯━┃").intersection(head + first + "".join(others))


def test_ls_selects_by_user_project_and_age(here: Path) -> None:
    def ids(*arguments: str) -> list[str]:
        return [session["id"] for session in json_lines(here, "ls", *arguments)]

    assert ids("--limit", "2") == ["trip", "tokyo-weather"]
    assert ids("--project", "holidays") == ["trip"]
    assert ids("--user", "bob", "--since", "60h") == ["tokyo-weather", "hebrew-greeting"]
    assert len(ids("--all")) == 7
    for nobody in ("nobody", ""):
        assert refused(here, 1, "ls", "--user", nobody) == "statestore: there are no sessions like that\n"


def test_what_finds_no_sessions_at_all_names_the_store(here: Path) -> None:
    (here / "elsewhere").mkdir()
    for asked in ("ls", "stats"):
        complaint = refused(here, 1, "--store", "elsewhere", asked)
        assert complaint == f"statestore: there are no sessions in file:{here / 'elsewhere'}\n"


def test_ls_top_level_leaves_out_what_has_a_parent(here: Path) -> None:
    run(here, "fork", "trip", "--id", "trip-again")
    found = [session["id"] for session in json_lines(here, "ls", "--all", "--top-level")]
    assert len(found) == 7
    assert "trip-again" not in found
    assert len(json_lines(here, "ls", "--all")) == 8


def test_ls_all_lists_more_than_the_limit(here: Path) -> None:
    with StateStore.open(here / "state.db", durability="relaxed") as store, store.batch() as batch:
        for number in range(30):
            batch.save_session(Session("dave", f"more-{number}"))
    assert len(json_lines(here, "ls")) == 20
    assert len(json_lines(here, "ls", "--all")) == 37


# -- show --------------------------------------------------------------------------------------------------------


def test_show_tells_a_session_as_it_went(here: Path) -> None:
    text = "\n".join(lines_of(here, "show", "trip"))
    assert "project     holidays" in text
    asked, event, answered = text.index("#1 user"), text.index("#2 tool_call"), text.index("#3 agent")
    assert asked < event < answered
    assert '{"name":"timetable","arguments":{"from":"harbour","before":"12:00"}}' in text
    assert ANSWER in text


def test_show_can_be_raw_and_can_show_only_the_end(here: Path) -> None:
    text = "\n".join(lines_of(here, "show", "trip", "--raw", "--last", "2"))
    assert "what comes before #2 is not shown" in text
    assert "#1 user" not in text
    assert '    "before": "12:00"' in text


def test_show_as_json_is_one_object_with_the_stored_records(here: Path) -> None:
    (shown,) = json_lines(here, "show", "trip")
    assert list(shown) == ["session", "metadata", "timeline"]
    assert shown["session"]["user_id"] == "alice"
    assert shown["metadata"] == {"project_id": "holidays"}
    assert [(entry["seq"], entry["kind"]) for entry in shown["timeline"]] == [
        (1, "user"),
        (2, "tool_call"),
        (3, "agent"),
    ]
    assert shown["timeline"][2]["record"]["content"] == ANSWER


# -- ids ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["show", "tail"])
def test_an_id_may_be_cut_short_where_it_is_unique(here: Path, name: str) -> None:
    assert "#1 user" in "\n".join(lines_of(here, name, "tr"))
    assert refused(here, 2, name, "0aaa") == (
        "statestore: '0aaa' begins the ids of several sessions: type more of it\n"
        "  0aaaaaaa-1000-4000-8000-000000000000  One long id  (carol)\n"
        "  0aaaaaaa-2000-4000-8000-000000000000  Another long id  (carol)\n"
    )


def test_a_whole_id_is_never_ambiguous(here: Path) -> None:
    with StateStore.open(here / "state.db") as store:
        store.get_or_create_session("dave", "trip-2")
    (shown,) = json_lines(here, "show", "trip")
    assert shown["session"]["id"] == "trip"


def test_a_wrong_id_suggests_the_nearest(here: Path) -> None:
    complaint = refused(here, 1, "show", "tokio-weather")
    assert complaint.splitlines()[0] == "statestore: there is no session 'tokio-weather': did you mean"
    assert complaint.splitlines()[1].startswith("  tokyo-weather  東京")
    assert (
        refused(here, 1, "show", "zzzzzz")
        == "statestore: there is no session 'zzzzzz': statestore ls --all lists them\n"
    )


# -- tail --------------------------------------------------------------------------------------------------------


def test_tail_keeps_the_order_of_a_session_whatever_its_times(tmp_path: Path) -> None:
    with StateStore.open(tmp_path / "state.db") as store:
        store.save_session(Session.with_id("alice", "s"))
        for hour in (3, 2, 1):
            store.append("s", UserMessage(f"at {hour}", datetime(2026, 1, 1, hour, tzinfo=UTC)))
        store.save_session(Session.with_id("alice", "t"))
        store.append("t", UserMessage("at 2", datetime(2026, 1, 1, 2, tzinfo=UTC)))
    said = [(entry["session_id"], entry["seq"]) for entry in json_lines(tmp_path, "tail")]
    assert said == [
        ("t", 1),
        ("s", 1),
        ("s", 2),
        ("s", 3),
    ]


def test_tail_shows_what_was_said_last_of_one_session_and_of_all(here: Path) -> None:
    one = json_lines(here, "tail", "trip", "-n", "2")
    assert [(entry["session_id"], entry["seq"]) for entry in one] == [("trip", 2), ("trip", 3)]
    every = json_lines(here, "tail", "-n", "4")
    assert [(entry["session_id"], entry["seq"]) for entry in every] == [
        ("tokyo-weather", 2),
        ("trip", 1),
        ("trip", 2),
        ("trip", 3),
    ]


@pytest.mark.parametrize("which", [(), ("tri",)], ids=["all", "one"])
def test_tail_follows_what_another_process_adds(here: Path, which: tuple[str, ...]) -> None:
    follower = subprocess.Popen(
        command("tail", *which, "-f", "-n", "1", "--json"),
        cwd=here,
        env=environment(),
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    impatience = threading.Timer(PATIENCE, follower.kill)
    impatience.start()
    with follower:
        assert follower.stdout is not None
        assert json.loads(follower.stdout.readline())["seq"] == 3
        with StateStore.open(here / "state.db") as store:
            store.append("tokyo-weather", UserMessage("Not of this session."))
            store.append("trip", UserMessage("And back?"), UserMessage("Tonight?"))
            said = [json.loads(follower.stdout.readline()) for _ in range(2 if which else 3)]
            assert [entry["record"]["content"] for entry in said][-2:] == ["And back?", "Tonight?"]
            store.rewind_session("trip", to=3)
            assert json.loads(follower.stdout.readline()) == {"session_id": "trip", "what": "rewound", "seq": 3}
            store.delete_session("trip")
            assert json.loads(follower.stdout.readline())["what"] == "deleted"
            if not which:
                again = Session("bob", "trip")
                for number in range(4):
                    again.add_user_message(f"anew {number}")
                store.save_session(again)
                said = [json.loads(follower.stdout.readline())["record"]["content"] for _ in range(4)]
                assert said == ["anew 0", "anew 1", "anew 2", "anew 3"]
        impatience.cancel()
        follower.kill()


# -- search ------------------------------------------------------------------------------------------------------


def test_search_marks_the_words_and_tells_where_they_are(here: Path) -> None:
    lines = lines_of(here, "search", "ferry", "NOON")
    assert lines == [
        "Which ferry arrives before noon?  trip #1 user  alice",
        "    Which «ferry» arrives before «noon»?",
    ]
    assert "東京" in "".join(lines_of(here, "search", "東京"))


def test_search_selects_by_user_project_and_age(here: Path) -> None:
    def found(*arguments: str) -> set[tuple[str, int]]:
        return {(hit["session_id"], hit["seq"]) for hit in json_lines(here, "search", *arguments)}

    assert found("noted", "--since", "36h") == {("tokyo-weather", 2)}
    assert len(found("noted")) == 4
    assert len(found("noted", "--limit", "3")) == 3
    assert found("quay", "--project", "holidays") == {("trip", 3)}
    assert refused(here, 1, "search", "noted", "--user", "alice") == "statestore: nothing has 'noted' in it\n"


def words_in(path: Path) -> int:
    """How many texts the index of words knows."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT count(*) FROM words_docsize").fetchone()[0]


def test_search_by_age_leaves_out_what_is_damaged_and_says_so(here: Path) -> None:
    lines_of(here, "say", "tokyo-weather", "a ferry to Tokyo")
    with closing(sqlite3.connect(here / "state.db")) as database, database:
        database.execute("UPDATE records SET body = replace(body, '20', 'in ') WHERE body LIKE '%Which ferry%'")
    done = run(here, "search", "ferry", "--since", "1d", "--json")
    assert done.returncode == 0
    assert {json.loads(line)["session_id"] for line in done.stdout.splitlines()} == {"tokyo-weather"}
    assert "warning: session trip is left out" in done.stderr


def test_search_keeps_its_index_of_words(here: Path) -> None:
    assert words_in(here / "state.db") == 0
    assert lines_of(here, "search", "ferry")
    assert words_in(here / "state.db") > 0


def test_search_does_without_its_index_where_it_may_not_write(here: Path) -> None:
    (here / "state.db").chmod(0o400)
    with unwritable(here):
        assert "«ferry»" in "".join(lines_of(here, "search", "ferry"))
    assert words_in(here / "state.db") == 0


# -- stats -------------------------------------------------------------------------------------------------------


def test_stats_add_up(here: Path) -> None:
    (totals,) = json_lines(here, "stats")
    assert list(totals) == ["total", "by_user", "by_project", "by_day", "largest", "oldest"]
    assert totals["total"]["sessions"] == 7
    assert totals["total"]["messages"] == 14
    assert totals["total"]["events"] == 1
    for part in ("by_user", "by_day"):
        for key, number in totals["total"].items():
            assert sum(amount[key] for amount in totals[part].values()) == number
    assert totals["by_project"]["holidays"]["sessions"] == 1
    assert totals["oldest"][0]["id"] == "0aaaaaaa-2000-4000-8000-000000000000"
    sizes = [session["size"] for session in totals["largest"]]
    assert sizes == sorted(sizes, reverse=True)


def test_stats_for_people_cut_long_lists(here: Path) -> None:
    text = "\n".join(lines_of(here, "stats", "--top", "2"))
    assert text.startswith("7 sessions, 14 messages, 1 event,")
    assert "… and 1 more" in text
    assert "█" not in text


# -- documents ---------------------------------------------------------------------------------------------------


def test_docs_lists_categories_and_their_documents(here: Path) -> None:
    assert json_lines(here, "docs") == [
        {"category": "images", "documents": 1, "size": 6},
        {"category": "notes", "documents": 1, "size": 27},
        {"category": "projects/alpha", "documents": 1, "size": 33},
    ]
    assert lines_of(here, "docs", "notes") == ["name   kind  size", "today  md    27 B"]
    assert refused(here, 1, "docs", "projects").endswith("below it are\n  projects/alpha\n")
    assert refused(here, 1, "docs", "nothing") == "statestore: category 'nothing' holds no documents\n"
    assert refused(here, 2, "docs", "") == "statestore: invalid category '': it is empty\n"


def test_cat_prints_the_very_bytes(here: Path) -> None:
    done = subprocess.run(command("cat", "images/logo"), cwd=here, env=environment(), capture_output=True, check=True)
    assert done.stdout == b"\x89PNG\x00\xff"
    assert run(here, "cat", "notes/today.md").stdout == "# Today\n\nCall the harbour.\n"
    (plan,) = json_lines(here, "cat", "projects/alpha/plan")
    assert plan["value"] == {"steps": [1, 2]}
    assert json.loads(run(here, "cat", "sessions/trip").stdout)["user_id"] == "alice"
    assert json_lines(here, "cat", "images/logo")[0]["value"] == "iVBORwD/"


def test_a_wrong_document_suggests_the_nearest(here: Path) -> None:
    assert refused(here, 1, "cat", "notes/todya.md") == (
        "statestore: there is no document 'notes/todya.md': did you mean\n  notes/today.md\n"
    )
    assert refused(here, 1, "cat", "nothing/here").endswith("statestore docs lists them\n")


def test_a_document_whose_name_ends_like_a_kind_is_found(here: Path) -> None:
    with StateStore.open(here / "state.db") as store:
        store.save_json("notes", "report.md", {"is": "json"})
    assert json.loads(run(here, "cat", "notes/report.md").stdout) == {"is": "json"}


# -- check -------------------------------------------------------------------------------------------------------


def test_check_of_a_sound_store_ends_with_0(here: Path) -> None:
    assert lines_of(here, "check") == ["nothing is wrong: 7 sessions and all documents were looked at"]
    assert lines_of(here, "check", "--json") == []


def test_check_tells_what_is_wrong_where_and_what_to_do(tmp_path: Path) -> None:
    with StateStore.open(tmp_path / "state") as store:
        store.get_or_create_session("dave", "torn")
    (tmp_path / "state/sessions/torn.json").write_text("{")
    done = run(tmp_path, "--store", "state", "check", "--json")
    assert done.returncode == 1
    problem = json.loads(done.stdout)
    assert set(problem) == {"where", "what", "advice", "is_repaired"}
    assert "torn" in problem["where"]
    mended = run(tmp_path, "--store", "state", "repair", "--json")
    assert mended.returncode == 0
    assert json.loads(mended.stdout)["is_repaired"]
    assert (tmp_path / "state/.statestore/aside/sessions/torn.json").read_text() == "{"
    assert run(tmp_path, "--store", "state", "check").returncode == 0


def test_repair_of_an_engine_that_cannot_is_refused_and_says_who_can(here: Path) -> None:
    assert "does not offer repair" in refused(here, 3, "repair")
