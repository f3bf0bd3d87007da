"""What the server or the network refuses, as errors of ours: what happened, where, and what to do. Never a password."""

from __future__ import annotations

import builtins

from redis.exceptions import (
    AskError,
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    ClusterDownError,
    ClusterError,
    ConnectionError,
    MasterDownError,
    MovedError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    ResponseError,
    TimeoutError,
    TryAgainError,
)

from statestore.errors import CorruptData, StateStoreError, StoreUnavailable

_MOVING = (MovedError, AskError, TryAgainError)
_PASSING = (
    *_MOVING,
    BusyLoadingError,
    ClusterDownError,
    ClusterError,
    ConnectionError,
    MasterDownError,
    TimeoutError,
    OSError,
)
_DENIED = (AuthenticationError, AuthorizationError, NoPermissionError)
_ELSEWHERE = "non local key"
"""What a script is told of a key that is at another node of a cluster, perhaps for as long as a slot moves."""


def may_pass(error: BaseException) -> bool:
    """Whether trying again may help: a lost connection, a server that starts, a cluster that chooses a new master."""
    if isinstance(error, _DENIED):
        return False
    if isinstance(error, RedisClusterException):
        return True
    text = str(error)
    return (
        isinstance(error, _PASSING)
        or text.startswith(("BUSY ", "LOADING", "CLUSTERDOWN", "MASTERDOWN"))
        or _ELSEWHERE in text
    )


def is_starting(error: BaseException) -> bool:
    """Whether somebody is there who may be ready soon, and not nobody."""
    return isinstance(error, (BusyLoadingError, ClusterDownError, TryAgainError, TimeoutError, builtins.TimeoutError))


def has_forgotten(error: BaseException) -> bool:
    """Whether the server does not know a script by its digest."""
    return isinstance(error, ResponseError) and "NOSCRIPT" in f"{type(error).__name__.upper()} {error}"


def explanation(error: Exception, url: str, timeout: float) -> StateStoreError:
    """The error that users are told."""
    match error:
        case AuthenticationError() | AuthorizationError():
            return StoreUnavailable(f"{url} refuses the user or the password: check both in the URL ({error})")
        case NoPermissionError():
            return StoreUnavailable(f"{url}: this user may not do what is needed ({error}): ask for the permission")
        case ReadOnlyError():
            return StoreUnavailable(f"{url} is a replica, which takes no writes: name the primary, or read_only=True")
        case OutOfMemoryError():
            return StoreUnavailable(
                f"{url}: the server's memory is full, and nothing was written: raise maxmemory or delete something"
            )
        case _ if "cluster=true" in url and (isinstance(error, _MOVING) or _ELSEWHERE in str(error)):
            return StoreUnavailable(f"{url}: its slots kept moving for {timeout:g} s: try again when they are settled")
        case MovedError() | AskError():
            return StoreUnavailable(f"{url} is a node of a cluster: add cluster=true to the URL's options")
        case ClusterDownError() | MasterDownError():
            return StoreUnavailable(f"{url}: the cluster is down ({error}): bring its masters up and try again")
        case RedisClusterException():
            return StoreUnavailable(f"{url}: no cluster answers there ({error}): is it one, and is it up?")
        case BusyLoadingError():
            return StoreUnavailable(f"{url}: the server is still loading its data after {timeout:g} s: try again later")
        case TimeoutError() | builtins.TimeoutError():
            return StoreUnavailable(
                f"{url} has not answered for {timeout:g} s: try again, or wait longer with the URL's option "
                "timeout=SECONDS"
            )
        case ConnectionError() | OSError():
            return StoreUnavailable(f"{url} cannot be reached: is the server running? ({error})")
        case _:
            return _of_reply(str(error), url)


def _of_reply(text: str, url: str) -> StateStoreError:
    if "WRONGTYPE" in text:
        return CorruptData(f"{url} holds a key of ours that somebody else wrote ({text}): check() tells what is wrong")
    if text.startswith("OOM") or "OOM command not allowed" in text:
        return StoreUnavailable(
            f"{url}: the server's memory is full, and nothing was written: raise maxmemory or delete something"
        )
    if "READONLY" in text:
        return StoreUnavailable(f"{url} is a replica, which takes no writes: name the primary, or read_only=True")
    if _ELSEWHERE in text or "CROSSSLOT" in text:
        return StoreUnavailable(f"{url} is a node of a cluster: add cluster=true to the URL's options")
    if "cluster support disabled" in text:
        return StoreUnavailable(f"{url} is a single server, not a cluster: leave cluster=true out of the URL's options")
    if "NOPERM" in text or "can't access at least one of the keys" in text or "No permissions" in text:
        return StoreUnavailable(f"{url}: this user may not do what is needed ({text}): ask for the permission")
    if "invalid bulk length" in text:
        return StoreUnavailable(f"{url}: this is longer than the server takes ({text}): raise its proto-max-bulk-len")
    return StoreUnavailable(f"{url}: {text}")


DriverError = (RedisError, RedisClusterException, OSError)
"""What the driver raises."""
