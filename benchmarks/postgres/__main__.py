"""``python -m benchmarks.postgres``: this engine alone."""

from __future__ import annotations

import argparse

from benchmarks.postgres import run

argparse.ArgumentParser(
    "python -m benchmarks.postgres",
    description="Measure the PostgreSQL engine beside the bare driver, on a server of its own.",
).parse_args()
for result in run():
    print(result, flush=True)
