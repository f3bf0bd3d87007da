"""``statestore copy``: a whole store, from any engine to any engine."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Final

import typer

from statestore import CopyProgress, CopyReport, copy_store
from statestore.cli.asking import MOST_SHOWN, agree, check_can_agree
from statestore.cli.failures import WRONG_USAGE, CommandFailed, complain
from statestore.cli.opening import check_lasts
from statestore.cli.parameters import Json, Yes
from statestore.cli.printing import (
    Column,
    counted,
    cut,
    is_terminal,
    print_json,
    print_line,
    print_table,
    size_text,
    terminal_width,
)
from statestore.copying.calling import compare_stores
from statestore.copying.telling import Misfits, ReportProgress
from statestore.visible import on_one_line

EXAMPLES: Final = (
    "statestore copy state.db file:state",
    "statestore copy old-state/ postgresql://db.example.org/agents",
    "statestore copy state.db file:state --mirror --dry-run",
)
_COLUMNS: Final = (Column("what", stretches=True), Column("why", stretches=True))
_CLEAR: Final = "\r\x1b[K"


def copy(
    source: Annotated[str, typer.Argument(metavar="SRC", help="The store to copy: a path or a URL.")],
    target: Annotated[str, typer.Argument(metavar="DST", help="Where to; it is made if it is not there.")],
    into_existing: Annotated[bool, typer.Option("--into-existing", help="DST may hold more.")] = False,
    mirror: Annotated[bool, typer.Option("--mirror", help="Remove and replace in DST what is not as in SRC.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what --mirror would do.")] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Copy everything in a store to another, and verify it. A copy that was interrupted is run again, and goes on.

    So is one of a store in use, which fails in the end and names what was written meanwhile. What DST has already is
    compared and skipped, and brought up to date where it grew in SRC; if it is something else, nothing is written.
    --mirror shows what that is, asks, and makes DST the same as SRC.
    """
    check_lasts(source)
    check_lasts(target)
    _check_options(into_existing=into_existing, mirror=mirror, dry_run=dry_run, yes=yes, as_json=as_json)
    if dry_run:
        _show(_compared(source, target), as_json=as_json)
        return
    if mirror and not yes:
        _agree(source, target)
    with _progress() as progress:
        report = copy_store(source, target, progress=progress, into_existing=into_existing, mirror=mirror)
    if as_json:
        print_json(report)
        return
    if yes and report.differences:
        _show(report, as_json=False)
    fates = ((report.skipped, "of them were there already"), (report.replaced, "replaced"), (report.removed, "removed"))
    more = "".join(f"; {count} {fate}" for count, fate in fates if count)
    sessions, records = counted(report.sessions, "session"), counted(report.records, "record")
    documents, size = counted(report.documents, "document"), size_text(report.bytes)
    print_line(f"{on_one_line(report.target)}: {sessions} with {records}, {documents}, {size}, verified{more}")
    print_line(f"digest {report.digest}")
    for problem in report.problems:
        complain(f"warning: {report.source}: {problem.where}: {problem.what}")


def _check_options(*, into_existing: bool, mirror: bool, dry_run: bool, yes: bool, as_json: bool) -> None:
    if into_existing and mirror:
        raise CommandFailed("--into-existing and --mirror do not go together: give one of them", WRONG_USAGE)
    if not mirror and (dry_run or yes):
        raise CommandFailed("--dry-run and --yes are for --mirror: add it, or leave them out", WRONG_USAGE)
    if mirror:
        check_can_agree("go on", yes=yes, dry_run=dry_run, as_json=as_json)


def _compared(source: str, target: str) -> Misfits:
    with _progress() as progress:
        return compare_stores(source, target, progress=progress)


def _agree(source: str, target: str) -> None:
    """Show what would be replaced and removed, if anything, and ask."""
    misfits = _compared(source, target)
    if misfits.differences:
        _show(misfits, as_json=False)
    agree(
        misfits,
        lambda: _compared(source, target),
        names=lambda misfits: {each.where for each in misfits.differences},
        show=partial(_show, as_json=False),
        question=_question,
    )


def _show(found: Misfits | CopyReport, *, as_json: bool) -> None:
    if as_json:
        for each in found.differences:
            print_json(each)
        return
    if not found.differences:
        print_line("there is nothing to replace or to remove")
        return
    shown = found.differences[:MOST_SHOWN] if is_terminal() else found.differences
    print_table(_COLUMNS, [(each.where, each.what) for each in shown])
    if len(shown) < found.replaced + found.removed:
        print_line(f"… and {found.replaced + found.removed - len(shown)} more")


def _question(misfits: Misfits) -> str:
    verbs = (("replace", misfits.replaced), ("remove", misfits.removed))
    deed = " and ".join(f"{verb} {count}" for verb, count in verbs if count)
    return f"{deed.capitalize()} in {on_one_line(misfits.target)} for good?"


@contextmanager
def _progress() -> Generator[ReportProgress | None]:
    """How to tell how far a copy is while it runs: to somebody at a terminal, or to nobody."""
    line = _ProgressLine()
    try:
        yield line.show if sys.stderr.isatty() else None
    finally:
        line.clear()


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
