"""Where a store is: hosts or a socket, who we are there, and the options of its URL."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct

from statestore.errors import InvalidValue
from statestore.jsontext import is_unicode

PREFIX: Final = "statestore"
TIMEOUT: Final = 30.0
PORT: Final = 6379


class Address(Struct, frozen=True):
    """All that a URL says. Its ``repr``, also as the library rich shows it, and its ``url`` tell no password."""

    scheme: str = "valkey"
    hosts: tuple[tuple[str, int], ...] = (("localhost", PORT),)
    socket: str | None = None
    """The path of a Unix socket, in place of hosts."""
    db: int = 0
    username: str | None = None
    password: str | None = None
    ca_file: str | None = None
    """The certificates to trust, in place of the system's."""
    prefix: str = PREFIX
    """What all keys of the store begin with."""
    ttl: float = 0
    """Seconds after which a session that nobody changes is gone; 0 for never."""
    timeout: float = TIMEOUT
    """Seconds after which the server is given up."""
    is_cluster: bool = False

    def __post_init__(self) -> None:
        for what, text in self._texts():
            if "\0" in text or not is_unicode(text):
                raise InvalidValue(f"{what} is a text without NUL and without half characters (lone surrogates)")
        if not self.prefix or set(self.prefix) & set("{}*?[]\\\0"):
            raise InvalidValue(f"prefix is a text without any of {{ }} * ? [ ] \\ and NUL, not {self.prefix!r}")
        outer, is_inside, _ = f"{self.prefix}:".partition(":newest:")
        if is_inside:
            raise InvalidValue(
                f"prefix {self.prefix!r} has the part :newest, under which a store with the prefix {outer!r} keeps "
                "its listings: choose another one"
            )
        if not 0 <= self.ttl <= 3_000_000_000:
            raise InvalidValue(f"ttl is a number of seconds from 0 up, not {self.ttl!r}")
        if not 0 < self.timeout <= 2_000_000:
            raise InvalidValue(f"timeout is a number of seconds above 0, not {self.timeout!r}")
        if self.is_cluster and (self.db or self.socket):
            raise InvalidValue("a cluster has the database 0 only, and is reached by host and port")
        if len(self.hosts) > 1 and not self.is_cluster:
            raise InvalidValue("several hosts are for a cluster: add cluster=true to the URL's options")

    def _texts(self) -> list[tuple[str, str]]:
        texts = [("a host in the URL", host) for host, _ in self.hosts]
        texts += [("the socket's path", self.socket or ""), ("the user's name", self.username or "")]
        texts += [("the password", self.password or ""), ("prefix", self.prefix), ("ca", self.ca_file or "")]
        return texts

    @property
    def is_encrypted(self) -> bool:
        """Whether the connection is made with TLS."""
        return self.scheme in ("valkeys", "rediss")

    @property
    def ttl_ms(self) -> int:
        """The time to live in milliseconds, as the server counts; 0 for ever."""
        return max(round(self.ttl * 1000), 1) if self.ttl else 0

    @property
    def url(self) -> str:
        """The store as a URL, without any password."""
        user = f"{quote(self.username, safe='')}@" if self.username else ""
        if self.socket is None:
            quoted = [(quote(host, safe=":"), port) for host, port in self.hosts]
            hosts = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in quoted)
            place = f"{user}{hosts}/{self.db}"
        else:
            place = f"{user}{quote(self.socket)}"
        options = [] if self.prefix == PREFIX else [f"prefix={quote(self.prefix, safe=':/')}"]
        options += [f"db={self.db}"] if self.socket and self.db else []
        options += ["cluster=true"] if self.is_cluster else []
        return f"{self.scheme}://{place}{'?' if options else ''}{'&'.join(options)}"

    def __repr__(self) -> str:
        return f"Address({self.url!r})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("url", self.url)]
