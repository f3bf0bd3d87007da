"""``main``: runs one command, and sees to it that it ends as a good program does.

Errors are one line, without a traceback. Ctrl-C and a closed pipe end it as they end any other program: silently,
and so that the shell can tell.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import typer
from typer.main import get_command

from statestore.cli.app import app
from statestore.cli.coercing import take_plain_values_as_they_are
from statestore.cli.failures import DONE, NOT_FOUND, WarningLines, code_of, complain, drop_output, told

NAME: Final = "statestore"
_COMPLETION: Final = "_STATESTORE_COMPLETE"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``statestore`` with these arguments, or those of the process; the exit code."""
    given = tuple(sys.argv[1:] if arguments is None else arguments)
    _use_safe_streams()
    if _COMPLETION in os.environ:
        app(prog_name=NAME)
    logging.getLogger("statestore").addHandler(WarningLines())
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # from here on there is something to tidy up
        code = _run(list(given) or ["--help"])
        sys.stdout.flush()
    except KeyboardInterrupt:
        _die_of(signal.SIGINT)
    except BrokenPipeError:
        _die_of(signal.SIGPIPE)
    except typer.Abort:
        complain("stopped: nothing was changed")
        return NOT_FOUND
    except Exception as error:  # noqa: BLE001 - shown as one line, or in full with --debug
        _write_what_is_left()
        return _failed(error, is_debugging="--debug" in given)
    return code


def _run(arguments: list[str]) -> int:
    command: Any = get_command(app)
    take_plain_values_as_they_are(command)
    try:
        with command.make_context(NAME, arguments) as ctx:
            command.invoke(ctx)
    except typer.Exit as end:
        return end.exit_code
    return DONE


def _failed(error: Exception, *, is_debugging: bool) -> int:
    if hasattr(error, "format_message"):  # typer's own: a wrong option, a missing argument
        return _misused(error)
    if is_debugging:
        import traceback  # noqa: PLC0415 - loaded when it is used

        traceback.print_exception(error)
    else:
        complain(told(error), getattr(error, "choices", ()))
    return code_of(error)


def _misused(error: Any) -> int:
    path = error.ctx.command_path if getattr(error, "ctx", None) else NAME
    message = error.format_message().rstrip(".")
    message = message[:1].lower() + message[1:]
    complain(message if "--help" in message else f"{message} (see {path} --help)")
    return error.exit_code


def _use_safe_streams() -> None:
    """Whatever the terminal's encoding, no character of a message is an error; nor is a stream that was closed."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115 - it takes the number of the closed one
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _write_what_is_left() -> None:
    """Write what was printed before an error, so that the error comes after it."""
    try:
        sys.stdout.flush()
    except OSError:  # there is no room for it, which may be the very error
        drop_output(sys.stdout)


def _die_of(number: signal.Signals) -> NoReturn:
    """End as the signal ends other programs, so that a shell's loop ends too. What was not written yet is dropped."""
    drop_output(sys.stdout)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)
