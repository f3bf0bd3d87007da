"""Connections of the driver, as an address asks for them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

from statestore.engines.valkey.address import Address
from statestore.engines.valkey.pool import ConnectionPool
from statestore.errors import StoreUnavailable

if TYPE_CHECKING:
    from redis.asyncio.connection import AbstractConnection

CONNECTIONS: Final = 32
"""How many connections one engine has to one server at most."""
READ_SIZE: Final = 1 << 18


def check_driver() -> None:
    """Raise an error that names the extra if the driver is not installed."""
    try:
        importlib.import_module("redis.asyncio")
    except ImportError as error:
        raise StoreUnavailable("valkey: and redis: stores need the driver: pip install 'statestore[valkey]'") from error
    except RuntimeError as error:
        raise StoreUnavailable(f"the driver redis cannot be loaded while the interpreter ends ({error})") from error


def _settings(address: Address) -> dict[str, Any]:
    """What every connection is made with."""
    return {
        "username": address.username,
        "password": address.password,
        "db": address.db,
        "protocol": 2,
        "socket_timeout": None,  # whoever calls sees to that, once for all that it sends and reads
        "socket_connect_timeout": address.timeout,
        "socket_read_size": READ_SIZE,
        "driver_info": None,
    }


def connect_server(address: Address, node: tuple[str, int]) -> ConnectionPool:
    """A pool of connections to one server; none is made yet."""
    from redis.asyncio import (  # noqa: PLC0415 - loaded when it is used
        Connection,
        SSLConnection,
        UnixDomainSocketConnection,
    )

    settings = _settings(address)
    kind: type[AbstractConnection] = Connection
    if address.socket is not None:
        kind = UnixDomainSocketConnection
        settings["path"] = address.socket
    else:
        settings["host"], settings["port"] = node
        settings["socket_keepalive"] = True
        if address.is_encrypted:
            kind = SSLConnection
            settings["ssl_ca_certs"] = address.ca_file
    return ConnectionPool(lambda: kind(**settings), CONNECTIONS)
