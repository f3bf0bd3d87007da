"""Connections of the driver, as an address asks for them."""

from __future__ import annotations

from typing import Any, Final

from statestore.engines.valkey.address import Address
from statestore.engines.valkey.driver import (
    AbstractConnection,
    Connection,
    SSLConnection,
    UnixDomainSocketConnection,
)
from statestore.engines.valkey.pool import ConnectionPool

CONNECTIONS: Final = 32
"""How many connections one engine has to one server at most."""
READ_SIZE: Final = 1 << 18


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


def pool_for(address: Address, node: tuple[str, int]) -> ConnectionPool:
    """Where connections to one server come from; none is made yet."""
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
