"""Ports for servers that tests start, and start again.

They lie below those that a system gives to clients, so that no connection takes a server's port while it is down.
"""

from __future__ import annotations

import random
import socket
from typing import Final

_FIRST, _END = 11_000, 21_000
_TO_BUS: Final = 10_000
"""How far above its port a node of a Valkey cluster has its bus."""
_chance: Final = random.SystemRandom()


def free_port() -> int:
    """A port that nobody uses, nor the one for a bus with it, and that was not given to any process of tests."""
    while True:
        port = _chance.randrange(_FIRST, _END)
        if _is_claimed_now(port) and _is_free(port) and _is_free(port + _TO_BUS):
            return port


def _is_claimed_now(port: int) -> bool:
    """Whether it was nobody's until now. A name that one process at a time can have is kept until this one ends."""
    with socket.socket(socket.AF_UNIX) as claim:
        try:
            claim.bind(f"\0statestore-tests-port-{port}")
        except OSError:
            return False
        claim.detach()
    return True


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
