"""``python -m benchmarks.peers``: tables, and on request JSON, a page, a plot. Exit code 1: something did not run."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path

import msgspec

from benchmarks.adapters import measuring as adapters
from benchmarks.adapters import table as adapters_table
from benchmarks.adapters.pairs import PAIRS
from benchmarks.peers import measuring, page, plot, table
from benchmarks.peers.contests import CONTESTS, in_brief
from benchmarks.peers.entries import Tell
from benchmarks.peers.figures import Run
from benchmarks.peers.terminal import telling, terminal

ADAPTERS = "adapters"


def main() -> int:
    """Measure (or read what was measured), show, write."""
    options = _options()
    console = terminal()
    if options.source:
        run = msgspec.json.decode(options.source.read_bytes(), type=Run)
    else:
        with telling(console) as tell:
            run = asyncio.run(_measured(options.only or [*CONTESTS, ADAPTERS], options.quick, tell))
    table.show(run, console)
    adapters_table.show(run, console)
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(run), indent=2))
    if options.plot and run.contests:
        options.plot.write_text(plot.drawn(run), encoding="utf-8")
    if options.markdown:
        options.markdown.write_text(page.written(run, options.markdown, options.plot), encoding="utf-8")
    return 1 if any(store.errors for store in run.stores) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser("benchmarks.peers", description="The same work on statestore and on its peers.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write the plot of append cost, an SVG")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the page with tables, plot and notes")
    parser.add_argument("--from", type=Path, metavar="FILE", dest="source", help="figures of an earlier --json: no run")
    parser.add_argument(
        "--only", action="append", choices=[*CONTESTS, ADAPTERS], help="measure on this engine; may be repeated"
    )
    parser.add_argument("--quick", action="store_true", help="short sessions and few turns: to see that it runs")
    return parser.parse_args()


async def _measured(what: list[str], is_quick: bool, tell: Tell) -> Run:
    start = time.monotonic()
    run = measuring.begun()
    contests = [CONTESTS[name] for name in what if name != ADAPTERS]
    run.contests = await measuring.held([in_brief(contest) for contest in contests] if is_quick else contests, tell)
    if ADAPTERS in what:
        await adapters.measure(run, [*PAIRS], is_quick, tell)
    run.minutes = (time.monotonic() - start) / 60
    return run


if __name__ == "__main__":
    sys.exit(main())
