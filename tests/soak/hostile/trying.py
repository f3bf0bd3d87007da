"""Trying input: in a process with little memory and little time, and with one rule for what may come of it."""

from __future__ import annotations

import json
import logging
import mmap
import os
import resource
from collections import Counter
from collections.abc import Callable
from typing import Final, TypeVar

from children import Child
from statestore import StateStoreError

T = TypeVar("T")

SECONDS: Final = 100.0
"""After so long a round is taken for hanging, on the slowest machine."""
MEGABYTES: Final = 400
"""What a round may take besides what its process had when it began."""
_SHOWN: Final = 4000


class Tries:
    """Counts what was tried. What is tried last can be seen from outside, should it end or halt the process."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._given: object = None
        self._last = mmap.mmap(-1, _SHOWN)

    def take(self, given: object) -> None:
        """What is tried next."""
        self.counts["inputs"] += 1
        self._given = given
        shown = given if isinstance(given, bytes) else ascii(given).encode()
        size = min(len(shown), _SHOWN - 4)
        self._last[: size + 4] = size.to_bytes(4) + shown[:size]

    def attempt(self, call: Callable[[], T], allowed: tuple[type[Exception], ...] = (StateStoreError,)) -> T | None:
        """What a call makes of it; ``None`` where it refuses as it may. Any other error is a finding."""
        self.counts["calls"] += 1
        try:
            return call()
        except allowed:
            self.counts["refused"] += 1
            return None
        except Exception as error:
            raise AssertionError(f"{error!r} came of {_shown(self._given)}") from error

    def last(self) -> str:
        """What was tried last."""
        return _shown(self._last[4 : 4 + int.from_bytes(self._last[:4])])


def _shown(given: object) -> str:
    shown = repr(given)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}… ({len(shown)} characters)"


def bounded(
    work: Callable[[Tries], object], *, seconds: float = SECONDS, megabytes: int | None = MEGABYTES
) -> Counter[str]:
    """What was tried by work in a process of its own, which may neither hang, nor crash, nor take much memory."""
    tries = Tries()

    def limited(tell: Callable[[str], None]) -> None:
        log = logging.getLogger("statestore")
        log.propagate, log.handlers = False, [_Unheard()]
        if megabytes is not None:
            limit = _address_space() + (megabytes << 20)
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        work(tries)
        tell(json.dumps(tries.counts))

    try:
        ended = Child(limited).ended(seconds)
    except AssertionError as error:
        raise AssertionError(f"{error}: {tries.last()}") from error
    assert not ended.error, ended.error
    assert not ended.signal, f"signal {ended.signal} came of {tries.last()}"
    (counts,) = ended.told
    return Counter(json.loads(counts))


class _Unheard(logging.Handler):
    """Works warnings out, as any handler does, and keeps them to itself."""

    def emit(self, record: logging.LogRecord) -> None:
        record.getMessage()


def _address_space() -> int:
    """How many bytes this process has in its address space."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
