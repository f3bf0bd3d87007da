"""``valkey://[user:password@]host[:port][/db]?prefix=…&ttl=…`` - from a URL to the engine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from statestore.engines.valkey.address import PORT, Address
from statestore.engines.valkey.cluster_engine import ValkeyClusterEngine
from statestore.engines.valkey.engine import ValkeyEngine
from statestore.errors import InvalidValue
from statestore.jsontext import check_text

_TRUTHS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def _open_url(
    scheme: str, rest: str, *, create: bool = True, read_only: bool = False, durability: str = "full"
) -> ValkeyEngine | ValkeyClusterEngine:
    """The engine for a URL, of which ``rest`` is what comes after the scheme."""
    address = parse(scheme, rest)
    make = ValkeyClusterEngine if address.is_cluster else ValkeyEngine
    return make(address, create=create, read_only=read_only, durability=durability)


open_valkey = partial(_open_url, "valkey")
open_valkeys = partial(_open_url, "valkeys")
open_redis = partial(_open_url, "redis")
open_rediss = partial(_open_url, "rediss")


def parse(scheme: str, rest: str) -> Address:
    """The address in a URL."""
    check_text(rest, f"a {scheme}: URL")
    place, _, query = rest.partition("?")
    if not place.startswith("//") or place == "//":
        raise InvalidValue(
            f"{scheme}: needs a host, like {scheme}://localhost:6379, or the path of a socket, like "
            f"{scheme}:///run/valkey.sock"
        )
    if "@" in query:
        raise InvalidValue(
            f"in a {scheme}: URL an @ stands before the host, and one comes after a ? here: percent-encode a password "
            "(? is %3F, @ is %40), and an @ in an option, too"
        )
    options = _options(query)
    who, _, where = place[2:].rpartition("@")
    user, _, password = who.partition(":")
    known: dict[str, Any] = {"scheme": scheme, "username": unquote(user) or None, "password": unquote(password) or None}
    hosts, slash, path = where.partition("/")
    if not hosts:
        known["socket"] = f"/{unquote(path)}"
    else:
        known["hosts"] = tuple(_host(host) for host in hosts.split(","))
        if slash and path:
            if "db" in options:
                raise InvalidValue(f"the database's number is told twice: as {scheme}://host/DB, and as the option db=")
            known["db"] = _number(path, f"{scheme}://host/DB")
    return Address(**known, **options)


def _host(text: str) -> tuple[str, int]:
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    else:
        host, _, port = text.partition(":")
    if not host:
        raise InvalidValue("a host in the URL is empty: write it like localhost:6379")
    return unquote(host), _port(port) if port else PORT


def _number(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InvalidValue(f"{what} is a whole number, not {text[:40]!r}")
    return int(text)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 0 < int(text) < 65_536):
        raise InvalidValue("a port in the URL is not a number up to 65535: is it user:password without @host?")
    return int(text)


def _seconds(text: str, what: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidValue(f"{what} is a number of seconds, not {text[:40]!r}") from None


def _truth(text: str, what: str) -> bool:
    if text not in _TRUTHS:
        raise InvalidValue(f"{what} is true or false, not {text[:40]!r}")
    return _TRUTHS[text]


_OPTIONS: Final[dict[str, tuple[str, Callable[[str, str], Any]]]] = {
    "prefix": ("prefix", lambda text, _: text),
    "ttl": ("ttl", _seconds),
    "timeout": ("timeout", _seconds),
    "cluster": ("is_cluster", _truth),
    "db": ("db", _number),
    "ca": ("ca_file", lambda text, _: text),
}


def _options(query: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in _OPTIONS:
            raise InvalidValue(f"a valkey: URL knows the options {', '.join(_OPTIONS)}, not {name[:40]!r}")
        field, read = _OPTIONS[name]
        found[field] = read(value, f"the option {name}=")
    return found
