"""``python -m benchmarks``: a table for people, or with ``--json`` lines for machines. Exit code 1: a bar is missed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict

from benchmarks import files, importing
from benchmarks.timing import Result


def results() -> Iterator[Result]:
    """Everything, as it is measured."""
    yield from importing.run()
    yield from files.run()


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
            ours, floor = f"{result.seconds * 1e6:,.0f} us", f"{result.floor_seconds * 1e6:,.0f} us"
            figures = f"{result.ratio:6.2f} {result.unit}  (bar {result.bar:g})  {ours} against {floor}"
            line = f"{result.name:<54}{figures}: {result.floor_name}{verdict}"
        print(line, flush=True)
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
