"""``make mutants``: break the package in every way we know, and see that the right test fails. Takes a while."""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutants.mutant import Mutant
from mutants.table import MUTANTS
from soak.report import replace_report


def main() -> int:
    """Try them, print a table; 1 if one of them is not noticed."""
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__)
    parser.add_argument("--only", action="append", choices=list(MUTANTS), help="this kind alone")
    parser.add_argument("--report", type=Path, help="the page whose last table is to be replaced")
    options = parser.parse_args()
    lines = ["| what is broken | where | the test that fails |", "|---|---|---|"]
    missed = 0
    mutants = [mutant for kind in options.only or MUTANTS for mutant in MUTANTS[kind]]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for mutant, is_noticed in zip(mutants, pool.map(Mutant.is_noticed, mutants), strict=True):
            missed += not is_noticed
            noticed_by = f"`{mutant.noticed_by}`" if is_noticed else f"**not noticed** by `{mutant.noticed_by}`"
            lines.append(f"| {mutant.breaks} | `{mutant.file}` | {noticed_by} |")
            print(lines[-1], flush=True)
    if options.report:
        replace_report(options.report, "mutants", "\n".join(lines))
    print(f"{len(lines) - 2} mutants, {missed} not noticed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
