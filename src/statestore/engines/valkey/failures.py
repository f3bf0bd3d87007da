"""What the server or the network refuses, as errors of ours: what happened, where, and what to do. Never a password."""

from __future__ import annotations

from typing import Final

from statestore.engines.valkey.address import Address
from statestore.engines.valkey.driver import (
    AskError,
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    ClusterDownError,
    DriverConnectionError,
    DriverTimeoutError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    TryAgainError,
)
from statestore.errors import CorruptData, StateStoreError, StoreUnavailable

_MOVING: Final = (AskError, TryAgainError)
"""What a node says of a slot that another one has, or is to have; that it has moved is a kind of AskError."""
_PASSING: Final = (*_MOVING, ClusterDownError, DriverConnectionError, DriverTimeoutError, OSError)
_LOGIN: Final = (AuthenticationError, AuthorizationError)
_FORBIDDEN: Final = ("NOPERM", "can't access at least one of the keys", "No permissions")
"""What a script is told of a command or a key that the user has no right to."""
_ELSEWHERE: Final = "non local key"
"""What a script is told of a key that is at another node of a cluster, perhaps for as long as a slot moves."""


def may_pass(error: Exception) -> bool:
    """Whether trying again may help: a lost connection, a server that starts, a cluster that chooses a new master."""
    if isinstance(error, (*_LOGIN, NoPermissionError)):
        return False
    text = str(error)
    return isinstance(error, _PASSING) or text.startswith("BUSY ") or _ELSEWHERE in text


def is_refusal(reply: object) -> bool:
    """Whether a reply is a refusal: the server that was called got the command, and will say the same again."""
    return isinstance(reply, ResponseError) and not may_pass(reply)


def is_starting(error: Exception) -> bool:
    """Whether somebody is there who may be ready soon, and not nobody."""
    return isinstance(error, (BusyLoadingError, ClusterDownError, TryAgainError, DriverTimeoutError, TimeoutError))


def has_forgotten(reply: object) -> bool:
    """Whether a reply says that the server does not know a script by its digest."""
    return isinstance(reply, NoScriptError)


def explanation(error: Exception, address: Address) -> StateStoreError:
    """The error that users are told."""
    url, timeout = address.url, f"{address.timeout:g} s"
    match error:
        case AuthenticationError() | AuthorizationError():
            return StoreUnavailable(f"{url} refuses the user or the password: check both in the URL ({error})")
        case ResponseError():
            return _of_refusal(error, address)
        case BusyLoadingError():
            return StoreUnavailable(f"{url}: the server is still loading its data after {timeout}: try again later")
        case DriverTimeoutError() | TimeoutError():
            return StoreUnavailable(
                f"{url} has not answered for {timeout}: try again, or wait longer with the URL's option timeout=SECONDS"
            )
        case DriverConnectionError() | OSError():
            return StoreUnavailable(f"{url} cannot be reached: is the server running? ({error})")
        case _:
            return StoreUnavailable(f"{url}: {error}")


def _of_refusal(error: ResponseError, address: Address) -> StateStoreError:
    """The same for what the server says. What it says to a script is a part of the text of the script's own error."""
    url, text = address.url, str(error)

    def says(*words: str) -> bool:
        return any(part in text for part in words)

    if isinstance(error, NoPermissionError) or says(*_FORBIDDEN):
        return StoreUnavailable(f"{url}: this user may not do what is needed ({text}): ask for the permission")
    if isinstance(error, ReadOnlyError) or says("READONLY"):
        return StoreUnavailable(f"{url} is a replica, which takes no writes: name the primary, or read_only=True")
    if isinstance(error, OutOfMemoryError) or says("OOM command not allowed"):
        return StoreUnavailable(
            f"{url}: the server's memory is full, and nothing was written: raise maxmemory or delete something"
        )
    if address.is_cluster and (isinstance(error, _MOVING) or says(_ELSEWHERE)):
        return StoreUnavailable(
            f"{url}: its slots kept moving for {address.timeout:g} s: try again when they are settled"
        )
    if isinstance(error, AskError) or says(_ELSEWHERE, "CROSSSLOT"):
        return StoreUnavailable(f"{url} is a node of a cluster: add cluster=true to the URL's options")
    if isinstance(error, ClusterDownError):
        return StoreUnavailable(f"{url}: the cluster is down ({text}): bring its masters up and try again")
    if says("WRONGTYPE"):
        return CorruptData(f"{url} holds a key of ours that somebody else wrote ({text}): check() tells what is wrong")
    if says("cluster support disabled"):
        return StoreUnavailable(f"{url} is a single server, not a cluster: leave cluster=true out of the URL's options")
    if says("invalid bulk length"):
        return StoreUnavailable(f"{url}: this is longer than the server takes ({text}): raise its proto-max-bulk-len")
    return StoreUnavailable(f"{url}: {text}")
