"""The proofs of this subject."""

from __future__ import annotations

from soak.hostile.cursors import FUZZ_CURSORS_QUERIES
from soak.hostile.directories import FUZZ_FILES
from soak.hostile.files import FUZZ_SESSION_TEXTS
from soak.hostile.imports import FUZZ_IMPORTS
from soak.hostile.links import SWAPPED_FOR_LINKS
from soak.hostile.memory import LARGE_FILES
from soak.hostile.names_values import FUZZ_NAMES_VALUES
from soak.hostile.openings import FUZZ_OPENINGS_COMMANDS
from soak.hostile.rows import FUZZ_ROWS
from soak.hostile.server_rows import FUZZ_SERVER_ROWS
from soak.proof import Proof

FUZZED: tuple[Proof, ...] = (
    FUZZ_SESSION_TEXTS,
    FUZZ_FILES,
    FUZZ_ROWS,
    FUZZ_CURSORS_QUERIES,
    FUZZ_NAMES_VALUES,
    FUZZ_IMPORTS,
    FUZZ_OPENINGS_COMMANDS,
)
HOSTILE: tuple[Proof, ...] = (*FUZZED, FUZZ_SERVER_ROWS, SWAPPED_FOR_LINKS, LARGE_FILES)
