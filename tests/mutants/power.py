"""Flushes left out, one by one, and what else keeps a power cut from doing harm."""

from __future__ import annotations

from mutants.mutant import Mutant

_TESTS = "soak/test_power.py"
_DEED = f"{_TESTS}::test_a_cut_leaves_all_of_a_deed_or_nothing"
_AGAIN = f"{_TESTS}::test_what_a_dead_process_began_lasts_once_another_has_had_it_acknowledged"
_LASTING = "engines/files/lasting.py"
_COMMITTING = "engines/files/committing.py"
_JOURNAL = "engines/files/journal.py"
_RECOVERY = "engines/files/recovery.py"
_REPAIRING = "engines/files/repairing.py"
_CONNECTING = "engines/sqlite/connecting.py"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        breaks="nothing is flushed",
        file="engines/flushing.py",
        old="        os.fsync(fd)",
        new="        pass",
        noticed_by=f"{_DEED}[a save]",
    ),
    Mutant(
        breaks="a file's bytes are not flushed before it gets its name",
        file="engines/files/temporary.py",
        old="                if self._is_durable:\n                    flush(fd)\n",
        new="",
        noticed_by=f"{_DEED}[a save]",
    ),
    Mutant(
        breaks="no directory is flushed",
        file=_LASTING,
        old="            flush(directory)\n",
        new="",
        noticed_by=f"{_DEED}[a save]",
    ),
    Mutant(
        breaks="the way to a new store is not flushed",
        file=_LASTING,
        old="                flush_directory(parent)\n",
        new="                pass\n",
        noticed_by=f"{_TESTS}::test_a_store_lasts_from_its_first_opening_on",
    ),
    Mutant(
        breaks="the way to a store that another process made and did not flush is not flushed",
        file=_LASTING,
        old="        if self._is_durable:\n            try:\n                flush_directory(parent)",
        new="        if self._is_durable and not is_there:\n            try:\n                flush_directory(parent)",
        noticed_by=f"{_TESTS}::test_a_store_whose_maker_died_lasts_once_another_has_opened_it",
    ),
    Mutant(
        breaks="a new category is not flushed before its batch is journalled",
        file=_LASTING,
        old="                os.mkdir(name, 0o777, dir_fd=parent)\n            self.flush(parent)\n",
        new="                os.mkdir(name, 0o777, dir_fd=parent)\n",
        noticed_by=f"{_DEED}[a batch of several files]",
    ),
    Mutant(
        breaks="a category that a dead process made is not flushed before a batch into it is journalled",
        file=_LASTING,
        old="            self._flush_way_to(fd)\n",
        new="            pass\n",
        noticed_by=f"{_AGAIN}[a batch in a new category]",
    ),
    Mutant(
        breaks="a category that a dead process made is not flushed with what is written into it",
        file=_LASTING,
        old="            self._flush_way_to(directory)\n",
        new="",
        noticed_by=f"{_AGAIN}[a document in a new category]",
    ),
    Mutant(
        breaks="directories above one that another program made are not flushed",
        file=_LASTING,
        old="                self._flush_way_to(parent)\n",
        new="",
        noticed_by=f"{_TESTS}::test_a_document_lasts_in_directories_that_another_program_made",
    ),
    Mutant(
        breaks="a renamed file's directory is not flushed",
        file=_COMMITTING,
        old="                raise\n            self._directory.lasting.flush(directory)\n",
        new="                raise\n",
        noticed_by=f"{_DEED}[a save]",
    ),
    Mutant(
        breaks="a removed file's directory is not flushed",
        file=_COMMITTING,
        old="os.unlink(place.file, dir_fd=directory)\n            self._directory.lasting.flush(directory)\n",
        new="os.unlink(place.file, dir_fd=directory)\n",
        noticed_by=f"{_DEED}[a document deleted]",
    ),
    Mutant(
        breaks="a change that a dead process wrote is acknowledged without a flush",
        file=_COMMITTING,
        old="                self._directory.lasting.flush(directory)  # whoever wrote",
        new="                pass  # whoever wrote",
        noticed_by=f"{_AGAIN}[a change without effect]",
    ),
    Mutant(
        breaks="a removal that a dead process made is acknowledged without a flush",
        file=_COMMITTING,
        old="            self._directory.lasting.flush(directory)  # whoever removed",
        new="            pass  # whoever removed",
        noticed_by=f"{_AGAIN}[a document deleted]",
    ),
    Mutant(
        breaks="the names of temporary files are not flushed before the journal that speaks of them",
        file=_JOURNAL,
        old="        directory.temporary.flush_names()",
        new="        pass",
        noticed_by=f"{_DEED}[a batch of several files]",
    ),
    Mutant(
        breaks="a journal is not flushed before its batch is made",
        file=_JOURNAL,
        old="directory.own, NAME)\n    directory.lasting.flush(directory.own)\n",
        new="directory.own, NAME)\n",
        noticed_by=f"{_DEED}[a batch of several files]",
    ),
    Mutant(
        breaks="the end of a journal is not flushed",
        file=_JOURNAL,
        old="        os.unlink(NAME, dir_fd=directory.own)\n    directory.lasting.flush(directory.own)\n",
        new="        os.unlink(NAME, dir_fd=directory.own)\n",
        noticed_by=f"{_TESTS}::test_a_journal_does_not_come_back",
    ),
    Mutant(
        breaks="what a batch made is not flushed before its journal goes",
        file=_RECOVERY,
        old="                self._directory.lasting.flush(directory)\n",
        new="",
        noticed_by=f"{_DEED}[a batch of several files]",
    ),
    Mutant(
        breaks="what a dead process made of a batch is not flushed before its journal goes",
        file=_RECOVERY,
        old="for step in (*steps, *done))",
        new="for step in steps)",
        noticed_by=f"{_AGAIN}[a batch in a new category]",
    ),
    Mutant(
        breaks="a recovery throws away what is to be merged before it is merged",
        file=_RECOVERY,
        old="        if merged is None or found is None:\n",
        new=(
            "        self._directory.temporary.discard(step.temporary or '')\n"
            "        if merged is None or found is None:\n"
        ),
        noticed_by=f"{_TESTS}::test_a_recovery_that_dies_leaves_to_the_next_one_what_is_to_be_merged",
    ),
    Mutant(
        breaks="where a damaged file went is not flushed",
        file=_REPAIRING,
        old="            self._directory.lasting.flush(aside)\n",
        new="",
        noticed_by=f"{_TESTS}::test_what_is_moved_aside_is_not_lost",
    ),
    Mutant(
        breaks="where a damaged file was is not flushed",
        file=_REPAIRING,
        old="            self._directory.lasting.flush(fd)\n",
        new="",
        noticed_by=f"{_TESTS}::test_what_is_moved_aside_is_not_lost",
    ),
    Mutant(
        breaks="a database does not flush at all",
        file=_CONNECTING,
        old="'EXTRA' if self._is_durable else 'NORMAL'",
        new="'OFF'",
        noticed_by=f"{_TESTS}::test_a_database_lasts_from_its_first_opening_on[wal]",
    ),
    Mutant(
        breaks="a commit into the write-ahead log is not flushed",
        file=_CONNECTING,
        old="'EXTRA' if self._is_durable else 'NORMAL'",
        new="'NORMAL'",
        noticed_by=f"{_TESTS}::test_a_database_lasts_from_its_first_opening_on[wal]",
    ),
    Mutant(
        breaks="the end of a rollback journal is not flushed",
        file=_CONNECTING,
        old="'EXTRA' if self._is_durable else 'NORMAL'",
        new="'FULL'",
        noticed_by=f"{_TESTS}::test_a_database_lasts_from_its_first_opening_on[rollback]",
    ),
    Mutant(
        breaks="a database whose first page was cut is taken for another program's",
        file=_CONNECTING,
        old="error.sqlite_errorcode == sqlite3.SQLITE_NOTADB and self._was_empty()",
        new="False",
        noticed_by=f"{_TESTS}::test_a_database_lasts_from_its_first_opening_on[wal]",
    ),
    Mutant(
        breaks="the directories that lead to a new database are not flushed",
        file=_CONNECTING,
        old="        return\n    flush_directory(parent)\n",
        new="        return\n",
        noticed_by=f"{_TESTS}::test_a_database_lasts_from_its_first_opening_on[wal]",
    ),
    Mutant(
        breaks="what a dead process committed is acknowledged without a flush",
        file="engines/sqlite/writer.py",
        old="                self._file.flush_what_is_there()",
        new="                pass",
        noticed_by=f"{_TESTS}::test_what_a_dead_process_committed_lasts_once_another_has_had_it_acknowledged",
    ),
    Mutant(
        breaks="the name of a backup is not flushed",
        file="engines/sqlite/backing_up.py",
        old="    flush_directory(os.path.dirname(path))\n",
        new="",
        noticed_by=f"{_TESTS}::test_a_backup_that_returned_is_there_and_none_is_there_in_part",
    ),
    Mutant(
        breaks="what a failed save left is taken for stored without a flush",
        file="engines/files/engine.py",
        old="        self._directory.flush_owed()\n",
        new="",
        noticed_by="processes/test_durability.py::"
        "test_what_a_failed_save_left_behind_is_flushed_before_it_is_taken_for_stored",
    ),
)
