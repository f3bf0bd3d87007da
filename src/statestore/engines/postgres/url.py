"""``postgresql://user:password@host1,host2/database?schema=statestore&timeout=30`` - from a URL to the engine."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlencode

from msgspec import Struct

from statestore.engines.postgres.engine import PostgresEngine
from statestore.engines.postgres.servers import Address, Login
from statestore.errors import InvalidValue
from statestore.jsontext import check_text

PORT: Final = 5432
_OURS: Final = ("schema", "timeout", "connections")
_TLS: Final = ("sslmode", "sslrootcert", "sslcert", "sslkey")
_SCHEMA: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")


class Target(Struct, frozen=True):
    """What a URL names."""

    login: Login
    addresses: tuple[Address, ...]
    options: dict[str, Any]
    shown: str
    """The URL without its password."""


def open_url(rest: str, *, create: bool = True, read_only: bool = False, durability: str = "full") -> PostgresEngine:
    """The engine for ``postgresql:REST``."""
    target = parse(rest)
    return PostgresEngine(
        target.login,
        target.addresses,
        url=target.shown,
        create=create,
        read_only=read_only,
        durability=durability,
        **target.options,
    )


def parse(rest: str) -> Target:
    """What a URL names, the part after its scheme; `InvalidValue` if it makes no sense."""
    check_text(rest, "a postgresql: URL")
    if not rest.startswith("//"):
        raise InvalidValue("postgresql: needs a server: postgresql://user:password@host/database")
    place, _, query = rest[2:].partition("?")
    authority, _, database = place.partition("/")
    if "@" in database or "@" in query:
        raise InvalidValue(
            "postgresql: has an @ after the server's name: in a user, a password or any other part of the URL, write "
            "%40 for @, %2F for /, %3F for ? and %23 for # (urllib.parse.quote(text, safe='') does it)"
        )
    credentials, at, hosts = authority.rpartition("@")
    user, colon, password = credentials.partition(":") if at else ("", "", "")
    asked = _asked(query)
    if "host" in asked:  # the form for sockets: postgresql:///db?host=/run/postgresql
        hosts = asked.pop("host")
    addresses = tuple(_address(host, asked.get("port")) for host in (hosts or "localhost").split(","))
    asked.pop("port", None)
    secret = asked.pop("password", unquote(password) if colon else None)
    login = Login(
        user=asked.pop("user", unquote(user)) or None,
        password=secret,
        database=unquote(database) or None,
        tls={name: asked.pop(name) for name in _TLS if name in asked},
    )
    options = _options(asked)
    return Target(login, addresses, options, _shown(login, addresses, asked))


def _asked(query: str) -> dict[str, str]:
    asked = dict(parse_qsl(query.replace("+", "%2B"), keep_blank_values=True))  # as libpq: + is no space
    known = (*_OURS, *_TLS, "host", "port", "user", "password")
    for name in asked:
        if name not in known:
            raise InvalidValue(f"postgresql: knows the options {', '.join(known)}, not {name!r}")
    return asked


def _address(host: str, port: str | None) -> Address:
    host = unquote(host)
    if host.startswith("/"):
        return Address(_checked(host), _number(port))
    bracketed = re.fullmatch(r"\[([^\]]+)\](?::(\d+))?", host)  # IPv6
    if bracketed:
        return Address(_checked(bracketed[1]), _number(bracketed[2] or port))
    name, _, own_port = host.partition(":")
    return Address(_checked(name) or "localhost", _number(own_port or port))


def _checked(host: str) -> str:
    """Give a host or a directory back; refuse what the system could not even look for."""
    try:
        host.encode("utf-8" if host.startswith("/") else "idna")
    except UnicodeError as error:
        raise InvalidValue(f"postgresql: {host[:100]!r} is no name of a host ({error})") from None
    if "\0" in host:
        raise InvalidValue(f"postgresql: {host[:100]!r} is no name of a host: there is a NUL in it")
    return host


def _number(port: str | None) -> int:
    if port is None:
        return PORT
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise InvalidValue(  # not quoted: it may be a password
            "postgresql: a port in the URL is not a number from 1 to 65535: is it user:password without @host?"
        )
    return int(port)


def _options(asked: dict[str, str]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    schema = asked.get("schema")
    if schema is not None:
        if not _SCHEMA.fullmatch(schema):
            raise InvalidValue(
                f"postgresql:…?schema= is at most 63 of a-z, 0-9 and _, and does not begin with a digit; not {schema!r}"
            )
        options["schema"] = schema
    for name, kind in (("timeout", float), ("connections", int)):
        if name in asked:
            try:
                options[name] = kind(asked[name])
            except ValueError:
                raise InvalidValue(f"postgresql:…?{name}= is a number, not {asked[name]!r}") from None
    return options


def _shown(login: Login, addresses: tuple[Address, ...], asked: dict[str, str]) -> str:
    user = f"{quote(login.user, safe='')}@" if login.user else ""
    rest = {"schema": asked["schema"]} if "schema" in asked else {}  # how one waits makes it no other store
    if any(address.is_socket for address in addresses):
        rest = {"host": ",".join(address.host for address in addresses), "port": str(addresses[0].port), **rest}
        hosts = ""
    else:
        hosts = ",".join(map(str, addresses))
    query = f"?{urlencode(rest, safe='/,', quote_via=quote)}" if rest else ""
    return f"postgresql://{user}{hosts}/{quote(login.database or '', safe='')}{query}"
