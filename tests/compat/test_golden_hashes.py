"""What stands for the stores that users have is never changed, not even by a tool that tidies up."""

from __future__ import annotations

import hashlib
from pathlib import Path

DATA = Path(__file__).parent.parent / "data"


def test_golden_stores_are_as_they_were_when_their_release_wrote_them() -> None:
    """A new release adds its own; see ``make_golden.py`` for how the list of sums is made."""
    lines = (DATA / "SHA256SUMS").read_text().splitlines()
    listed = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    files = sorted(path for path in DATA.rglob("*") if path.is_file() and path.name != "SHA256SUMS")
    found = {str(path.relative_to(DATA)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    assert found == listed
