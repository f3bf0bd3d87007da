"""``python -m benchmarks.peers``: a table, and on request JSON, a page, a plot. Exit code 1: something did not run."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import warnings
from pathlib import Path

import msgspec
from rich.console import Console

from benchmarks.peers import measuring, page, plot, table
from benchmarks.peers.contests import CONTESTS


def main() -> int:
    """Measure (or read what was measured), show, write."""
    options = _options()
    console = Console(width=None if sys.stdout.isatty() else 150)
    if options.source:
        measured = msgspec.json.decode(options.source.read_bytes(), type=measuring.Run)
    else:
        measured = _measured(options.only or [*CONTESTS], console)
    table.show(measured, console)
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(measured), indent=2))
    if options.plot:
        options.plot.write_text(plot.drawn(measured), encoding="utf-8")
    if options.markdown:
        options.markdown.write_text(page.written(measured, options.markdown, options.plot), encoding="utf-8")
    return 1 if any(store.errors for store in measured.stores) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser("benchmarks.peers", description="The same work on statestore and on its peers.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write the plot of append cost, an SVG")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the page with table, plot and notes")
    parser.add_argument("--from", type=Path, metavar="FILE", dest="source", help="figures of an earlier --json: no run")
    parser.add_argument("--only", action="append", choices=CONTESTS, help="measure on this engine; may be repeated")
    return parser.parse_args()


def _measured(engines: list[str], console: Console) -> measuring.Run:
    warnings.simplefilter("ignore")  # the peers' own deprecations are not ours to show
    logging.disable(logging.CRITICAL)
    with console.status("starting") as status:
        return asyncio.run(measuring.run([CONTESTS[engine] for engine in engines], status.update))


if __name__ == "__main__":
    sys.exit(main())
