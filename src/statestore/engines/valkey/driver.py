"""The driver, redis: all that we use of it. Loading this loads it, or says how to install it if it is missing."""

from __future__ import annotations

from statestore.errors import StoreUnavailable

try:
    from redis.asyncio import Connection, SSLConnection, UnixDomainSocketConnection
    from redis.asyncio.connection import AbstractConnection
    from redis.crc import key_slot
    from redis.exceptions import (
        AskError,
        AuthenticationError,
        AuthorizationError,
        BusyLoadingError,
        ClusterDownError,
        MovedError,
        NoPermissionError,
        NoScriptError,
        OutOfMemoryError,
        ReadOnlyError,
        RedisError,
        ResponseError,
        TryAgainError,
    )
    from redis.exceptions import ConnectionError as DriverConnectionError
    from redis.exceptions import TimeoutError as DriverTimeoutError
except ImportError as error:
    raise StoreUnavailable("valkey: and redis: stores need the driver: pip install 'statestore[valkey]'") from error
except RuntimeError as error:
    raise StoreUnavailable(f"the driver redis cannot be loaded while the interpreter ends ({error})") from error

__all__ = [
    "AbstractConnection",
    "AskError",
    "AuthenticationError",
    "AuthorizationError",
    "BusyLoadingError",
    "ClusterDownError",
    "Connection",
    "DriverConnectionError",
    "DriverTimeoutError",
    "MovedError",
    "NoPermissionError",
    "NoScriptError",
    "OutOfMemoryError",
    "ReadOnlyError",
    "RedisError",
    "ResponseError",
    "SSLConnection",
    "TryAgainError",
    "UnixDomainSocketConnection",
    "key_slot",
]
