"""Tests of the adapters: each framework's contract, on its own implementation and on ours."""
