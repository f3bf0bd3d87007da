"""Benchmarks: every figure is a ratio to a bare floor that is measured in the same run, turn by turn."""
