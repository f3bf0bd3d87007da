"""``python -m benchmarks.postgres``: this engine alone."""

from __future__ import annotations

from benchmarks.postgres import run

for result in run():
    verdict = "" if result.is_met else "  MISSED"
    times = f"{result.seconds * 1e6:,.0f} against {result.floor_seconds * 1e6:,.0f} us: {result.floor_name}"
    print(f"{result.name:<60}{result.ratio:9.2f} {result.unit:<3} (bar {result.bar:.3g}){verdict}  {times}", flush=True)
