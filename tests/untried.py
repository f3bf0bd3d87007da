"""What cannot be tried here: the test is skipped with its reason, and is never green. A run can require the trial."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def untried(what: str, reason: str) -> NoReturn:
    """Skip the test; where ``STATESTORE_TEST_<what>`` is ``required``, it fails instead."""
    variable = f"STATESTORE_TEST_{what}"
    if os.environ.get(variable) == "required":
        pytest.fail(f"{reason}, and {variable}=required")
    pytest.skip(reason)
