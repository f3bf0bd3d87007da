"""How a command fails: one line on standard error, and an exit code that tells a script what kind of failure it is."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from typing import Final, TextIO

from statestore.cli.rewording import reworded
from statestore.errors import (
    CorruptData,
    InvalidName,
    InvalidValue,
    NotSupported,
    ReadOnlyStore,
    StateStoreError,
    StoreClosed,
    StoreNotFound,
    StoreUnavailable,
)
from statestore.visible import on_one_line

DONE: Final = 0
NOT_FOUND: Final = 1
"""Nothing was found, a check failed, or what was asked for could not be done."""
WRONG_USAGE: Final = 2
UNUSABLE: Final = 3
"""The store, or a file that was named, could not be used."""


class CommandFailed(Exception):
    """Ends a command: with a message, an exit code, and lines that help to choose (candidates, for instance)."""

    def __init__(self, message: str, code: int = NOT_FOUND, *, choices: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.choices = tuple(choices)


def no_sessions(url: str, *, is_narrowed: bool) -> CommandFailed:
    """Ends a command that found no sessions: in the whole store, or like those that it was asked for."""
    return CommandFailed("there are no sessions" + (" like that" if is_narrowed else f" in {url}"))


def code_of(error: BaseException) -> int:
    """The exit code for an error."""
    if isinstance(error, CommandFailed):
        return error.code
    if isinstance(error, (StoreUnavailable, StoreClosed, CorruptData, NotSupported, ReadOnlyStore)):
        return UNUSABLE
    if isinstance(error, (InvalidName, InvalidValue)):
        return WRONG_USAGE
    return NOT_FOUND if isinstance(error, StateStoreError) else UNUSABLE


def told(error: BaseException) -> str:
    """What an error says, on one line."""
    if isinstance(error, StoreNotFound):
        return f"there is no store at {error.place}"
    if isinstance(error, (CommandFailed, StateStoreError)):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return f"this is a mistake in statestore itself: {type(error).__name__}: {error}; --debug shows where"


def complain(message: str, choices: Sequence[str] = ()) -> None:
    """A line on standard error, and under it what there is to choose from."""
    lines = [f"statestore: {on_one_line(reworded(message))}", *(f"  {on_one_line(choice)}" for choice in choices)]
    try:
        sys.stderr.write("\n".join(lines) + "\n")
        sys.stderr.flush()
    except OSError:  # nobody can read it: the exit code has to tell
        drop_output(sys.stderr)


def drop_output(stream: TextIO) -> None:
    """Have what was not written yet, and all that follows, go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class WarningLines(logging.Handler):
    """Shows the library's warnings (a session that cannot be read) as lines on standard error, each once."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._told: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Show one."""
        message = record.getMessage()
        if message not in self._told:
            self._told.add(message)
            complain(f"warning: {message}")
