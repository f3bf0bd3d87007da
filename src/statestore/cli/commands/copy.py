"""``statestore copy``: a whole store, from any engine to any engine."""

from __future__ import annotations

import sys
from typing import Annotated, Final

import typer

from statestore import CopyProgress, copy_store
from statestore.cli.opening import check_lasts
from statestore.cli.parameters import Json
from statestore.cli.printing import counted, cut, print_json, print_line, size_text, terminal_width
from statestore.visible import on_one_line

EXAMPLES: Final = (
    "statestore copy state.db file:state",
    "statestore copy old-state/ postgresql://db.example.org/agents",
)
_CLEAR: Final = "\r\x1b[K"


def copy(
    source: Annotated[str, typer.Argument(metavar="SRC", help="The store to copy: a path or a URL.")],
    target: Annotated[str, typer.Argument(metavar="DST", help="Where to; it is made if it is not there.")],
    into_existing: Annotated[bool, typer.Option("--into-existing", help="DST may hold more.")] = False,
    as_json: Json = False,
) -> None:
    """Copy everything in a store to another, and verify it. A copy that was interrupted is run again, and goes on.

    What DST has already is compared and skipped; if it is something else, nothing is written.
    """
    check_lasts(source)
    check_lasts(target)
    line = _ProgressLine()
    try:
        report = copy_store(
            source, target, progress=line.show if sys.stderr.isatty() else None, into_existing=into_existing
        )
    finally:
        line.clear()
    if as_json:
        print_json(report)
        return
    there = f"; {report.skipped} of them were there already" if report.skipped else ""
    sessions, records = counted(report.sessions, "session"), counted(report.records, "record")
    documents, size = counted(report.documents, "document"), size_text(report.bytes)
    print_line(f"{on_one_line(report.target)}: {sessions} with {records}, {documents}, {size}, verified{there}")
    print_line(f"digest {report.digest}")


class _ProgressLine:
    """One line on a terminal, written over again and again, and gone at the end."""

    def __init__(self) -> None:
        self._is_shown = False

    def show(self, progress: CopyProgress) -> None:
        """How far the copy is."""
        in_all = f" of {progress.sessions_in_all}" if progress.sessions_in_all else ""
        text = (
            f"{progress.phase}: {progress.sessions}{in_all} sessions, "
            f"{progress.documents} documents, {size_text(progress.bytes)}"
        )
        sys.stderr.write(_CLEAR + cut(text, terminal_width() - 1))
        sys.stderr.flush()
        self._is_shown = True

    def clear(self) -> None:
        """Leave nothing behind."""
        if self._is_shown:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
