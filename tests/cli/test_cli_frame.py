"""The frame around all commands: which store, which exit code, which complaint, and what is loaded."""

from __future__ import annotations

import importlib.util
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from program import Done, environment, lines_of, refused, run, run_process

from statestore import StateStore
from statestore.cli.command_table import COMMANDS


def files_in(place: Path) -> list[str]:
    return sorted(str(path.relative_to(place)) for path in place.rglob("*"))


def loaded_by(here: Path, *arguments: str) -> set[str]:
    """The modules that a command loads."""
    script = (
        "import sys\nfrom statestore.cli.main import main\nmain(sys.argv[1:])\nprint(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=here,
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return set(done.stderr.split())


# -- help --------------------------------------------------------------------------------------------------------


def test_help_fits_a_screen_names_every_command_and_gives_an_example(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, "--help")
    assert len(lines) <= 30
    assert max(map(len, lines)) < 80
    assert [name for name in COMMANDS if not any(f" {name} " in line for line in lines)] == []
    assert "Example:" in lines
    assert lines_of(tmp_path) == lines


def test_help_is_as_narrow_as_the_terminal(tmp_path: Path) -> None:
    lines = lines_of(tmp_path, "--help", COLUMNS="60")
    assert max(map(len, lines)) <= 60


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_fits_a_screen_and_gives_an_example(tmp_path: Path, name: str) -> None:
    lines = lines_of(tmp_path, name, "--help")
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("  --debug ") for line in lines)
    assert any(line.startswith("  --store URL ") for line in lines) == COMMANDS[name].uses_store
    examples = lines[lines.index("  Examples:") + 1 :]
    assert examples
    assert [line for line in examples if "statestore " not in line] == []


def test_every_command_file_has_a_row_in_the_table() -> None:
    spec = importlib.util.find_spec("statestore.cli.commands")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    (folder,) = spec.submodule_search_locations
    files = {path.stem for path in Path(folder).glob("*.py")} - {"__init__"}
    assert files == {entry.module for entry in COMMANDS.values()}


def test_the_shell_completes_commands(tmp_path: Path) -> None:
    done = run(tmp_path, _STATESTORE_COMPLETE="complete_bash", COMP_WORDS="statestore s", COMP_CWORD="1")
    assert done.returncode == 0, done.stderr
    assert {"show", "search", "stats", "say"} == set(done.stdout.split())
    done = _called_from_bash(tmp_path, "--show-completion")
    assert done.returncode == 0, done.stderr
    assert "complete" in done.stdout


def _called_from_bash(place: Path, option: str) -> Done:
    program = f"{shlex.quote(sys.executable)} -m statestore {option}; exit $?"
    return run_process(place, ["bash", "-c", program], HOME=str(place))


def test_completion_installs_for_the_shell_it_is_called_from(tmp_path: Path) -> None:
    done = _called_from_bash(tmp_path, "--install-completion")
    assert done.returncode == 0, done.stderr
    assert "bash completion installed" in done.stdout
    assert "statestore" in (tmp_path / ".bashrc").read_text()


# -- which store -------------------------------------------------------------------------------------------------


def test_the_store_is_the_option_then_the_variable_then_the_file_here(here: Path) -> None:
    for name in ("named.db", "from-environment.db"):
        with StateStore.open(here / name) as store:
            store.get_or_create_session("dave", name.removesuffix(".db"))
    assert "trip" in lines_of(here, "ls", "--json", "--limit", "1")[0]
    assert "from-environment" in lines_of(here, "ls", "--json", STATESTORE_URL="from-environment.db")[0]
    for arguments in (("--store", "named.db", "ls"), ("ls", "--store", "named.db"), ("ls", "--store=sqlite:named.db")):
        (line,) = lines_of(here, *arguments, "--json", STATESTORE_URL="from-environment.db")
        assert '"id":"named"' in line


def test_a_store_of_an_empty_name_is_none_and_not_the_file_here(here: Path) -> None:
    for arguments in (("--store", "", "ls"), ("ls", "--store="), ("new", "--store", "")):
        assert "the store's name is empty" in refused(here, 2, *arguments, STATESTORE_URL="state.db")


@pytest.mark.parametrize("arguments", [("copy", "state.db", "file:other"), ("demo",)], ids=" ".join)
def test_a_command_that_asks_for_no_store_takes_none(here: Path, arguments: tuple[str, ...]) -> None:
    assert "no such option: --store" in refused(here, 2, *arguments, "--store", "state.db")


@pytest.mark.parametrize("arguments", [("new", "x"), ("put", "notes/x.md", "a"), ("ls",), ("check",)], ids=" ".join)
def test_a_store_that_is_gone_when_the_command_ends_is_refused(here: Path, arguments: tuple[str, ...]) -> None:
    complaint = refused(here, 2, "--store", "memory:", *arguments)
    assert complaint == "statestore: memory: is gone when the command ends: name a store that lasts\n"
    assert refused(here, 2, *arguments, STATESTORE_URL="MEMORY:") == complaint


def test_nothing_is_copied_from_or_to_a_store_that_is_gone_when_the_command_ends(here: Path) -> None:
    for pair in (("state.db", "memory:"), ("memory:", "other.db")):
        assert "name a store that lasts" in refused(here, 2, "copy", *pair)
    assert not (here / "other.db").exists()


LOOKING = (
    ("ls",),
    ("show", "trip"),
    ("tail",),
    ("tail", "-f"),
    ("search", "ferry"),
    ("stats",),
    ("check",),
    ("docs",),
    ("cat", "notes/today"),
)


@pytest.mark.parametrize("arguments", LOOKING, ids=" ".join)
def test_looking_never_makes_a_store_and_says_how_to_make_one(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    complaint = refused(tmp_path, 3, *arguments)
    assert complaint == (
        f"statestore: there is no store at {tmp_path}/state.db: name one with --store or STATESTORE_URL, "
        "or make one here with statestore new\n"
    )
    assert "there with statestore --store … new" in refused(tmp_path, 3, "--store", "file:nowhere", *arguments)
    assert files_in(tmp_path) == []


@pytest.mark.parametrize("arguments", [case for case in LOOKING if not {"-f", "search"} & {*case}], ids=" ".join)
def test_looking_leaves_no_trace(here: Path, arguments: tuple[str, ...]) -> None:
    before = {path: path.stat().st_mtime_ns for path in here.rglob("*")}
    assert run(here, *arguments).returncode == 0
    assert {path: path.stat().st_mtime_ns for path in here.rglob("*")} == before


def test_a_directory_is_a_store_too(tmp_path: Path) -> None:
    with StateStore.open(tmp_path / "state") as store:
        session = store.get_or_create_session("dave", "in-files")
        session.add_user_message("Is this a directory?")
        store.save_session(session)
    for target in ("state", "file:state", str(tmp_path / "state")):
        assert "in-files" in "".join(lines_of(tmp_path, "--store", target, "ls"))
    assert "Is this a directory?" in lines_of(tmp_path, "--store", "state", "show", "in")


def test_what_is_no_store_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("not a database at all, only a few words that somebody wrote down")
    with sqlite3.connect(tmp_path / "theirs.db") as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for name in before:
        complaint = refused(tmp_path, 3, "--store", name, "ls")
        assert complaint.count("\n") == 1
        assert name in complaint
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_password_is_never_shown(tmp_path: Path) -> None:
    for url in ("postgresql://me:s3cret@127.0.0.1:1/x?timeout=1", "valkey://:s3cret@127.0.0.1:1/0"):
        done = run(tmp_path, "--store", url, "ls")
        assert done.returncode == 3
        assert done.stderr.startswith("statestore: ")
        assert "s3cret" not in done.stderr + done.stdout


# -- complaints --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("lss",), "there is no command 'lss': did you mean ls"),
        (("serach", "x"), "did you mean search"),
        (("xyzzy",), "statestore --help lists the commands"),
        (("ls", "--usr", "x"), "--usr"),
        (("ls", "--limit", "0"), "--limit"),
        (("ls", "--limit", "many"), "--limit"),
        (("ls", "--since", "yesterday"), "2026-01-31"),
        (("ls", "--since", "2d3h"), "a duration like 2d"),
        (("show",), "ID"),
        (("show", "../x"), ".."),
        (("cat", "notes"), "CATEGORY/NAME"),
        (("search", "?!"), "no words"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(here: Path, arguments: tuple[str, ...], words: str) -> None:
    complaint = refused(here, 2, *arguments)
    assert complaint.startswith("statestore: ")
    assert complaint.count("\n") == 1
    assert words in complaint


def test_debug_shows_the_traceback_and_ends_with_the_same_code(tmp_path: Path) -> None:
    for arguments in (("--debug", "ls"), ("ls", "--debug")):
        done = run(tmp_path, *arguments)
        assert done.returncode == run(tmp_path, "ls").returncode == 3
        assert "Traceback" in done.stderr
        assert "StoreNotFound" in done.stderr


def test_a_session_that_cannot_be_read_is_a_warning_and_hides_nothing(tmp_path: Path) -> None:
    with StateStore.open(tmp_path / "state") as store:
        store.get_or_create_session("dave", "good")
        store.get_or_create_session("dave", "torn")
    (tmp_path / "state/sessions/torn.json").write_text("{")
    done = run(tmp_path, "--store", "state", "ls", "--json")
    assert done.returncode == 0
    assert '"id":"good"' in done.stdout
    assert done.stdout.count("\n") == 1
    assert done.stderr.startswith("statestore: warning: ")
    assert "torn" in done.stderr
    checked = run(tmp_path, "--store", "state", "check")
    assert checked.returncode == 1
    assert "torn" in checked.stdout
    shown = refused(tmp_path, 3, "--store", "state", "show", "torn")
    assert "torn.json is not a session" in shown.splitlines()[-1]
    assert shown.count("warning") == 1


# -- start-up ----------------------------------------------------------------------------------------------------


def test_the_library_loads_no_terminal() -> None:
    script = "import sys, statestore; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], env=environment(), capture_output=True, text=True, check=True)
    assert not {"typer", "click", "rich"} & set(done.stdout.split())


def test_a_command_loads_only_what_it_needs(here: Path) -> None:
    listed = loaded_by(here, "ls", "--user", "alice", "--limit", "3")
    commands = {name for name in listed if name.startswith("statestore.cli.commands.")}
    assert commands == {"statestore.cli.commands.ls"}
    assert not {"pydantic", "rich.console", "rich.table", "rich.markdown", "asyncio"} & listed
    assert not {"statestore.engines.files", "statestore.engines.memory", "statestore.engines.postgres"} & listed
    assert "markdown_it" not in loaded_by(here, "show", "trip")


def test_the_program_ends_well_without_a_place_to_write_to(here: Path) -> None:
    for stream in ("stdout", "stderr"):
        with open("/dev/full", "w") as full:
            streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: full}
            program = [sys.executable, "-m", "statestore", "ls" if stream == "stdout" else "nothing"]
            done = subprocess.run(program, cwd=here, env=environment(), check=False, **streams)
        assert done.returncode in (2, 3), stream
