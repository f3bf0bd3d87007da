"""``new``, ``say``, ``reply``, ``event``, ``put``, ``rm``, ``fork``, ``rewind``: writing from a script."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from program import Terminal, command, environment, lines_of, refused, run

from children import PATIENCE
from statestore import StateStore


def fed(place: Path, text: bytes, *arguments: str) -> tuple[int, str, str]:
    """How a command ends that gets this on standard input, and what it prints."""
    done = subprocess.run(
        command(*arguments),
        cwd=place,
        env=environment(),
        input=text,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def said(place: Path, session_id: str = "trip") -> list[tuple[int | None, str, object]]:
    with StateStore.open(place / "state.db", read_only=True) as store:
        return [
            (seq, kind, getattr(record, "content", None) or getattr(record, "data", None))
            for seq, kind, record in store.timeline(session_id)
        ]


def test_a_session_is_begun_in_a_store_that_is_made_and_spoken_to(tmp_path: Path) -> None:
    assert lines_of(tmp_path, "new", "trip", "--user", "alice", "--title", "A day", "--project", "p") == ["trip"]
    assert lines_of(tmp_path, "say", "trip", "Which ferry?") == ["1"]
    assert lines_of(tmp_path, "event", "trip", "tool_call", '{"before": 12}') == ["2"]
    assert lines_of(tmp_path, "reply", "trip", "The 10:40.", "--phase", "done", "--seed", "s") == ["3"]
    assert said(tmp_path) == [(1, "user", "Which ferry?"), (2, "tool_call", {"before": 12}), (3, "agent", "The 10:40.")]
    with StateStore.open(tmp_path / "state.db", read_only=True) as store:
        (summary,) = store.list_sessions()
        answer = store.timeline("trip")[-1].record
    assert (summary.user_id, summary.title, summary.project_id) == ("alice", "A day", "p")
    assert (answer.phase_reached, answer.seed_id) == ("done", "s")


def test_a_new_session_without_an_id_has_a_random_one_and_is_yours(tmp_path: Path) -> None:
    (line,) = lines_of(tmp_path, "new", "--json")
    (other,) = lines_of(tmp_path, "new", LOGNAME="zoe")
    assert len(json.loads(line)["session_id"]) == len(other) == 36
    with StateStore.open(tmp_path / "state.db", read_only=True) as store:
        assert "zoe" in {summary.user_id for summary in store.list_sessions()}


def test_an_id_that_is_taken_is_refused_and_the_session_stays(here: Path) -> None:
    before = said(here)
    assert "exists already" in refused(here, 1, "new", "trip", "--user", "alice")
    assert "another user" in refused(here, 1, "new", "trip", "--user", "bob")
    assert "'..'" in refused(here, 2, "new", "../trip")
    assert said(here) == before


def test_text_comes_from_standard_input_without_its_last_line_end(here: Path) -> None:
    for arguments in (("say", "trip"), ("say", "trip", "-")):
        assert fed(here, "two\nlines: 東京\n".encode(), *arguments)[0] == 0
        assert said(here)[-1][2] == "two\nlines: 東京"
    assert fed(here, b'["a", 1.5]', "event", "trip", "tool_result")[0] == 0
    assert said(here)[-1][2] == ["a", 1.5]


def test_what_cannot_be_said_is_refused_and_nothing_is_added(here: Path) -> None:
    before = said(here)
    for text, reason, arguments in (
        (b"\xff\xfe", "not UTF-8", ("say", "trip")),
        (b"", "empty", ("reply", "trip")),
        (b"{", "not JSON", ("event", "trip", "tool")),
        (b"", "cannot be 'user'", ("event", "trip", "user", "1")),
        (b"", "not JSON", ("event", "trip", "tool", "plain words")),
    ):
        code, printed, complaint = fed(here, text, *arguments)
        assert (code, printed) == (2, "")
        assert reason in complaint
    assert "there is no session 'nobody'" in refused(here, 1, "say", "nobody", "hi")
    assert said(here) == before


def test_what_has_a_key_is_said_once(here: Path) -> None:
    first = lines_of(here, "say", "trip", "Two seats.", "--key", "r-17", "--json")
    assert lines_of(here, "say", "trip", "Two seats.", "--key", "r-17", "--json") == first
    assert json.loads(first[0]) == {"session_id": "trip", "seq": 4}
    assert len(said(here)) == 4


def test_somebody_at_a_terminal_is_told_how_to_end_a_text(here: Path) -> None:
    terminal = Terminal(here, 80, "say", "trip")
    terminal.wait_for("Ctrl-D")
    terminal.press("typed by hand\n\x04")
    assert "4" in terminal.end()
    assert said(here)[-1] == (4, "user", "typed by hand")


def test_documents_are_put_and_removed(here: Path) -> None:
    (version,) = lines_of(here, "put", "notes/today.md", "# Now")
    assert fed(here, b'{"steps": 3}', "put", "notes/today.json", "--json")[0] == 0
    (here / "logo.png").write_bytes(bytes(range(256)))
    lines_of(here, "put", "images/logo.bin", "--from", "logo.png")
    with StateStore.open(here / "state.db", read_only=True) as store:
        assert store.load_markdown("notes", "today") == "# Now"
        assert store.load_json("notes", "today") == {"steps": 3}
        assert store.load_bytes("images", "logo") == bytes(range(256))
        document = store.get_document("notes", "today", kind="md")
        assert document is not None
        assert document.version == version
    assert "notes/today.json\n  notes/today.md" in refused(here, 2, "rm", "notes/today")
    assert lines_of(here, "rm", "notes/today.md") == ["removed notes/today.md"]
    assert "there is no document" in refused(here, 1, "rm", "notes/today.md")


def test_nothing_on_standard_input_does_not_empty_a_document(here: Path) -> None:
    lines_of(here, "put", "notes/today.md", "# Now")
    for name in ("notes/today.md", "notes/today.bin"):
        code, printed, complaint = fed(here, b"", "put", name)
        assert (code, printed) == (2, "")
        assert "standard input is empty" in complaint
    assert lines_of(here, "cat", "notes/today.md") == ["# Now"]
    lines_of(here, "put", "notes/today.md", "")
    assert lines_of(here, "cat", "notes/today.md") == []


def test_a_document_is_written_over_only_at_the_version_that_was_named(here: Path) -> None:
    (version,) = lines_of(here, "put", "notes/a.md", "one", "--only-new")
    assert "exists already" in refused(here, 1, "put", "notes/a.md", "two", "--only-new")
    lines_of(here, "put", "notes/a.md", "two", "--if-version", version)
    assert "not at that version" in refused(here, 1, "put", "notes/a.md", "three", "--if-version", version)
    assert lines_of(here, "cat", "notes/a") == ["two"]


def test_what_is_no_document_is_refused(here: Path) -> None:
    assert "say what it is: notes/a.md" in refused(here, 2, "put", "notes/a", "x")
    assert "not JSON" in refused(here, 2, "put", "notes/a.json", "{")
    assert "not UTF-8" in fed(here, b"\xff", "put", "notes/a.md")[2]
    assert "nowhere cannot be read" in refused(here, 3, "put", "notes/a.md", "--from", "nowhere")
    assert "statestore new" in refused(here, 2, "put", "sessions/trip.json", "{}")


def test_a_fork_has_the_beginning_and_a_rewind_tells_what_it_dropped(here: Path) -> None:
    before = said(here)
    assert lines_of(here, "fork", "trip", "--at", "2", "--id", "other", "--json") == [
        '{"session_id":"other","parent_session_id":"trip","records":2}'
    ]
    assert said(here, "other") == before[:2]
    assert said(here) == before
    dropped = [json.loads(line) for line in lines_of(here, "rewind", "trip", "--to", "1", "--json")]
    assert [(each["seq"], each["kind"]) for each in dropped] == [(2, "tool_call"), (3, "agent")]
    assert dropped[1]["record"]["content"] == before[2][2]
    assert said(here) == before[:1]
    assert lines_of(here, "rewind", "trip", "--to", "1") == ["nothing comes after 1"]
    assert lines_of(here, "say", "trip", "again") == ["4"]
    assert run(here, "rewind", "trip").returncode == 2


def test_commands_that_write_make_no_store_where_there_is_nothing_to_write_to(tmp_path: Path) -> None:
    for arguments in (
        ("say", "a", "b"),
        ("rm", "a/b"),
        ("delete", "a"),
        ("prune", "--yes"),
        ("restore", "a"),
        ("trash",),
        ("export",),
        ("backup", "b.db"),
        ("compact",),
        ("fork", "a"),
        ("rewind", "a", "--to", "1"),
    ):
        assert "there is no store at" in refused(tmp_path, 3, *arguments)
    assert list(tmp_path.iterdir()) == []
