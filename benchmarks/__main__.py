"""``python -m benchmarks``: a table for people, or with ``--json`` lines for machines. Exit code 1: a bar is missed."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from benchmarks import cli, files, importing, postgres, sqlite, valkey
from benchmarks.timing import Result


def results() -> Iterator[Result]:
    """Everything, as it is measured."""
    yield from importing.run()
    yield from sqlite.run()
    yield from files.run()
    with tempfile.TemporaryDirectory(prefix="statestore-bench-") as place:
        yield from cli.run(Path(place))
    yield from postgres.run()
    yield from valkey.run()


def main() -> int:
    """Measure and print."""
    as_json = "--json" in sys.argv[1:]
    is_met = True
    for result in results():
        is_met = is_met and result.is_met
        if as_json:
            line = json.dumps({**asdict(result), "is_met": result.is_met})
        else:
            verdict = "" if result.is_met else "  MISSED"
            line = f"{result.name:<60}{result.ratio:9.2f} {result.unit:<3} (bar {result.bar:g}){verdict}"
            if result.floor_name:
                ours, floor = f"{result.seconds * 1e6:,.0f}", f"{result.floor_seconds * 1e6:,.0f}"
                line += f"  {ours} against {floor} us: {result.floor_name}"
        print(line, flush=True)
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
