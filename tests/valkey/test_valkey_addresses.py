"""Ways to a server: TCP, a Unix socket, TLS, users, databases, prefixes."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from pathlib import Path

import pytest

from servers.valkey import ValkeyServer, server
from statestore import AsyncStateStore, Session, StateStore
from statestore.engines.valkey.url import parse
from statestore.errors import InvalidValue, StoreUnavailable


def test_prefixes_and_databases_are_stores_of_their_own(own_server: ValkeyServer) -> None:
    places = ["", "/1", "?prefix=a", "/1?prefix=a", "?prefix=a:b", "?db=2"]
    for place in places:
        with StateStore.open(own_server.url + place) as store:
            assert store.list_categories() == []
            store.save_json("notes", "place", place)
    for place in places:
        with StateStore.open(own_server.url + place) as store:
            assert store.load_json("notes", "place") == place


@pytest.mark.parametrize("inner", ["app:s", "app:d", "app:t", "app:ids", "app:newest-ones"])
def test_a_store_whose_prefix_is_in_anothers_is_left_alone(own_server: ValkeyServer, inner: str) -> None:
    own_server.client.hset("app:newest:s:{foreign}:h", "size", "1")
    own_server.client.zadd("app:d:{foreign}x", {"n\0json": 0})
    own_server.client.hset("app:d:{foreign}:zip:n", "body", "1")
    own_server.client.hset("app:s:{a}b{c}:h", "place", "1")
    with (
        StateStore.open(f"{own_server.url}?prefix=app") as outer,
        StateStore.open(f"{own_server.url}?prefix={inner}") as store,
    ):
        for user, place in (("alice", outer), ("bob", store)):
            session = Session.with_id(user, "s")
            session.add_user_message("hello")
            session.set_metadata("title", "T")
            place.save_session(session)
            place.save_json("notes", "n", user)
        held = own_server.client.keys()
        assert outer.check() == outer.check(repair=True) == store.check() == store.check(repair=True) == []
        assert own_server.client.keys() == held
        for user, place in (("alice", outer), ("bob", store)):
            assert [(it.id, it.user_id) for it in place.list_sessions()] == [("s", user)]
            assert place.load_json("notes", "n") == user


@pytest.mark.parametrize("prefix", ["app:newest", "app:newest:x", "a:b:newest:c"])
def test_a_prefix_among_anothers_keys_is_refused(prefix: str) -> None:
    with pytest.raises(InvalidValue, match="part :newest"):
        parse("valkey", f"//localhost?prefix={prefix}")
    for near in ("newest", "newest:app", "app:newests", "app-newest", "app:s:d:store"):
        assert parse("valkey", f"//localhost?prefix={near}").prefix == near


def test_a_socket_is_a_way_to_a_server(tmp_path: Path) -> None:
    path = tmp_path / "valkey.sock"
    with server("--unixsocket", str(path)) as found:
        with StateStore.open(f"valkey://{path}") as store:
            store.save_json("notes", "n", 1)
            assert store.url == f"valkey://{path}"
        with StateStore.open(found.url) as store:
            assert store.load_json("notes", "n") == 1


def test_a_url_is_read_as_it_is_meant() -> None:
    address = parse("rediss", "//al%40ice:p%3Aw@[::1]:7000/3?prefix=x&ttl=2.5&timeout=9&ca=/ca.pem")
    assert (address.username, address.password, address.hosts, address.db) == ("al@ice", "p:w", (("::1", 7000),), 3)
    assert (address.prefix, address.ttl, address.timeout, address.ca_file) == ("x", 2.5, 9.0, "/ca.pem")
    assert address.is_encrypted
    assert "p:w" not in repr(address) + address.url
    assert not parse("redis", "//localhost").is_encrypted
    several = parse("valkey", "//a:1,b:2?cluster=true")
    assert (several.hosts, several.is_cluster) == ((("a", 1), ("b", 2)), True)
    special = parse("valkey", "//al%40ice@h?prefix=a%40b%26c%25%2B")
    assert (special.username, special.prefix) == ("al@ice", "a@b&c%+")
    socket = parse("valkey", "//al%40ice@/run/a%3Fb%40c%25 d,e.sock?db=2")
    assert (socket.socket, socket.db) == ("/run/a?b@c% d,e.sock", 2)
    zone = parse("valkey", "//[fe80::1%25ee0]:7000")
    assert zone.hosts == (("fe80::1%ee0", 7000),)
    for address in (several, special, socket, zone):
        assert parse("valkey", address.url.removeprefix("valkey:")) == address


def test_a_database_is_told_once() -> None:
    with pytest.raises(InvalidValue, match="told twice"):
        parse("valkey", "//localhost/3?db=4")
    assert parse("valkey", "//localhost/?db=4").db == parse("valkey", "//localhost/4").db == 4


def test_an_address_is_shown_without_its_password() -> None:
    address = parse("valkey", "//alice:s3cret@localhost")
    assert address.__rich_repr__() == [("url", address.url)]
    assert "s3cret" not in f"{address!r} {address.url}"


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for this machine, and its key in the same file."""
    key, found = tmp_path / "key.pem", tmp_path / "cert.pem"
    name = ("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", found, *name]
    subprocess.run(command, check=True, capture_output=True)
    found.write_bytes(found.read_bytes() + key.read_bytes())
    return found


def test_an_encrypted_connection_needs_a_certificate_that_is_trusted(
    own_server: ValkeyServer, certificate: Path
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", own_server.port)
        try:
            while request := await reader.read(1 << 16):
                there_writer.write(request)
                writer.write(await there_reader.read(1 << 16))
                await writer.drain()
        finally:
            there_writer.close()
            writer.close()

    async def run() -> None:
        listener = await asyncio.start_server(forward, "127.0.0.1", 0, ssl=context)
        async with listener:
            url = f"valkeys://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
            async with AsyncStateStore.open(f"{url}?ca={certificate}") as store:
                await store.save_json("notes", "n", 1)
                assert await store.load_json("notes", "n") == 1
            with pytest.raises(StoreUnavailable, match="cannot be reached"):
                await AsyncStateStore.open(url)

    asyncio.run(run())
