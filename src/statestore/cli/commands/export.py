"""``statestore export``: sessions as markdown, html, jsonl, json or chat messages."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from typing import Annotated, Final

import typer

from statestore import CorruptData, InvalidName, SessionNotFound, StateStore, UserStore
from statestore.cli.failures import NOT_FOUND, WRONG_USAGE, CommandFailed, complain
from statestore.cli.moments import moment_before_now
from statestore.cli.naming import find_session_for_sure
from statestore.cli.opening import reading
from statestore.cli.parameters import Json, Project, Since, User
from statestore.cli.printing import counted, print_json, print_line, size_text
from statestore.exchange import (
    FORMATS,
    SUFFIXES,
    Format,
    check_is_elsewhere,
    export_sessions,
    unlisted_sessions,
    write_whole,
)
from statestore.visible import in_json, on_its_lines, on_one_line

EXAMPLES: Final = (
    "statestore export trip -o trip.html",
    "statestore export --user alice --format jsonl > alice.jsonl",
    "statestore export --format openai | jq .messages",
)
_STANDARD_OUTPUT: Final = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


def export(
    ctx: typer.Context,
    sessions: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Which ones; else, all.")] = None,
    form: Annotated[str | None, typer.Option("--format", "-f", metavar="FORMAT", help=", ".join(FORMATS))] = None,
    output: Annotated[str | None, typer.Option("--output", "-o", metavar="FILE", help="Else, standard output.")] = None,
    user: User = None,
    project: Project = None,
    since: Since = None,
    as_json: Json = False,
) -> None:
    """Write sessions as text. jsonl and json keep everything, and statestore import takes them back.

    Without --format, the name of FILE tells, and else it is jsonl. markdown and html are for people; html is one page,
    complete in itself. openai is a line of chat messages for each session. FILE appears when it is whole. With --json,
    tell about FILE; without one, export as json.
    """
    output = None if output in _STANDARD_OUTPUT else output
    chosen = _format(form, output, as_json=as_json)
    done: list[str] = []
    left_out: list[str] = []

    def leave_out(session_id: str, error: CorruptData | InvalidName | SessionNotFound) -> None:
        if not isinstance(error, SessionNotFound):  # which was deleted meanwhile
            left_out.append(session_id)
            complain(f"session {session_id} is left out: {error}")

    with reading(ctx) as store:
        if output is not None:
            check_is_elsewhere(output, store.url)
        source = store if user is None else store.for_user(user)  # an id may change hands before it is read
        ids, count = _chosen(store, sessions or [], user, project, since)
        if not count:
            raise CommandFailed(f"there are no such sessions: nothing was exported{_trash_of(source)}", NOT_FOUND)
        if ids is not None and not sessions and (len(ids) < count or not _counts_damage(store)):
            for session_id, error in unlisted_sessions(store):  # nobody can tell whose they are
                leave_out(session_id, error)
        unreadable = None if sessions else leave_out
        chunks = export_sessions(source, ids, format=chosen, unreadable=unreadable, done=done.append)
        if output is None:
            _print_chunks(chunks, chosen)
        else:
            size = write_whole(output, chunks)
            _tell(output, chosen, len(done), size, as_json=as_json)
    if left_out:
        raise typer.Exit(NOT_FOUND)


def _counts_damage(store: StateStore) -> bool:
    """Whether sessions that no listing shows are counted nevertheless: of a file that cannot be read, nothing is."""
    return not store.url.startswith("file:")


def _trash_of(source: StateStore | UserStore) -> str:
    """What else there is, for somebody who would take it that there is nothing."""
    thrown = len(source.list_trash())
    if not thrown:
        return ""
    return f"; {counted(thrown, 'session')} in the trash: statestore trash lists what statestore restore gets back"


def _format(form: str | None, output: str | None, *, as_json: bool) -> Format:
    if form is not None:
        if form not in FORMATS:
            raise CommandFailed(f"there is no format {form!r}: use one of {', '.join(FORMATS)}", WRONG_USAGE)
        if as_json and output is None and form != "json":
            raise CommandFailed(f"--json tells about a file: add -o FILE, or leave out --format {form}", WRONG_USAGE)
        return form
    if output is None:
        return "json" if as_json else "jsonl"
    return SUFFIXES.get(os.path.splitext(output)[1].lower(), "jsonl")


def _chosen(
    store: StateStore, typed: list[str], user: str | None, project: str | None, since: str | None
) -> tuple[list[str] | None, int]:
    """The ids of the sessions that are meant, ``None`` for all; and how many there are, listed or not."""
    is_narrowed = (user, project, since) != (None, None, None)
    if typed and is_narrowed:
        raise CommandFailed("name sessions, or choose them with --user, --project and --since: not both", WRONG_USAGE)
    if typed:
        ids = list(dict.fromkeys(find_session_for_sure(store, each).id for each in typed))
        return ids, len(ids)
    moment = None if since is None else moment_before_now(since)
    count = store.count_sessions(user_id=user, project_id=project, updated_since=moment)
    if not is_narrowed:
        return None, count
    return [each.id for each in store.list_sessions(user_id=user, project_id=project, updated_since=moment)], count


def _print_chunks(chunks: Iterable[bytes], form: Format) -> None:
    """Send an export to standard output: the very bytes, but nothing that a terminal would obey."""
    sys.stdout.flush()
    for chunk in _shown(chunks, form) if sys.stdout.isatty() else chunks:
        sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()


def _shown(chunks: Iterable[bytes], form: Format) -> Iterator[bytes]:
    safe = on_its_lines if form in ("markdown", "html") else in_json
    for chunk in chunks:
        yield safe(chunk.decode()).encode(sys.stdout.encoding, "backslashreplace")


def _tell(output: str, form: Format, count: int, size: int, *, as_json: bool) -> None:
    if as_json:
        print_json({"file": output, "format": form, "sessions": count, "bytes": size})
    else:
        print_line(f"{on_one_line(output)}: {counted(count, 'session')} as {form}, {size_text(size)}")
