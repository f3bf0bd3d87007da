"""The terminal of a run: what is being done now, and nothing of what the peers have to say."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from benchmarks.peers.entries import Tell


def terminal() -> Console:
    """As wide as it is; into a pipe, wide enough for the tables."""
    return Console(width=None if sys.stdout.isatty() else 200)


@contextmanager
def telling(console: Console) -> Iterator[Tell]:
    """Show what is being done, until it is done."""
    warnings.simplefilter("ignore")  # the peers' own deprecations are not ours to show
    logging.disable(logging.CRITICAL)
    with console.status("starting") as status:
        yield status.update
