"""Connecting: to the server that takes writes, of several that a URL names, within a time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlencode

from msgspec import Struct

from statestore.engines.postgres.driver import Connection, load_driver
from statestore.engines.postgres.failures import NoneTakesWrites, is_about_all_servers, is_temporary_at_first

PATIENCE: Final = 5.0
"""Seconds for one server to answer while there are others to ask, if it is not its share of the time that is left."""

FILES: Final = ("sslrootcert", "sslcert", "sslkey")
"""The options that name a file."""


class Address(Struct, frozen=True):
    """Where a server listens."""

    host: str
    port: int

    @property
    def is_socket(self) -> bool:
        """Whether it is a directory with a Unix socket."""
        return self.host.startswith("/")

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class Login(Struct, frozen=True):
    """Who connects, to which database, with which transport security.

    Its ``repr``, also as the library rich shows it, tells no password.
    """

    user: str | None = None
    password: str | None = None
    database: str | None = None
    tls: Mapping[str, str] = {}

    def __repr__(self) -> str:
        return f"Login({self.user!r}, {self.database!r})"  # not the password

    def __rich_repr__(self) -> list[Any]:
        return [self.user, self.database]


class Servers:
    """One server, or several of which one at a time takes writes."""

    def __init__(
        self, login: Login, addresses: Sequence[Address], *, needs_writes: bool, settings: Mapping[str, str]
    ) -> None:
        self._login = login
        self._addresses = list(addresses)
        self._needs_writes = needs_writes
        self._settings = dict(settings)
        self._are_pooled = False
        self._driver = load_driver()

    @property
    def are_several(self) -> bool:
        """Whether there is somewhere else to go."""
        return len(self._addresses) > 1

    async def connect(self, seconds: float) -> Connection:
        """A connection to the first server that will do; the one that did last time is asked first."""
        end = asyncio.get_running_loop().time() + seconds
        errors: list[Exception] = []
        for asked, address in enumerate(tuple(self._addresses)):
            left = end - asyncio.get_running_loop().time()
            if left <= 0:
                break
            share = left / (len(self._addresses) - asked)
            try:
                connection = await self._connect_to(address, min(share, PATIENCE) if self.are_several else left)
            except Exception as error:
                if is_about_all_servers(error) or not self.are_several:
                    raise
                errors.append(error)
                continue
            if self._needs_writes and _is_standby(connection):
                connection.terminate()
                errors.append(NoneTakesWrites(f"{address} is a standby", are_several=self.are_several))
                continue
            self._addresses.remove(address)
            self._addresses.insert(0, address)
            return connection
        raise _most_telling(errors)

    async def _connect_to(self, address: Address, seconds: float) -> Connection:
        """A connection to one server, with our settings: a pooler in between refuses to be told them at the login."""
        try:
            async with asyncio.timeout(seconds):
                if not self._are_pooled:
                    with suppress(self._driver.ProtocolViolationError):
                        return await self._log_in(address, seconds, self._settings)
                    self._are_pooled = True
                return await self._told_settings(await self._log_in(address, seconds, {}))
        except FileNotFoundError as error:
            raise _telling(error, address, self._login.tls) from None

    async def _log_in(self, address: Address, seconds: float, settings: Mapping[str, str]) -> Connection:
        login = self._login
        options: dict[str, Any] = {}
        if login.tls:
            options["dsn"] = f"postgresql://?{urlencode(login.tls)}"  # nothing else takes these; it holds no secret
        return await self._driver.connect(
            host=address.host,
            port=address.port,
            user=login.user,
            password=login.password,
            database=login.database,
            timeout=seconds,
            server_settings=settings,
            **options,
        )

    async def _told_settings(self, connection: Connection) -> Connection:
        try:
            settings = (f"set_config('{name}', '{value}', false)" for name, value in self._settings.items())
            await connection.execute(f"SELECT {', '.join(settings)}")
        except BaseException:
            connection.terminate()
            raise
        return connection


def _telling(error: FileNotFoundError, address: Address, tls: Mapping[str, str]) -> OSError:
    """The same with the names of the files that are missing, if they are those that a URL asks for.

    A server that restarts takes its socket away: that is as if it refused to be connected to.
    """
    missing = [f"{name}={tls[name]}" for name in FILES if name in tls and not os.path.exists(tls[name])]
    if missing:
        return FileNotFoundError(error.errno, error.strerror, ", ".join(missing))
    if address.is_socket:
        return ConnectionRefusedError(f"no server has its socket in {address.host} for the port {address.port}")
    return error


def _is_standby(connection: Connection) -> bool:
    return getattr(connection.get_settings(), "in_hot_standby", "off") == "on"  # servers before 14 do not tell


def _most_telling(errors: Sequence[Exception]) -> Exception:
    """Of what several servers answered, what says most: what will pass, as with one that starts, then the first."""
    return next(filter(is_temporary_at_first, errors), errors[0] if errors else TimeoutError())
