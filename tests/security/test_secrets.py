"""A password in a URL is in nothing that is printed, logged, raised or shown, down to the causes of errors."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from rich.pretty import pretty_repr

from cli.program import run
from servers import postgres, valkey
from statestore import AsyncStateStore, Session, StateStore, StateStoreError, copy_store
from statestore.engines.postgres import url as postgres_url
from statestore.engines.valkey import url as valkey_url
from statestore.opening import engine_for

SECRET = "s3cr3t#p%w rd"
"""It has characters that URLs do not like. In a URL it is percent-encoded."""
CODED = quote(SECRET, safe="")
PIECES = (SECRET, CODED, "s3cr3t", "p%w", "p%25w")

UNREACHABLE = [
    f"postgresql://me:{CODED}@127.0.0.1:1/db?timeout=1",
    f"postgres://me:{CODED}@127.0.0.1:1,127.0.0.1:2/db?timeout=1",
    f"postgresql://127.0.0.1:1/db?user=me&password={CODED}&timeout=1",
    f"postgresql:///db?host=/nowhere&password={CODED}&timeout=1",
    f"postgresql://me:{CODED}@127.0.0.1:1/db?sslmode=require&timeout=1",
    f"postgresql://me:{CODED}@127.0.0.1:1/db?sslmode=verify-full&sslrootcert=/nowhere&timeout=1",
    f"postgresql://me:{CODED}@nowhere.invalid/db?timeout=1",
    f"valkey://:{CODED}@127.0.0.1:1?timeout=1",
    f"redis://me:{CODED}@127.0.0.1:1/3?timeout=1",
    f"rediss://me:{CODED}@127.0.0.1:1?timeout=1",
    f"valkeys://me:{CODED}@127.0.0.1:1?ca=/nowhere&timeout=1",
    f"valkey://me:{CODED}@127.0.0.1:1,127.0.0.1:2?cluster=true&timeout=1",
    f"valkey://me:{CODED}@/nowhere.sock?timeout=1",
]
"""URLs that make sense, of servers that are not there."""

SENSELESS = [
    f"postgresql://me:{CODED}",
    f"postgresql://me:{CODED}/db",
    f"postgresql://me:{CODED},h2/db",
    f"postgresql:me:{CODED}@h/db",
    f"postgresql:/me:{CODED}@h/db",
    f"postgresql://me:{CODED}@h:port/db",
    f"postgresql://me:{CODED}@h:99999/db",
    f"postgresql://me:{CODED}@exa..mple/db",
    f"postgresql://me:{CODED}@h/db?nonsense=1",
    f"postgresql://me:{CODED}@h/db?schema=A-B",
    f"postgresql://h/db?password={CODED}&timeout=soon",
    f"postgresql://h/db?pass={CODED}",
    f"postgresql://me:{CODED}@h/db?sslmode=nonsense&timeout=1",
    f"postgresql://me:{CODED}%00@127.0.0.1:1/db?timeout=1",
    f"valkey://me:{CODED}",
    f"valkey:me:{CODED}@h",
    f"valkey://:{CODED}@h:port",
    f"valkey://:{CODED}@h/db",
    f"valkey://:{CODED}@h?ttl=-1",
    f"valkey://h?password={CODED}",
    f"valkey://:{CODED}%00@h",
    f"valkey://:{CODED}@h1,h2",
    f"redis://:{CODED}@/sock?cluster=true",
    f"sqlite://me:{CODED}@h/state.db",
    f"file://me:{CODED}@h/state",
    f"nosuch://me:{CODED}@h/db",
    f"me:{CODED}@h/db",
]
"""URLs that make no sense, in one way or the other."""


def assert_no_secret_in(text: str) -> None:
    for piece in PIECES:
        assert piece not in text, f"{piece!r} is told: {text[-2000:]}"


def whole_of(error: BaseException) -> str:
    """An error as it is printed, with all that led to it, told or not."""
    told = "".join(traceback.format_exception(error))
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        seen.append(error)
        told += f"{error} {error!r} {error.args}"
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return told.replace("SECRET", "").replace("CODED", "")


@pytest.fixture(autouse=True)
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """All loggers tell all they know."""
    caplog.set_level(logging.DEBUG)
    return caplog


def _open_plain(url: str) -> None:
    StateStore.open(url).close()


def _open_async(url: str) -> None:
    async def opened() -> None:
        opening = AsyncStateStore.open(url)
        assert_no_secret_in(repr(opening))
        async with opening as store:
            await store.check()

    asyncio.run(opened(), debug=True)


def _copy_from(url: str) -> None:
    copy_store(url, "memory:")


def _copy_to(url: str) -> None:
    copy_store("memory:", url)


@pytest.mark.parametrize("url", [*UNREACHABLE, *SENSELESS])
def test_no_error_of_a_store_that_cannot_be_opened_tells_a_password(
    url: str, logged: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder
) -> None:
    ways: list[Callable[[str], None]] = [_open_plain, _open_async, _copy_from, _copy_to]
    for way in ways if url in UNREACHABLE[:1] + UNREACHABLE[7:8] else ways[:2]:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            with pytest.raises(StateStoreError) as caught:
                way(url)
        assert_no_secret_in(whole_of(caught.value))
    assert_no_secret_in(logged.text)
    assert_no_secret_in(" ".join(str(warning.message) for warning in recwarn.list))


@pytest.mark.parametrize("url", UNREACHABLE)
def test_nothing_that_an_engine_shows_of_itself_tells_a_password(url: str) -> None:
    engine = engine_for(url)
    scheme, _, rest = url.partition(":")
    address = postgres_url.parse(rest) if scheme.startswith("postgres") else valkey_url.parse(scheme, rest)
    assert_no_secret_in(f"{engine!r} {engine} {engine.url} {vars(engine)!r} {address!r}")
    assert_no_secret_in(pretty_repr([engine, vars(engine), address]))


def _with_secret(url: str) -> str:
    """The URL of a server that takes any password, or refuses this one."""
    scheme, _, rest = url.partition("://")
    user, at, place = rest.rpartition("@")
    name = user.partition(":")[0] if at else ""
    return f"{scheme}://{name}:{CODED}@{place}"


def test_a_refused_password_is_not_told(logged: pytest.LogCaptureFixture) -> None:
    refusing = [
        _with_secret(postgres.shared_url()).replace("keeper", "postgres"),
        _with_secret(postgres.shared_url()).replace("keeper", "nobody"),
        _with_secret(valkey.shared_url()).replace("://", "://nobody"),
    ]
    for url in refusing:
        with pytest.raises(StateStoreError) as caught:
            _open_async(url)
        assert_no_secret_in(whole_of(caught.value))
    assert_no_secret_in(logged.text)


def test_a_store_in_use_tells_no_password(logged: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    url = f"{_with_secret(postgres.shared_url())}?schema=secrets&timeout=20"
    with StateStore.open(url) as store:
        session = store.get_or_create_session("alice", "s")
        session.add_user_message("hello")
        store.save_session(session)
        elsewhere = Session("alice", "s")
        with pytest.raises(StateStoreError) as caught:
            store.save_session(elsewhere)
        with StateStore.open(tmp_path / "copy.db") as copy, pytest.raises(StateStoreError) as wrong_store:
            copy.save_session(session)
        report = copy_store(url, f"file:{tmp_path / 'files'}")
        shown = f"{store!r} {store.url} {session!r} {report!r} {store.check()!r} {store.for_user('alice')!r}"
    with pytest.raises(StateStoreError) as closed:
        store.list_sessions()
    postgres.sql(postgres.shared_url(), "DROP SCHEMA secrets CASCADE")
    for text in (shown, logged.text, *map(whole_of, (caught.value, wrong_store.value, closed.value))):
        assert_no_secret_in(text)


@pytest.mark.parametrize(
    ("url", "arguments"),
    [
        (UNREACHABLE[0], ("ls",)),
        (UNREACHABLE[7], ("--debug", "ls")),
        (UNREACHABLE[0], ("check", "--json")),
        (SENSELESS[1], ("--debug", "ls", "--json")),
    ],
    ids=["a server", "with its traceback", "as JSON", "a URL"],
)
def test_the_command_line_tells_no_password_when_it_fails(url: str, arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = run(tmp_path, *arguments, STATESTORE_URL=url)
    assert done.returncode
    assert done.stderr
    assert_no_secret_in(done.stdout + done.stderr)


def test_the_command_line_tells_no_password_when_it_works(tmp_path: Path) -> None:
    url = f"{_with_secret(postgres.shared_url())}?schema=cli_secrets&timeout=20"
    for arguments in (
        ("new", "trip", "--user", "alice"),
        ("stats",),
        ("copy", url, str(tmp_path / "copy.db")),
        ("--debug", "show", "nowhere"),
    ):
        done = run(tmp_path, *arguments, STATESTORE_URL=url)
        assert_no_secret_in(done.stdout + done.stderr)
    postgres.sql(postgres.shared_url(), "DROP SCHEMA cli_secrets CASCADE")


def test_the_conformance_suite_tells_no_password() -> None:
    def told(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "statestore.conformance", url, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert_no_secret_in(done.stdout + done.stderr)
        return done

    url = f"{_with_secret(postgres.shared_url())}?schema=suite_secrets&timeout=20"
    try:
        for arguments in ((), ("--json",)):
            done = told("-k", "test_ties_go_by_id", *arguments)
            assert done.returncode == 0, done.stderr
            assert "suite_secrets" in done.stdout
        with StateStore.open(url) as store:
            store.save_json("notes", "precious", 1)
        assert "suite_secrets is not empty" in told().stderr
    finally:
        postgres.sql(postgres.shared_url(), "DROP SCHEMA suite_secrets CASCADE")
