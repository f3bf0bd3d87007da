"""``make soak``: the long form of every proof, with a budget and a seed; the report goes into the docs."""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path

from rich.console import Console
from rich.status import Status

from soak.proofs import PROOFS
from soak.report import as_json, as_markdown, replace_report
from soak.soaking import Tally, soak


def main(arguments: list[str] | None = None) -> int:
    """Soak, report; 1 if a promise was broken."""
    options = _options().parse_args(arguments)
    chosen = [proof for proof in PROOFS if not options.only or proof.name in options.only]
    with Console(stderr=True).status("starting") as status:
        tallies = soak(
            chosen,
            seed=options.seed,
            seconds=options.seconds,
            rounds=options.rounds,
            engines=options.engine,
            tell=lambda tally: _show(status, tally),
        )
    if options.json:
        print(json.dumps(as_json(tallies, options.seed)))
    else:
        print(as_markdown(tallies, options.seed, options.seconds))
    if options.report:
        replace_report(options.report, "soak", as_markdown(tallies, options.seed, options.seconds))
    failures = [failure for tally in tallies for failure in tally.failures]
    for failure in failures:
        print(f"\n{failure.proof} on {failure.engine} is broken\n{failure.error}\n{failure.command}", file=sys.stderr)
    return 1 if failures else 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="the time for everything (default: 600)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="where chance begins")
    parser.add_argument("--rounds", type=int, help="so many rounds of each on each engine, however long they take")
    parser.add_argument("--only", action="append", choices=[proof.name for proof in PROOFS], help="this proof alone")
    parser.add_argument("--engine", action="append", default=[], help="this engine alone")
    parser.add_argument("--report", type=Path, help="the page whose last report is to be replaced")
    parser.add_argument("--json", action="store_true", help="for machines")
    return parser


def _show(status: Status, tally: Tally) -> None:
    counts = ", ".join(f"{count:,} {what}" for what, count in tally.counts.items())
    status.update(f"{tally.proof.name} on {tally.engine}: {tally.rounds} rounds, {tally.seconds:.0f} s: {counts}")


if __name__ == "__main__":
    sys.exit(main())
