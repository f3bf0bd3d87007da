"""``python -m benchmarks``: a table for people, or with ``--json`` lines for machines. Exit code 1: a bar is missed."""

from __future__ import annotations

import argparse
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
    as_json = _options().json
    is_met = True
    for result in results():
        is_met = is_met and result.is_met
        print(json.dumps({**asdict(result), "is_met": result.is_met}) if as_json else result, flush=True)
    return 0 if is_met else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m benchmarks",
        description="Measure every engine beside the bare work that it cannot do without. It takes ten minutes. "
        "The exit code is 1 if a bar is missed.",
    )
    parser.add_argument("--json", action="store_true", help="a line of JSON for each result")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
