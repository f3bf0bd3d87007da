"""The versions that engines give out which do not work them out of what they store."""

from __future__ import annotations

import os


def new_version() -> str:
    """A version that was never used before."""
    return os.urandom(8).hex()


def is_given_out(version: str) -> bool:
    """Whether a version looks like one that we give out."""
    return len(version) == 16 and not version.strip("0123456789abcdef")
