"""``statestore import``: what was exported, or a directory that the Rust program wrote."""

from __future__ import annotations

import io
import os
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Final, cast

import typer

from statestore import StateStore
from statestore.cli.failures import NOT_FOUND, UNUSABLE, CommandFailed, complain
from statestore.cli.opening import writing
from statestore.cli.parameters import Json
from statestore.cli.printing import print_json, print_line
from statestore.exchange import Imported, check_beginning, check_directory, import_path, import_sessions

EXAMPLES: Final = (
    "statestore import alice.jsonl",
    "statestore --store new.db import old-state/",
    "ssh host statestore export | statestore import -",
)
_STANDARD_INPUT: Final = "-"
_ITS_NAME: Final = "standard input"


def import_(
    ctx: typer.Context,
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="jsonl, json, a directory; -: standard input.")],
    as_json: Json = False,
) -> None:
    """Import sessions that were exported as jsonl or json, or a directory that the Rust program wrote.

    Each session is stored wholly or not at all. What is there already is skipped, so an import can be repeated;
    another session with the same id is left alone, and named. A store that is not there yet is made.
    """
    for file in files:
        _look_at(file)
    fates: Counter[str] = Counter()
    with writing(ctx, create=True) as store:
        try:
            for file in files:
                for item in _items(store, file):
                    fates[item.fate] += 1
                    if as_json:
                        print_json(item)
                    elif item.fate == "refused":
                        complain(f"{item.where} was not imported: {item.reason}")
                if os.path.isdir(file):
                    _tell_problems(file)
        finally:
            if not as_json:
                print_line(_summary(fates))
    if not fates:
        raise CommandFailed(f"there is nothing to import in {', '.join(files)}")
    if fates["refused"]:
        raise typer.Exit(NOT_FOUND)


def _look_at(file: str) -> None:
    """Fail if there is nothing to import, before a store is made."""
    if file == _STANDARD_INPUT:
        check_beginning(cast("io.BufferedReader", sys.stdin.buffer).peek(), _ITS_NAME)
    elif not os.path.exists(file):
        raise CommandFailed(f"there is no file {file}", UNUSABLE)
    elif os.path.isdir(file):
        check_directory(file)
    elif os.path.isfile(file):  # and not a pipe, of which nothing can be read twice
        with open(file, "rb") as stream:
            check_beginning(stream.peek(), file)


def _items(store: StateStore, file: str) -> Iterator[Imported]:
    if file == _STANDARD_INPUT:
        return import_sessions(store, sys.stdin.buffer, name=_ITS_NAME)
    return import_path(store, file)


def _tell_problems(directory: str) -> None:
    """What lies in a directory that is no session and no document, or is not as it should be."""
    with StateStore.open(f"file:{directory}", create=False, read_only=True) as source:
        for problem in source.check():
            complain(f"warning: {directory}: {problem.where}: {problem.what}")


def _summary(fates: Counter[str]) -> str:
    told = [f"{fates['imported']} imported"]
    told += [f"{fates['skipped']} there already"] if fates["skipped"] else []
    told += [f"{fates['refused']} refused"] if fates["refused"] else []
    return ", ".join(told)
