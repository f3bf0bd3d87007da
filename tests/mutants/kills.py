"""What shows when writers are killed or work for long: locks, journals, transactions and keys that do nothing."""

from __future__ import annotations

from mutants.mutant import Mutant

_KILLS = "soak/test_kills.py::test_what_was_acknowledged_survives_kill_9_and_nothing_is_there_in_part"
_OPENING = "soak/test_kills.py::test_whoever_dies_while_a_store_is_made_leaves_nothing_that_does_not_belong_to_it"
_POINTS = "processes/test_crash_points.py::test_at_whatever_point_a_writer_dies_all_happened_or_nothing"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        breaks="a batch of several files has no journal",
        file="engines/files/batches.py",
        old="            journal.put_in_place(self._directory, prepared.journal)\n",
        new="            pass\n",
        noticed_by="processes/test_durability.py::"
        "test_a_batch_is_on_the_disk_with_its_journal_before_any_of_its_files_gets_its_name",
    ),
    Mutant(
        breaks="the journal of a dead writer is thrown away",
        file="engines/files/recovery.py",
        old="self.make([merged for step in left.steps if (merged := self._remaining(step)) is not None], left.steps)",
        new="self.make([], left.steps)",
        noticed_by=f"{_KILLS}[files]",
    ),
    Mutant(
        breaks="temporary files of dead writers stay",
        file="engines/files/recovery.py",
        old="                    if is_left_over:\n",
        new="                    if is_left_over and not name:\n",
        noticed_by=f"{_KILLS}[files]",
    ),
    Mutant(
        breaks="writers of one file do not exclude each other",
        file="engines/files/locks.py",
        old="                fcntl.flock(file, operation)\n",
        new="                fcntl.flock(file, fcntl.LOCK_SH)\n",
        noticed_by=f"{_KILLS}[files]",
    ),
    Mutant(
        breaks="the records of a batch are committed before its sessions",
        file="engines/sqlite/writing.py",
        old="            self._records = []\n        if self._touched:\n",
        new=(
            "            self._records = []\n"
            '            self._execute("COMMIT")\n'
            '            self._execute("BEGIN IMMEDIATE")\n'
            "        if self._touched:\n"
        ),
        noticed_by="sqlite/test_sqlite_kills.py::"
        "test_what_was_acknowledged_survives_kill_9_at_this_point_of_a_transaction[after-UPDATE sessions]",
    ),
    Mutant(
        breaks="an idempotency key is not remembered on SQLite, so that a retry doubles",
        file="engines/sqlite/writing.py",
        old="            if key is not None:\n",
        new="            if key is not None and not key:\n",
        noticed_by="conformance/test_sqlite.py::TestSqliteEngine::test_keys_survive_reopening",
    ),
    Mutant(
        breaks="a new database is made under another name",
        file="engines/sqlite/connecting.py",
        old="            os.mknod(self.path, stat.S_IFREG | 0o600)",
        new="            self._link_new_file()",
        noticed_by=f"{_OPENING}[sqlite]",
    ),
    Mutant(
        breaks="a batch is several statements on PostgreSQL",
        file="engines/postgres/writing.py",
        old="            made = await self._make_together([batches[index] for index in portion], end)\n",
        new=(
            "            made = []\n"
            "            for index in portion:\n"
            "                parts = [(await self._make_together([[change]], end))[0] for change in batches[index]]\n"
            "                wrong = [part for part in parts if isinstance(part, Exception)]\n"
            "                made.append(wrong[0] if wrong else [outcome for part in parts for outcome in part])\n"
        ),
        noticed_by=f"{_KILLS}[postgres]",
    ),
    Mutant(
        breaks="an idempotency key is not looked up on Valkey, so that a retry doubles",
        file="engines/valkey/lua/sessions.lua",
        old="redis.call('ZSCORE', base .. ':k', key)",
        new="redis.call('ZSCORE', base .. ':none', key)",
        noticed_by="valkey/test_valkey_contests.py::test_a_key_is_stored_once_whoever_brings_it",
    ),
    Mutant(
        breaks="a batch is several calls on Valkey",
        file="engines/valkey/writing.py",
        old="                    plans[index] = self._planner.plan(batch)\n",
        new=(
            "                    if len(batch) > 1:\n"
            "                        results[index] = sum([(await self.make_all([[it]]))[0] for it in batch], [])\n"
            "                    else:\n"
            "                        plans[index] = self._planner.plan(batch)\n"
        ),
        noticed_by="conformance/test_valkey.py::TestValkeyEngine::test_a_failing_change_stops_its_batch_at_every_position[plain]",
    ),
    Mutant(
        breaks="on a cluster, what was stored is not listed",
        file="engines/valkey/cluster_writing.py",
        old="        await self._list(made)\n",
        new="        await self._list([])\n",
        noticed_by=f"{_KILLS}[valkey-cluster]",
    ),
    Mutant(
        breaks="a session is thrown away in several batches where one would do",
        file="store/trashing.py",
        old="                await self._engine.commit([change for discard in discards for change in discard])\n",
        new="                await self._one_by_one([change for discard in discards for change in discard])\n",
        noticed_by=f"{_POINTS}[a session thrown away]",
    ),
    Mutant(
        breaks="something is kept in memory of every session that was deleted",
        file="engines/files/image.py",
        old="            str(self._replaced.pop(session_id))",
        new="            str(self._replaced[session_id])",
        noticed_by="soak/test_load.py::test_nothing_is_kept_in_memory_of_sessions_that_were_deleted[state]",
    ),
    Mutant(
        breaks="what is kept of session files in memory is bounded by the size of the files alone",
        file="engines/files/image.py",
        old="OF_AN_IMAGE: Final = 4 << 10\n",
        new="OF_AN_IMAGE: Final = 0\n",
        noticed_by="soak/test_load.py::test_what_is_kept_in_memory_of_many_small_session_files_is_bounded",
    ),
)
