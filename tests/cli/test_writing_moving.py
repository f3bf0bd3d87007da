"""``export``, ``import``, ``copy``, ``backup``: out of a store and into another, wholly or not at all."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from program import (
    STYLE,
    Terminal,
    command,
    environment,
    lines_of,
    path_that_begins_with,
    refused,
    run,
    run_process,
    screen,
)

from children import PATIENCE
from statestore import StateStore

GOLDEN = Path(__file__).parent.parent / "data" / "golden"


def test_what_is_exported_and_imported_is_the_same(here: Path) -> None:
    for name in ("all.jsonl", "all.json"):
        (told,) = lines_of(here, "export", "-o", name)
        assert told.startswith(f"{name}: 7 sessions as {name[4:]}, ")
        store = f"{name}.db"
        assert lines_of(here, "--store", store, "import", name) == ["7 imported"]
        assert lines_of(here, "--store", store, "import", name) == ["0 imported, 7 there already"]
        assert lines_of(here, "--store", store, "export") == lines_of(here, "export")


def test_an_export_goes_through_a_pipe(here: Path) -> None:
    with (
        subprocess.Popen(command("export"), cwd=here, env=environment(), stdout=subprocess.PIPE) as source,
        subprocess.Popen(
            command("--store", "o.db", "import", "-", "--json"),
            cwd=here,
            env=environment(),
            stdin=source.stdout,
            stdout=subprocess.PIPE,
        ) as target,
    ):
        assert source.stdout is not None
        source.stdout.close()
        printed, _ = target.communicate(timeout=PATIENCE)
    assert (source.returncode, target.returncode) == (0, 0)
    assert [json.loads(line)["fate"] for line in printed.splitlines()] == ["imported"] * 7


def test_sessions_are_chosen_by_name_user_project_and_age(here: Path) -> None:
    def exported(*arguments: str) -> set[str]:
        ends = (json.loads(line).get("end") for line in lines_of(here, "export", *arguments))
        return {end for end in ends if end is not None}

    assert exported("trip", "tokyo-weather") == {"trip", "tokyo-weather"}
    assert exported("--project", "holidays") == {"trip"}
    assert len(exported("--user", "carol")) == 2
    assert exported("--user", "bob", "--since", "36h") == {"tokyo-weather"}
    assert "not both" in refused(here, 2, "export", "trip", "--user", "bob")
    assert refused(here, 1, "export", "--user", "nobody", "-o", "a.html").endswith("nothing was exported\n")
    lines_of(here, "delete", "trip")
    assert "1 session in the trash" in refused(here, 1, "export", "--project", "holidays")
    assert "no session 'nobody'" in refused(here, 1, "export", "nobody", "-o", "a.html")
    assert not (here / "a.html").exists()


def test_the_name_of_the_file_tells_the_format_unless_it_is_told(here: Path) -> None:
    for name, beginning in (("a.html", "<!doctype html>"), ("a.md", "# Which ferry"), ("a.txt", '{"statestore":1')):
        (line,) = lines_of(here, "export", "trip", "-o", name, "--json")
        told = json.loads(line)
        assert (told["file"], told["sessions"], told["bytes"]) == (name, 1, (here / name).stat().st_size)
        assert (here / name).read_text().startswith(beginning)
    assert lines_of(here, "export", "trip", "-o", "-") == lines_of(here, "export", "trip")
    assert lines_of(here, "export", "trip", "-f", "openai")[0].startswith('{"messages":[{"role":"user"')
    assert json.loads(run(here, "export", "--json").stdout)["statestore"] == 1
    assert "use one of markdown, html" in refused(here, 2, "export", "-f", "docx")
    assert "-o FILE" in refused(here, 2, "export", "-f", "html", "--json")


def test_an_unwritable_target_is_an_error_and_leaves_nothing(here: Path) -> None:
    before = sorted(os.listdir(here))
    assert "there is no directory" in refused(here, 3, "export", "-o", "no/a.html")
    assert "Is a directory" in refused(here, 3, "export", "-o", ".")
    assert "No space left" in refused(here, 3, "export", "-o", "/dev/full")
    assert sorted(os.listdir(here)) == before


INTERRUPTED_AT_THE_FIRST_BYTES = """
import os, signal
write = os.write
def write_and_interrupt(fd, data):
    written = write(fd, data)
    if os.readlink(f"/proc/self/fd/{fd}").endswith(".part"):
        signal.raise_signal(signal.SIGINT)
    return written
os.write = write_and_interrupt
"""


def test_an_export_that_is_interrupted_leaves_what_was_there_and_no_half(here: Path, tmp_path: Path) -> None:
    (here / "out.html").write_text("before")
    path = path_that_begins_with(INTERRUPTED_AT_THE_FIRST_BYTES, tmp_path)
    done = run(here, "export", "-o", "out.html", PYTHONPATH=path)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
    assert (here / "out.html").read_text() == "before"
    assert not list(here.glob(".out.html.*"))


def test_an_export_into_a_closed_pipe_ends_silently(here: Path) -> None:
    text = '"$@" | head -c 10; echo " ${PIPESTATUS[0]}"'
    done = run_process(here, ["bash", "-c", text, "-", *command("export", "-f", "html")])
    assert (done.stdout.strip().split()[-1], done.stderr) in (("141", ""), ("0", ""))


@pytest.mark.parametrize("form", ["jsonl", "json", "openai", "markdown", "html"])
def test_an_export_on_a_terminal_shows_controls_and_obeys_none(here: Path, form: str) -> None:
    text = screen(here, 80, "export", "attack", "-f", form)
    assert not [character for character in text if character < " " and character not in "\n\t"]
    assert "\x9b" not in text
    assert "\u202e" not in text


def test_a_session_that_cannot_be_read_is_named_and_the_others_are_exported(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "state")
    (tmp_path / "state" / "sessions" / "bad.json").write_text("{")
    done = run(tmp_path, "--store", "state", "export", "-o", "all.jsonl")
    assert "bad" in done.stderr
    assert done.stdout.startswith("all.jsonl: 6 sessions")
    assert "Traceback" not in done.stderr


def test_what_is_no_export_is_refused_with_its_line(here: Path) -> None:
    (here / "a.html").write_text("<html>\n")
    done = run(here, "import", "a.html")
    assert done.returncode == 1
    assert "a.html, line 1: it is not JSON" in done.stderr
    lines = lines_of(here, "export", "trip")
    (here / "cut.jsonl").write_text("\n".join(lines[:-1]) + "\n")
    done = run(here, "--store", "o.db", "import", "cut.jsonl")
    assert (done.returncode, done.stdout) == (1, "0 imported\n")
    assert f"cut.jsonl, line {len(lines) - 1}: session trip does not end" in done.stderr
    assert run(here, "--store", "o.db", "ls").stdout == ""


def test_a_missing_file_is_an_error_before_a_store_is_made(tmp_path: Path) -> None:
    assert "there is no file nowhere" in refused(tmp_path, 3, "import", "nowhere")
    assert list(tmp_path.iterdir()) == []


def test_another_session_of_that_id_is_named_and_left_alone(here: Path) -> None:
    lines_of(here, "export", "trip", "tokyo-weather", "-o", "two.jsonl")
    lines_of(here, "--store", "o.db", "new", "trip", "--user", "bob")
    done = run(here, "--store", "o.db", "import", "two.jsonl")
    assert (done.returncode, done.stdout) == (1, "1 imported, 1 refused\n")
    assert "session trip was not imported: another one with this id is there" in done.stderr
    assert {json.loads(line)["user_id"] for line in lines_of(here, "--store", "o.db", "ls", "--json")} == {"bob"}


def test_a_directory_of_the_rust_program_is_imported(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "rust")
    lines = lines_of(tmp_path, "import", "rust", "--json")
    assert {json.loads(line)["fate"] for line in lines} == {"imported"}
    assert lines_of(tmp_path, "import", "rust") == [f"0 imported, {len(lines)} there already"]
    assert lines_of(tmp_path, "export") == lines_of(tmp_path, "--store", "file:rust", "export")


def test_a_directory_that_holds_nothing_to_import_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "rust").mkdir()
    done = run(tmp_path, "import", "rust")
    assert (done.returncode, done.stdout) == (1, "0 imported\n")
    assert done.stderr == "statestore: there is nothing to import in rust\n"


def test_a_directory_that_may_be_anything_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "project" / "docs").mkdir(parents=True)
    (tmp_path / "project" / "docs" / "index.md").write_text("not ours")
    assert "has neither sessions/ nor .statestore/" in refused(tmp_path, 2, "import", "project")
    assert [entry.name for entry in tmp_path.iterdir()] == ["project"]


def test_what_is_left_out_of_a_copy_or_an_import_is_named(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "rust")
    (tmp_path / "rust" / "sessions" / "x.json.bak").write_text("{}")
    (tmp_path / "rust" / "root.json").write_text("{}")
    for arguments in (("import", "rust"), ("copy", "rust", "file:copied"), ("copy", "rust", "file:copied", "--json")):
        done = run(tmp_path, *arguments)
        assert done.returncode == 0
        for name in () if "--json" in arguments else ("sessions/x.json.bak", "root.json"):
            assert re.search(rf"^statestore: warning: .*rust: {name}: ", done.stderr, re.MULTILINE)


def test_a_store_is_copied_verified_and_copied_again(here: Path) -> None:
    told, digest = lines_of(here, "copy", "state.db", "file:copied")
    assert "7 sessions with 15 records, 3 documents" in told
    assert "verified" in told
    report = json.loads(lines_of(here, "copy", "state.db", "file:copied", "--json")[0])
    assert (f"digest {report['digest']}", report["skipped"]) == (digest, 10)
    assert lines_of(here, "--store", "file:copied", "export") == lines_of(here, "export")
    lines_of(here, "--store", "file:copied", "say", "trip", "only here")
    assert "session trip" in refused(here, 1, "copy", "state.db", "file:copied")
    assert "there is no store at" in refused(here, 3, "copy", "nowhere.db", "file:other")


@pytest.fixture
def apart(here: Path) -> Path:
    """A directory with a store and a copy of it, both of which were written to since."""
    lines_of(here, "copy", "state.db", "file:copied")
    lines_of(here, "delete", "attack", "--forever")
    lines_of(here, "put", "notes/today.md", "# Another day")
    lines_of(here, "--store", "file:copied", "say", "trip", "only here")
    return here


APART = {
    "session trip": "its updated is not the same",
    "document notes/today.md": "its contents are not the same",
    "session attack": "only the target has it",
}


def is_a_copy(place: Path) -> bool:
    """Whether the copy has what the store has."""
    everything = [lines_of(place, "--store", store, "export") for store in ("state.db", "file:copied")]
    notes = [lines_of(place, "--store", store, "cat", "notes/today") for store in ("state.db", "file:copied")]
    return everything[0] == everything[1] and notes[0] == notes[1]


def test_a_mirror_shows_what_it_would_do_and_does_it(apart: Path) -> None:
    shown = lines_of(apart, "copy", "state.db", "file:copied", "--mirror", "--dry-run")
    assert shown[0].split() == ["what", "why"]
    assert [tuple(re.split(" {2,}", line)) for line in shown[1:]] == list(APART.items())
    told = lines_of(apart, "copy", "state.db", "file:copied", "--mirror", "--dry-run", "--json")
    assert [json.loads(line) for line in told] == [{"where": where, "what": what} for where, what in APART.items()]
    assert not is_a_copy(apart)
    *shown, told, digest = lines_of(apart, "copy", "state.db", "file:copied", "--mirror", "--yes")
    assert [re.split(" {2,}", line)[0] for line in shown[1:]] == list(APART)
    assert told.endswith("verified; 7 of them were there already; 2 replaced; 1 removed")
    assert is_a_copy(apart)
    report = json.loads(lines_of(apart, "copy", "state.db", "file:copied", "--mirror", "--yes", "--json")[0])
    assert digest == f"digest {report['digest']}"
    assert (report["skipped"], report["replaced"], report["removed"], report["differences"]) == (9, 0, 0, [])
    told = lines_of(apart, "copy", "state.db", "file:copied", "--mirror", "--dry-run")
    assert told == ["there is nothing to replace or to remove"]


def test_a_mirror_asks_at_a_terminal_and_no_means_no(apart: Path) -> None:
    for answer in ("n\n", "\n", "\x03"):
        terminal = Terminal(apart, 80, "copy", "state.db", "file:copied", "--mirror")
        terminal.wait_for("[y/N]: ")
        terminal.press(answer)
        terminal.end()
        assert terminal.process.returncode != 0
    assert lines_of(apart, "--store", "file:copied", "show", "attack")
    terminal = Terminal(apart, 80, "copy", "state.db", "file:copied", "--mirror")
    terminal.wait_for(f"Replace 2 and remove 1 in file:{apart / 'copied'} for good? [y/N]: ")
    terminal.press("y\n")
    assert "2 replaced; 1 removed" in terminal.end()
    assert is_a_copy(apart)
    assert "[y/N]" not in screen(apart, 80, "copy", "state.db", "file:copied", "--mirror"), "there is nothing to ask"


def test_a_mirror_asks_again_if_others_would_go_by_now(apart: Path) -> None:
    terminal = Terminal(apart, 80, "copy", "state.db", "file:copied", "--mirror")
    terminal.wait_for("Replace 2 and remove 1")
    lines_of(apart, "--store", "file:copied", "new", "late")
    terminal.press("y\n")
    terminal.wait_for("meanwhile there are others")
    terminal.wait_for("Replace 2 and remove 2")
    assert lines_of(apart, "--store", "file:copied", "show", "late")
    terminal.press("y\n")
    terminal.end()
    assert is_a_copy(apart)


def test_a_mirror_without_a_terminal_needs_a_yes(apart: Path) -> None:
    mirror = ("copy", "state.db", "file:copied", "--mirror")
    assert "--yes" in refused(apart, 2, *mirror)
    assert "--dry-run" in refused(apart, 2, *mirror, "--json")
    assert "do not go together" in refused(apart, 2, *mirror, "--into-existing", "--yes")
    for option in ("--yes", "--dry-run"):
        assert "are for --mirror" in refused(apart, 2, *mirror[:-1], option)
    assert not is_a_copy(apart)


def test_a_mirror_of_the_wrong_store_leaves_the_target_alone(apart: Path) -> None:
    (apart / "empty").mkdir()
    before = lines_of(apart, "--store", "file:copied", "export")
    for option in ("--yes", "--dry-run"):
        assert "has nothing of what" in refused(apart, 1, "copy", "file:empty", "file:copied", "--mirror", option)
        assert "there is no store at" in refused(apart, 3, "copy", "nowhere.db", "file:copied", "--mirror", option)
    assert lines_of(apart, "--store", "file:copied", "export") == before
    assert lines_of(apart, "copy", "state.db", "file:none", "--mirror", "--dry-run")
    assert not (apart / "none").exists()


def test_a_copy_shows_how_far_it_is_on_a_terminal_and_leaves_one_line(here: Path) -> None:
    text = screen(here, 70, "copy", "state.db", "file:copied")
    assert "copying: 7 of 7 sessions" in text
    assert "verifying: " in text
    last = STYLE.sub("", text).rsplit("\x1b[K", 1)[-1].splitlines()
    assert last[0].startswith("file:")
    assert last[-1].startswith("digest ")


def test_a_backup_is_not_made_where_the_store_has_its_own_files(here: Path) -> None:
    for name in ("state.db", "state.db-wal", "state.db-journal"):
        assert "is a part of the store" in refused(here, 2, "backup", name)
    assert not (here / "state.db-journal").exists()


def test_a_backup_is_a_store_of_its_own_and_replaces_nothing(here: Path) -> None:
    (told,) = lines_of(here, "backup", "b.db")
    assert told.startswith("b.db: ")
    assert lines_of(here, "--store", "b.db", "export") == lines_of(here, "export")
    assert "exists already" in refused(here, 3, "backup", "b.db")
    lines_of(here, "copy", "state.db", "file:dir")
    assert "statestore copy" in refused(here, 3, "--store", "file:dir", "backup", "c.db")
    assert json.loads(lines_of(here, "backup", "d.db", "--json")[0])["file"] == "d.db"


def test_a_backup_goes_where_a_url_says_if_that_is_a_file(here: Path) -> None:
    (told,) = lines_of(here, "backup", "sqlite:b.db")
    assert told.startswith(f"{here / 'b.db'}: ")
    assert lines_of(here, "--store", "sqlite:b.db", "export") == lines_of(here, "export")
    assert "is a part of the store" in refused(here, 2, "backup", "sqlite:state.db")
    for url in ("file:c.db", "memory:"):
        assert "give the path of a file, or sqlite:FILE" in refused(here, 2, "backup", url)
    assert not [path for path in here.iterdir() if ":" in path.name]


@pytest.mark.parametrize("arguments", [("backup", "nowhere/b.db"), ("export", "-o", "nowhere/all.html")], ids=" ".join)
def test_a_directory_that_is_missing_is_named(here: Path, arguments: tuple[str, ...]) -> None:
    assert f"there is no directory {here / 'nowhere'}" in refused(here, 3, *arguments)


def test_compact_gives_back_the_room_of_what_was_deleted(here: Path) -> None:
    with StateStore.open(here / "state.db", durability="relaxed") as store:
        store.save_markdown("notes", "large", "x" * 1_100_000)
        store.delete_category("notes")
    size = (here / "state.db").stat().st_size
    (told,) = lines_of(here, "compact")
    assert re.fullmatch(r"compacted: 1\.1 MB given back", told)
    assert (here / "state.db").stat().st_size < size - 900_000
    assert lines_of(here, "compact", "--json") == ['{"freed":0}']
    lines_of(here, "copy", "state.db", "file:dir")
    assert "does not offer compact: sqlite: does" in refused(here, 3, "--store", "file:dir", "compact")


def test_ctrl_c_during_a_copy_ends_it_and_running_it_again_finishes_it(here: Path) -> None:
    terminal = Terminal(here, 80, "copy", "state.db", "file:copied")
    terminal.wait_for("copying")
    terminal.press("\x03")
    terminal.end()
    assert "verified" in lines_of(here, "copy", "state.db", "file:copied")[0]
