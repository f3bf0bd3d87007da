"""``python -m benchmarks.valkey``: these benchmarks alone."""

from __future__ import annotations

import argparse

from benchmarks.valkey import run

argparse.ArgumentParser(
    "python -m benchmarks.valkey",
    description="Measure the Valkey engine beside the bare driver, on a server of its own.",
).parse_args()
for result in run():
    print(result, flush=True)
