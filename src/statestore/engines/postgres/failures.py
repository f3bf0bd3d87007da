"""What PostgreSQL or the way to it says went wrong, as errors of ours: what happened, where, and what to do."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from statestore.engines.calls import is_at_the_end
from statestore.engines.postgres.driver import load_driver
from statestore.errors import CorruptData, InvalidValue, StateStoreError, StoreUnavailable

_CUT: Final = ("08", "57P01", "57P02", "57P05")
"""SQLSTATEs of a connection that was cut, whatever it was at."""

_FULL: Final = "53300"
"""And of a server or a role that has all the connections it may have."""

_LOST: Final = (*_CUT, _FULL, "57P03", "25006")
"""And of a server that goes, is full, is not there yet, or no longer takes writes."""

_LOCKED: Final = "55P03"
"""And of a lock that somebody else held for longer than it was to be waited for."""

_UNLUCKY: Final = ("40001", "40P01", _LOCKED)
"""And of a transaction that met another one."""


_LATE: Final = "LATE0"
"""And of a commit that came to its end after its time, and did not happen: see ``check_in_time``."""


class NoneTakesWrites(Exception):
    """All servers that could be reached are read-only standbys; of several, one may be promoted soon."""

    def __init__(self, message: str, *, are_several: bool) -> None:
        super().__init__(message)
        self.are_several = are_several


def _state_of(error: BaseException) -> str:
    """The five characters by which PostgreSQL classifies an error; empty if it did not come from there."""
    return getattr(error, "sqlstate", None) or ""


def is_too_late(error: BaseException) -> bool:
    """Whether the time for a commit was over, by the server's clock, and nothing was written."""
    return _state_of(error) == _LATE


def met_another(error: BaseException) -> bool:
    """Whether the transaction met another one, or came late; the connection is as good as before."""
    return _state_of(error).startswith(("40", "55", _LATE))


def may_have_happened(error: BaseException) -> bool:
    """Whether what was asked for may have been done: the answer was lost."""
    if isinstance(error, NoneTakesWrites):
        return False
    state = _state_of(error)
    return not state or state.startswith(_CUT)


def is_full(error: BaseException) -> bool:
    """Whether there may be no more connections; those that there are, are as good as before."""
    return _state_of(error) == _FULL


def is_about_one_batch(error: BaseException | None) -> bool:
    """Whether a server answered, and may have refused a group of batches for one of them alone."""
    state = "" if error is None else _state_of(error)
    return state.startswith(("22", "23", "42", "53", "54", _LOCKED)) and state != _FULL


def is_locked(error: BaseException | None) -> bool:
    """Whether somebody else has locked what was asked for."""
    return error is not None and _state_of(error) == _LOCKED


def is_passing(error: BaseException) -> bool:
    """Whether trying again, perhaps at another server, may help."""
    if isinstance(error, (OSError, NoneTakesWrites)):  # a TimeoutError is an OSError
        return not isinstance(error, (FileNotFoundError, ssl.SSLError))
    state = _state_of(error)
    if state:
        return state.startswith(_LOST) or state in (*_UNLUCKY, _LATE)
    driver = load_driver()
    if isinstance(error, driver.InternalClientError):
        return True  # what the driver says of a connection that was cut at a bad moment
    return isinstance(error, driver.InterfaceError) and "clos" in str(error)


def is_passing_but_for_locks(error: BaseException) -> bool:
    """The same for who does not want to wait until somebody else lets go of a lock."""
    return is_passing(error) and not is_locked(error)


def is_temporary_at_first(error: BaseException) -> bool:
    """Whether a server that was never reached before may be reached soon: it starts, is full, or is being promoted."""
    if isinstance(error, NoneTakesWrites):
        return error.are_several
    return _state_of(error) in ("57P03", _FULL)


def is_about_all_servers(error: BaseException) -> bool:
    """Whether it makes no sense to ask another server: the password is wrong, or there is no such database."""
    return _state_of(error).startswith(("28", "3D"))


def leaves_connection_usable(error: BaseException) -> bool:
    """Whether a connection that gave this error has nothing left to do, and can be used again."""
    state = _state_of(error)
    is_lost = state.startswith(_LOST) and state != _FULL  # which another connection gave, that was not made
    return bool(state) and not is_lost and isinstance(error, load_driver().PostgresError)


@contextmanager
def explained(url: str, timeout: float) -> Generator[None]:
    """What PostgreSQL or the system refuses becomes an error of ours."""
    try:
        yield
    except StateStoreError:
        raise
    except Exception as error:
        driver = load_driver()
        theirs = (driver.PostgresError, driver.InterfaceError, driver.InternalClientError)
        if isinstance(error, (OSError, NoneTakesWrites, *theirs)) or is_at_the_end(error):
            raise explanation(error, url, timeout) from error
        raise


def explanation(error: BaseException, url: str, timeout: float) -> StateStoreError:
    """The error that users are told."""
    state = _state_of(error)
    if state.startswith("28"):
        return StoreUnavailable(f"{url} refuses the login: check the user and the password ({error})")
    if state == "3D000":
        return StoreUnavailable(f"{url}: there is no such database: create it, or correct the name ({error})")
    if state == "42501":
        return StoreUnavailable(
            f"{url}: the role may not do this ({error}): to make a store, grant it CREATE on the database, or USAGE "
            "and CREATE on the schema; for a store of another role, USAGE on the schema and the rights on what is in it"
        )
    if state == _FULL:
        return StoreUnavailable(f"{url} takes no more connections: allow more, or close some ({error})")
    if state.startswith("53"):
        return StoreUnavailable(f"{url}: the server has no room left, and nothing was written ({error})")
    if state == "25006" or isinstance(error, NoneTakesWrites):
        return StoreUnavailable(
            f"{url} is a read-only standby, and none that takes writes was found within {timeout:g} s: "
            "name the primary, or all servers, or open with read_only=True"
        )
    if state == "57014":
        return StoreUnavailable(f"{url}: somebody, or a setting of the server, broke the call off ({error})")
    if state in (_LOCKED, _LATE) or isinstance(error, TimeoutError):
        return StoreUnavailable(
            f"{url} did not answer within {timeout:g} s: look at the server, or wait longer with ?timeout=SECONDS"
        )
    if state.startswith("XX") or state == "58P01":
        return CorruptData(f"{url}: the server says that its data are damaged ({error})")
    if state.startswith("22"):
        return InvalidValue(f"{url} cannot store this: {error}")
    if isinstance(error, (ConnectionRefusedError, socket.gaierror)):
        return StoreUnavailable(f"{url} cannot be reached: is the server running? ({error})")
    return StoreUnavailable(f"{url}: {str(error) or type(error).__name__}")
