"""Broken promises to stores of other releases, and to the program beside us."""

from __future__ import annotations

from mutants.mutant import Mutant

NEWER = "compat/test_newer_stores.py::test_a_newer_schema_is_refused_with_its_number_and_left_alone"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "a file that another program replaced is not noticed before the rename",
        "engines/files/committing.py",
        "            try:\n                self._surveyor.check_unchanged(directory, place, found)\n",
        "            try:\n",
        "soak/test_beside_the_seed.py::test_beside_a_program_without_locks_nothing_is_lost_outside_the_window",
    ),
    Mutant(
        "writers of one session do not wait for each other",
        "engines/files/committing.py",
        "            with self._locks.held(stripe):\n",
        "            if True:\n",
        "processes/test_contests.py::test_eight_processes_append_800_messages_and_each_is_there_once",
    ),
    Mutant(
        "an SQLite file of a newer schema is opened",
        "engines/sqlite/migrating.py",
        "if version > known:",
        "if version < 0:",
        f"{NEWER}[sqlite]",
    ),
    Mutant(
        "a PostgreSQL schema of a newer release is opened",
        "engines/postgres/migrating.py",
        "if version > known:",
        "if version < 0:",
        f"{NEWER}[postgres]",
    ),
    Mutant(
        "keys of a newer layout are taken for ours",
        "engines/valkey/storage.py",
        "if int(version) > VERSION:",
        "if int(version) < 0:",
        f"{NEWER}[valkey]",
    ),
    Mutant(
        "a journal is made though it holds what we do not know",
        "engines/files/journal.py",
        "class Step(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):",
        "class Step(Struct, frozen=True, omit_defaults=True):",
        "compat/test_newer_stores.py::test_a_journal_of_a_newer_release_is_neither_made_by_half_nor_removed",
    ),
    Mutant(
        "a session is restored without what a newer release kept of it",
        "trash.py",
        "class _Packed(Struct, array_like=True, forbid_unknown_fields=True):",
        "class _Packed(Struct, array_like=True):",
        "compat/test_newer_stores.py"
        "::test_a_session_that_a_newer_release_threw_away_with_more_is_not_restored_with_less",
    ),
    Mutant(
        "idempotency keys are noted under another name than the release before used",
        "seedform/notes.py",
        "    keys: dict[str, tuple[str, int, str]] = {}",
        '    keys: dict[str, tuple[str, int, str]] = msgspec.field(default_factory=dict, name="known")',
        "compat/test_golden_stores.py::test_work_goes_on_in_a_golden_store[files-0.1.0]",
    ),
)
