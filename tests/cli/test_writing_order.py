"""``delete``, ``prune``, ``trash``, ``restore``: what goes is shown, asked for, and can be had back."""

from __future__ import annotations

import json
from pathlib import Path

from program import STYLE, Terminal, lines_of, refused, run, screen

from statestore import StateStore, UserMessage

OLD = ("0aaaaaaa-1000-4000-8000-000000000000", "0aaaaaaa-2000-4000-8000-000000000000")


def ids_in(place: Path) -> set[str]:
    with StateStore.open(place / "state.db", read_only=True) as store:
        return {summary.id for summary in store.list_sessions()}


def test_what_is_deleted_can_be_restored_with_all_that_it_had(here: Path) -> None:
    whole = lines_of(here, "export", "trip")
    before = ids_in(here)
    assert lines_of(here, "delete", "trip", "tokyo-weather")[0].startswith(
        "deleted trip: statestore restore trip brings it back"
    )
    assert ids_in(here) == before - {"trip", "tokyo-weather"}
    listed = [json.loads(line) for line in lines_of(here, "trash", "--json")]
    assert {each["session"]["id"] for each in listed} == {"trip", "tokyo-weather"}
    assert lines_of(here, "restore", "tri", "--json") == ['{"session_id":"trip","user_id":"alice","records":3}']
    assert lines_of(here, "restore", "tok") == ["restored tokyo-weather"]
    assert lines_of(here, "export", "trip") == whole
    assert "no session 'trip' in the trash" in refused(here, 1, "restore", "trip")
    lines_of(here, "delete", "tokyo-weather")
    assert "did you mean\n  tokyo-weather" in refused(here, 1, "restore", "tokyo-waether")


def test_nothing_is_deleted_if_one_of_the_ids_is_wrong(here: Path) -> None:
    before = ids_in(here)
    assert "no session 'nobody'" in refused(here, 1, "delete", "trip", "nobody")
    assert "did you mean\n  0aaaaaaa-1000" in refused(here, 1, "delete", "trip", "0aaa")
    assert ids_in(here) == before


def test_what_is_deleted_forever_is_in_no_trash(here: Path) -> None:
    assert lines_of(here, "delete", "trip", "--forever") == ["deleted trip"]
    done = run(here, "trash")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "statestore: the trash is empty\n")


def test_a_damaged_session_can_be_deleted_forever_by_its_whole_id(tmp_path: Path) -> None:
    (tmp_path / "state" / "sessions").mkdir(parents=True)
    (tmp_path / "state" / "sessions" / "bad.json").write_text("{")
    assert run(tmp_path, "--store", "state", "new", "bad-and-longer").returncode == 0
    done = run(tmp_path, "--store", "state", "delete", "bad")
    assert done.returncode == 3
    assert "only --forever deletes it" in done.stderr
    assert (tmp_path / "state" / "sessions" / "bad.json").exists()
    done = run(tmp_path, "--store", "state", "delete", "bad", "--forever")
    assert (done.returncode, done.stdout) == (0, "deleted bad\n")
    assert not (tmp_path / "state" / "sessions" / "bad.json").exists()
    assert (tmp_path / "state" / "sessions" / "bad-and-longer.json").exists()


def test_prune_without_a_terminal_needs_a_yes(here: Path) -> None:
    before = ids_in(here)
    assert "--yes" in refused(here, 2, "prune", "--older-than", "10d")
    assert "--dry-run" in refused(here, 2, "prune", "--keep", "1", "--json")
    assert "whole hours" in refused(here, 2, "prune", "--older-than", "90m", "--yes")
    assert ids_in(here) == before


def test_prune_shows_what_goes_and_why_and_puts_it_into_the_trash(here: Path) -> None:
    before = ids_in(here)
    shown = lines_of(here, "prune", "--older-than", "10d", "--dry-run")
    assert [line.split()[-2:] for line in shown[1:]] == [["too", "old"]] * 2
    assert ids_in(here) == before
    printed = lines_of(here, "prune", "--older-than", "10d", "--yes")
    assert printed[:3] == shown
    assert printed[3].startswith("deleted 2 sessions; statestore trash lists them")
    assert ids_in(here) == before - set(OLD)
    assert {json.loads(line)["session"]["id"] for line in lines_of(here, "trash", "--json")} == set(OLD)


def test_prune_tells_scripts_the_same_in_json(here: Path) -> None:
    *doomed, end = map(json.loads, lines_of(here, "prune", "--per-user", "1", "--yes", "--json", "--forever"))
    assert {each["reason"] for each in doomed} == {"too many of this user"}
    assert end == {"pruned": len(doomed), "restorable": False}
    assert run(here, "trash").returncode == 1
    assert lines_of(here, "prune", "--per-user", "1", "--yes", "--json") == ['{"pruned":0,"restorable":true}']


def test_prune_asks_at_a_terminal_and_no_means_no(here: Path) -> None:
    before = ids_in(here)
    for answer in ("n\n", "\n", "\x03"):
        terminal = Terminal(here, 80, "prune", "--keep", "1")
        terminal.wait_for("[y/N]: ")
        terminal.press(answer)
        terminal.end()
        assert terminal.process.returncode != 0
        assert ids_in(here) == before
    terminal = Terminal(here, 80, "prune", "--keep", "1")
    terminal.wait_for("into the trash for 7 days? [y/N]: ")
    terminal.press("y\n")
    assert "deleted" in terminal.end()
    assert ids_in(here) == {"trip"}


def test_prune_asks_again_if_others_would_go_by_now(here: Path) -> None:
    terminal = Terminal(here, 80, "prune", "--keep", "6")
    terminal.wait_for("Delete 1 session")
    with StateStore.open(here / "state.db") as store:
        fresh = store.get_or_create_session("dora", "fresh")
        store.append(fresh.id, UserMessage("hi"))
    terminal.press("y\n")
    terminal.wait_for("meanwhile there are others")
    terminal.wait_for("Delete 2 sessions")
    assert {*OLD} <= ids_in(here)
    terminal.press("y\n")
    terminal.end()
    assert not {*OLD} & ids_in(here)


def test_what_prune_shows_in_a_narrow_terminal_fits_and_obeys_nothing(here: Path) -> None:
    text = STYLE.sub("", screen(here, 60, "prune", "--keep", "1", "--dry-run"))
    assert "\x1b" not in text
    assert all(len(line) <= 62 for line in text.splitlines())  # two marks that isolate right-to-left text take no room
    assert text.count("too many") == 6


def test_the_trash_is_emptied_only_on_purpose(here: Path) -> None:
    lines_of(here, "delete", "trip")
    assert "--yes" in refused(here, 2, "trash", "--empty")
    assert lines_of(here, "trash", "--empty", "--yes") == ["1 deleted for good"]
    assert refused(here, 1, "trash") == "statestore: the trash is empty\n"


def test_a_restored_session_never_replaces_another(here: Path) -> None:
    lines_of(here, "delete", "trip")
    lines_of(here, "new", "trip", "--user", "bob")
    refused(here, 1, "restore", "trip")
    with StateStore.open(here / "state.db", read_only=True) as store:
        session = store.load_session("trip")
        assert session is not None
        assert session.user_id == "bob"


def test_a_user_is_erased_with_what_the_trash_has_and_nobody_else_is(here: Path) -> None:
    with StateStore.open(here / "state.db", read_only=True) as store:
        others = {summary.id for summary in store.list_sessions() if summary.user_id != "alice"}
    before = ids_in(here)
    lines_of(here, "delete", "trip")
    assert "--yes" in refused(here, 2, "erase", "alice")
    assert "--yes" in refused(here, 2, "erase", "alice", "--json")
    assert ids_in(here) == before - {"trip"}
    (done,) = lines_of(here, "erase", "alice", "--yes", "--json")
    assert json.loads(done) == {"user_id": "alice", "erased": len(before - others)}
    assert ids_in(here) == others
    refused(here, 1, "trash")
    assert refused(here, 1, "erase", "alice", "--yes") == "statestore: there are no sessions of alice\n"


def test_who_erases_is_told_of_files_that_may_be_of_that_user(tmp_path: Path) -> None:
    for session_id in ("one", "two"):
        lines_of(tmp_path, "--store", "file:state", "new", session_id, "--user", "alice")
    torn = tmp_path / "state" / "sessions" / "two.json"
    torn.write_bytes(torn.read_bytes()[:-9])
    for erased, options in ((1, ("--yes",)), (0, ("--yes", "--json"))):
        complaints = refused(tmp_path, 3, "--store", "file:state", "erase", "alice", *options)
        assert f"statestore: {erased} sessions of 'alice' were erased, and 1 may be left, " in complaints
        assert "sessions/two.json: look there, mend or remove it by hand, and erase again" in complaints
    torn.unlink()
    assert refused(tmp_path, 1, "--store", "file:state", "erase", "alice", "--yes").endswith("no sessions of alice\n")


def test_who_erases_is_asked_first(here: Path) -> None:
    before = ids_in(here)
    terminal = Terminal(here, 100, "erase", "alice")
    terminal.wait_for("in the trash, for good? [y/N]: ")
    terminal.press("n\n")
    terminal.end()
    assert terminal.process.returncode != 0
    assert ids_in(here) == before
    terminal = Terminal(here, 100, "erase", "alice")
    terminal.wait_for("for good? [y/N]: ")
    terminal.press("y\n")
    assert "erased" in terminal.end()
    assert ids_in(here) < before
