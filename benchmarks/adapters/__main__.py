"""``python -m benchmarks.adapters [NAME…]``: the tables of these frameworks, or of all."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

import msgspec

from benchmarks.adapters import table
from benchmarks.adapters.measuring import measure
from benchmarks.adapters.pairs import PAIRS
from benchmarks.peers.measuring import begun
from benchmarks.peers.terminal import telling, terminal


def main() -> int:
    """Measure, show. Exit code 1: something did not run."""
    options = _options()
    console = terminal()
    run = begun()
    with telling(console) as tell:
        asyncio.run(measure(run, options.names or [*PAIRS], options.quick, tell))
    table.show(run, console)
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(run), indent=2))
    return 1 if any(store.errors for store in run.stores) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "benchmarks.adapters", description="Adapters on SQLite beside the frameworks' own stores."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", type=_framework, help=", ".join(PAIRS))
    parser.add_argument("--quick", action="store_true", help="short sessions and few turns: to see that it runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    return parser.parse_args()


def _framework(name: str) -> str:
    if name not in PAIRS:
        raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(PAIRS)}")
    return name


if __name__ == "__main__":
    sys.exit(main())
