"""Opening: what is made, what is refused, and what is told when it does not work."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from uuid import uuid4

import asyncpg
import pytest
from postgres_hooks import connected, run_in, said, schema_of, until_within

from children import SOURCE
from servers.ports import free_port
from servers.postgres import PASSWORD, PostgresServer, running_server, sql
from statestore import InvalidValue, ReadOnlyStore, StateStore, StoreClosed, StoreUnavailable, UserMessage
from statestore.conformance.changes import created
from statestore.engines.postgres.batches import arguments
from statestore.engines.postgres.failures import explanation
from statestore.engines.postgres.statements import SQL
from statestore.engines.postgres.url import parse
from statestore.opening import engine_for


def refusal(url: str, **options: object) -> str:
    """What is told when a store cannot be opened; never the password."""
    with pytest.raises(StoreUnavailable) as caught:
        StateStore.open(url, **options).close()  # type: ignore[arg-type]
    assert PASSWORD not in str(caught.value)
    assert caught.value.__cause__ is None or PASSWORD not in str(caught.value.__cause__)
    return str(caught.value)


def test_what_is_not_there_is_made_only_if_it_may_be(url: str) -> None:
    assert "create=False makes none" in refusal(url, create=False)
    assert "read_only=True makes none" in refusal(url, read_only=True)
    StateStore.open(url).close()
    StateStore.open(url, create=False).close()


def test_a_role_that_is_no_superuser_makes_the_schema(url: str, store: StateStore) -> None:
    store.save_json("notes", "n", 1)
    assert sql(url.partition("?")[0], "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") == [(False,)]


def test_a_schema_of_a_newer_release_is_refused_and_left_as_it_is(url: str) -> None:
    StateStore.open(url).close()
    run_in(url, "UPDATE store SET version = 99")
    for options in ({}, {"read_only": True}, {"create": False}):
        assert "upgrade statestore" in refusal(url, **options)
    assert run_in(url, "SELECT version FROM store") == [(99,)]


def test_a_store_for_reading_writes_nothing(url: str, store: StateStore, opened: Callable[..., StateStore]) -> None:
    store.get_or_create_session("alice", "s")
    store.append("s", UserMessage("a zebra"))
    tables = ("sessions", "records", "changes", "tokens", "words", "indexed", "indexing", "store")
    counts = [f"SELECT count(*), max(xmin::text::bigint) FROM {table}" for table in tables]
    before = [run_in(url, count) for count in counts]
    reader = opened(read_only=True)
    assert said(reader, "s") == ["a zebra"]
    assert [hit.seq for hit in reader.search_sessions("zebra")] == [1]
    reader.change_cursor()
    assert reader.check() == []
    for write in (lambda: reader.append("s", UserMessage("no")), lambda: reader.save_json("notes", "n", 1)):
        with pytest.raises(ReadOnlyStore):
            write()
    assert [run_in(url, count) for count in counts] == before


def test_a_reader_finds_what_the_index_does_not_have_yet(store: StateStore, opened: Callable[..., StateStore]) -> None:
    store.get_or_create_session("alice", "s")
    store.append("s", UserMessage("zebra one"), UserMessage("zebra two"))
    assert len(store.search_sessions("zebra")) == 2
    store.append("s", UserMessage("zebra three"))
    store.rewind_session("s", to=1)
    store.append("s", UserMessage("zebra four"))
    session = store.load_session("s")
    assert session is not None
    session.set_metadata("title", "of a zebra")
    store.save_session(session)
    reader = opened(read_only=True)
    found = [hit.seq for hit in reader.search_sessions("zebra")]
    assert sorted(seq or 0 for seq in found) == [0, 1, 4]
    assert sorted(hit.seq or 0 for hit in store.search_sessions("zebra")) == [0, 1, 4]


def test_no_server_is_told_at_once() -> None:
    start = time.monotonic()
    port = free_port()
    message = refusal(f"postgresql://me:{PASSWORD}@127.0.0.1:{port}/db?timeout=100")
    assert f"127.0.0.1:{port}/db cannot be reached: is the server running?" in message
    assert time.monotonic() - start < 50


def test_a_host_that_does_not_exist_is_told() -> None:
    message = refusal(f"postgresql://me:{PASSWORD}@no-such-host.invalid/db?timeout=5")
    assert "no-such-host.invalid:5432/db cannot be reached" in message


@pytest.mark.parametrize("error", [ConnectionAbortedError(), BrokenPipeError()])
def test_an_error_without_words_is_named(error: OSError) -> None:
    assert str(explanation(error, "here", 5)) == f"here: {type(error).__name__}"


def test_a_wrong_password_is_told_without_telling_it(own_server: PostgresServer) -> None:
    message = refusal(own_server.url(role="postgres", password="wrong" + PASSWORD))
    assert "refuses the login" in message


def test_no_such_database_is_told(own_server: PostgresServer) -> None:
    assert "no such database" in refusal(own_server.url(database="nowhere"))


def test_a_role_that_may_not_create_is_told_what_to_grant(own_server: PostgresServer) -> None:
    own_server.sql("CREATE ROLE guest LOGIN PASSWORD 'guest'")
    assert "grant" in refusal(own_server.url(role="guest", password="guest"))


@pytest.mark.parametrize("options", [{}, {"read_only": True}])
def test_a_role_that_may_not_use_anothers_store_is_told_what_to_grant(
    own_server: PostgresServer, options: dict[str, object]
) -> None:
    StateStore.open(f"{own_server.url()}?schema=anothers").close()
    own_server.sql("DROP ROLE IF EXISTS stranger", "CREATE ROLE stranger LOGIN PASSWORD 'stranger'")
    message = refusal(f"{own_server.url(role='stranger', password='stranger')}?schema=anothers", **options)
    assert "permission denied for schema anothers" in message
    assert "USAGE on the schema" in message


def _url_of_role(server: PostgresServer, name: str, setting: str) -> str:
    """The URL of a role for which a setting has another default than usual, with a schema of its own."""
    server.sql(
        f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'",
        f"GRANT CREATE ON DATABASE postgres TO {name}",
        f"ALTER ROLE {name} SET {setting}",
    )
    return f"{server.url(role=name)}?schema={name}"


def test_a_role_whose_transactions_only_read_by_default_can_write(own_server: PostgresServer) -> None:
    with StateStore.open(_url_of_role(own_server, "shy", "default_transaction_read_only = on")) as store:
        store.save_json("notes", "n", 1)
        assert store.load_json("notes", "n") == 1


def test_locks_are_waited_for_whatever_the_role_has_for_a_limit(own_server: PostgresServer) -> None:
    waits = "SELECT 1 FROM pg_locks WHERE NOT granted AND waitstart < clock_timestamp() - interval '50 ms'"
    url = _url_of_role(own_server, "hasty", "lock_timeout = '1ms'")

    async def work() -> None:
        engine = engine_for(url)
        async with connected(url) as other, other.transaction():
            await other.execute(SQL["lock_schema"], "statestore:hasty")
            opening = asyncio.create_task(engine.open())
            async with asyncio.timeout(15):
                while not await asyncio.to_thread(own_server.sql, waits):  # noqa: ASYNC110 - happens at the server
                    await asyncio.sleep(0.01)
        await opening
        await engine.close()

    asyncio.run(work())


async def _until_waiting(server: PostgresServer, count: int) -> None:
    waiting = "SELECT 1 FROM pg_locks WHERE NOT granted"
    while len(await asyncio.to_thread(server.sql, waiting)) != count:  # noqa: ASYNC110 - happens at the server
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_who_waits_for_another_sees_what_it_made_whatever_isolation_the_role_has_by_default(
    own_server: PostgresServer, level: str
) -> None:
    name = level.replace(" ", "_")
    url = _url_of_role(own_server, name, f"default_transaction_isolation = '{level}'")

    async def work() -> None:
        one, two = engine_for(url), engine_for(url)
        async with connected(url) as other:
            async with other.transaction():
                await other.execute(SQL["lock_schema"], f"statestore:{name}")
                opening = [asyncio.create_task(engine.open()) for engine in (one, two)]
                await _until_waiting(own_server, 2)
            await asyncio.gather(*opening)
            values = arguments([[created("s")]], iter(["first"]))
            async with other.transaction():
                await other.fetchval(SQL["make_batches"], uuid4(), False, None, *values)
                creating = asyncio.create_task(one.commit([created("s")]))
                await _until_waiting(own_server, 1)
            (outcome,) = await creating
            assert outcome.before == "first"
        await one.close()
        await two.close()

    asyncio.run(work())


def test_a_role_that_has_all_its_connections_is_told(own_server: PostgresServer) -> None:
    own_server.sql(f"CREATE ROLE crowd LOGIN CONNECTION LIMIT 0 PASSWORD '{PASSWORD}'")
    message = refusal(f"{own_server.url(role='crowd')}?timeout=3")
    assert "takes no more connections" in message
    assert "written" not in message, "of which nothing is known here"


def test_a_database_that_is_not_utf8_is_refused(own_server: PostgresServer) -> None:
    own_server.sql("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    assert "UTF8" in refusal(own_server.url(role="postgres", database="latin"))


def test_a_server_that_is_silent_is_given_up_in_time() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        for _ in until_within(1.25 * 2):
            assert "did not answer within 2 s" in refusal(f"postgresql://me@127.0.0.1:{port}/db?timeout=2")


def test_a_store_is_the_same_however_long_one_waits_for_it(url: str, store: StateStore) -> None:
    session = store.get_or_create_session("alice", "s")
    with StateStore.open(url.replace("timeout=20", "timeout=30") + "&connections=2") as patient:
        session.add_user_message("through another door")
        patient.save_session(session)
        assert patient.url == store.url


def test_a_lock_that_is_held_too_long_is_told_in_time(url: str, store: StateStore) -> None:
    store.get_or_create_session("alice", "s")
    impatient = url.replace("timeout=20", "timeout=2")
    with StateStore.open(impatient) as waiting:
        locked, done = threading.Event(), threading.Event()

        async def hold() -> None:
            connection = await asyncpg.connect(url.partition("?")[0])
            async with connection.transaction():
                await connection.execute(f"SELECT 1 FROM {schema_of(url)}.sessions FOR UPDATE")
                locked.set()
                await asyncio.to_thread(done.wait)
            await connection.close()

        holder = threading.Thread(target=asyncio.run, args=(hold(),))
        holder.start()
        locked.wait()
        try:
            for _ in until_within(1.5 * 2):
                with pytest.raises(StoreUnavailable, match="did not answer within 2 s"):
                    waiting.append("s", UserMessage("late"))
        finally:
            done.set()
            holder.join()
    assert said(store, "s") == []


@pytest.mark.parametrize(
    "rest",
    ["?schema=", "?schema=A", "?schema=a-b", "?schema=1a", "?timeout=x", "?timeout=0", "?connections=0", "?nonsense=1"],
)
def test_options_that_make_no_sense_are_refused_before_anything_is_opened(rest: str) -> None:
    with pytest.raises(InvalidValue):
        StateStore.open(f"postgresql://127.0.0.1:1/db{rest}")


@pytest.mark.parametrize("password", ["sec/ret", "sec?ret", "sec/r?t", "sec?timeout=ret", "sec?user=ret", "5/ret"])
def test_a_password_that_is_not_percent_encoded_is_refused_and_no_part_of_it_is_told(password: str) -> None:
    for target in (f"postgresql://me:{password}@h/db", f"postgresql://me:{password}@h:1/db?timeout=1"):
        with pytest.raises(InvalidValue, match="%2F for /") as caught:
            engine_for(target)
        assert caught.value.__context__ is None
        assert "sec" not in str(caught.value).replace("second", "")
        assert "ret" not in str(caught.value)


@pytest.mark.parametrize("host", ["exa..mple", "a" * 300, "\ud800", "a%00b", "h1,exa..mple:5433"])
def test_a_host_that_can_be_none_is_told(host: str) -> None:
    with pytest.raises(InvalidValue, match=r"no name of a host|lone surrogate"):
        engine_for(f"postgresql://me:{PASSWORD}@{host}/db")


def test_a_host_may_have_a_long_name_and_a_port() -> None:
    name = "a" * 63
    assert f"{name}:5433" in engine_for(f"postgresql://{name}:5433,[::1]:5433/db").url


def test_the_url_of_a_store_shows_no_password(url: str, store: StateStore) -> None:
    secret = "hunter2"
    for shown in (store.url, url.replace("keeper:" + PASSWORD, f"keeper:{secret}")):
        assert PASSWORD not in shown
    for target in (f"postgres://me:{secret}@h1,h2:5433/db?timeout=5", f"postgresql:///db?host=/run&password={secret}"):
        engine = engine_for(target)
        assert secret not in engine.url
        assert secret not in repr(vars(engine))
        assert engine_for(engine.url).url == engine.url


@pytest.mark.parametrize("asked", ["password=a+b c&host=/run/my+dir d", "password=a%2Bb%20c&host=/run/my%2Bdir%20d"])
def test_a_plus_in_an_option_is_a_plus(asked: str) -> None:
    target = parse(f"///db?{asked}")
    assert target.login.password == "a+b c"
    assert [address.host for address in target.addresses] == ["/run/my+dir d"]
    assert parse(target.shown.removeprefix("postgresql:")).addresses == target.addresses


def test_without_the_driver_the_extra_is_named() -> None:
    script = (
        "import sys; sys.modules['asyncpg'] = None; from statestore import StateStore, StoreUnavailable\n"
        "try: StateStore.open('postgresql://h/db')\n"
        "except StoreUnavailable as error: assert 'statestore[postgres]' in str(error), error\n"
        "else: raise AssertionError"
    )
    subprocess.run([sys.executable, "-c", script], check=True, env={"PYTHONPATH": str(SOURCE)})


def test_a_read_only_standby_is_told_and_can_be_read() -> None:
    with running_server() as primary:
        with StateStore.open(primary.url()) as store:
            store.get_or_create_session("alice", "s")
            store.append("s", UserMessage("a zebra"))
        standby = PostgresServer()
        try:
            standby.copy_of(primary)
            assert "read-only standby" in refusal(f"{standby.url()}?timeout=3")
            with StateStore.open(standby.url(), read_only=True) as reader:
                assert said(reader, "s") == ["a zebra"]
                assert [hit.seq for hit in reader.search_sessions("zebra")] == [1]
                reader.change_cursor()
                assert reader.check() == []
        finally:
            standby.destroy()


def test_a_full_disk_is_told_and_leaves_nothing_behind(url: str, store: StateStore) -> None:
    store.get_or_create_session("alice", "s")
    full = "BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END"
    run_in(
        url,
        f"CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $${full}$$",
        "CREATE TRIGGER fail BEFORE INSERT ON records FOR EACH ROW EXECUTE FUNCTION fail()",
    )
    with pytest.raises(StoreUnavailable, match="no room left, and nothing was written"):
        store.append("s", UserMessage("one"), UserMessage("two"))
    store.save_json("notes", "n", 1)
    assert said(store, "s") == []
    run_in(url, "DROP TRIGGER fail ON records")
    assert store.append("s", UserMessage("there is room again")) == [1]
    assert store.check() == []


def test_transport_security_can_be_asked_for_and_refused(own_server: PostgresServer) -> None:
    with StateStore.open(f"{own_server.url()}?sslmode=disable&schema=plain") as store:
        store.save_json("notes", "n", 1)
    assert "SSL" in refusal(f"{own_server.url()}?sslmode=require&schema=plain")


@pytest.mark.parametrize("option", ["sslrootcert", "sslcert"])
def test_a_certificate_that_is_not_there_is_named(own_server: PostgresServer, option: str) -> None:
    message = refusal(f"{own_server.url()}?sslmode=require&{option}=/no/such.pem")
    assert f"{option}=/no/such.pem" in message


def test_a_child_process_does_not_use_its_parents_connections(url: str) -> None:
    async def work() -> None:
        engine = engine_for(url)
        await engine.open()
        child = os.fork()
        if child == 0:
            try:
                engine.list_categories().send(None)  # type: ignore[attr-defined]
            except StoreClosed:
                os._exit(7)
            os._exit(0)
        _, status = await asyncio.to_thread(os.waitpid, child, 0)
        assert os.waitstatus_to_exitcode(status) == 7
        assert await engine.list_categories() == []
        await engine.close()

    asyncio.run(work())
