"""Examples that hypothesis makes up, for cases that run in either face."""

from __future__ import annotations

from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy

T = TypeVar("T")


def samples_of(strategy: SearchStrategy[T], count: int) -> list[T]:
    """Some examples, the same ones each time."""
    samples: list[T] = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much),
    )
    @given(strategy)
    def gather(sample: T) -> None:
        samples.append(sample)

    gather()
    return samples
