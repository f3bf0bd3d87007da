"""``python -m benchmarks.valkey``: these benchmarks alone."""

from __future__ import annotations

from benchmarks.valkey import run

for result in run():
    times = f"{result.seconds * 1e6:,.0f} against {result.floor_seconds * 1e6:,.0f} us"
    print(f"{result.name:<55}{result.ratio:7.2f} (bar {result.bar:g})  {times}: {result.floor_name}", flush=True)
