"""What breaks when many write at the same time: locks, preconditions, one moment for all of a batch."""

from __future__ import annotations

from mutants.mutant import Mutant

RACES = "soak/test_races.py::test_every_history_has_an_order_that_explains_it"
ABSENT = "soak/races/test_absent_items.py"
GROUPS = "sqlite/test_sqlite_groups.py"
GIVEN_UP = "sqlite/test_sqlite_given_up.py"
KNOWN = "sqlite/test_sqlite_known.py"
BUSY = "sqlite/test_sqlite_busy.py"
CATCHING_UP = "postgres/test_postgres_catching_up.py"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "files: writers of one item hold its lock together",
        "engines/files/committing.py",
        "with self._locks.held(stripe):",
        "with self._locks.shared_in_turn(stripe):",
        f"{RACES}[files]",
    ),
    Mutant(
        "files: a read does not wait for a batch that is being made",
        "engines/files/engine.py",
        "            self._wait_for_batch()\n            image = ",
        "            image = ",
        "processes/test_recovery_beside_others.py"
        "::test_a_store_opened_for_reading_says_that_a_batch_is_unfinished_and_changes_nothing",
    ),
    Mutant(
        "files: a listing goes on while a batch is being made",
        "engines/files/engine.py",
        "        self._wait_for_batch()\n        with self._locks.shared_in_turn(BATCHES):\n            yield",
        "        self._wait_for_batch()\n        if self._usage:\n            yield",
        "processes/test_contests.py::test_readers_never_see_a_part_of_a_batch",
    ),
    Mutant(
        "files: documents are put into a category while it is emptied",
        "engines/files/batches.py",
        "return ALL_STRIPES",
        "return ALL_STRIPES[:1]",
        "soak/test_races.py::test_on_files_too_a_category_is_emptied_at_one_moment",
    ),
    Mutant(
        "files: what others wrote while a batch was prepared is not seen",
        "engines/files/batches.py",
        "        self._preparer.check_unchanged(batch, prepared)\n",
        "",
        "test_files_batches.py::test_a_prune_spares_what_was_said_while_it_was_prepared",
    ),
    Mutant(
        "files: documents that come while a category's deletion is prepared stay",
        "engines/files/preparing.py",
        "        if self._singles(batch) != prepared.singles:\n",
        "        if False:\n",
        "test_files_batches.py::test_a_document_that_came_while_its_category_was_to_be_deleted_goes_too",
    ),
    Mutant(
        "files: what is being prepared is taken for left over",
        "engines/files/batches.py",
        "        with self._locks.shared(PREPARING):\n",
        "        with self._locks.shared(BATCHES + PREPARING):\n",
        "test_files_batches.py::test_what_is_being_prepared_is_no_leftover_to_whoever_opens_the_store",
    ),
    Mutant(
        "files: a batch is prepared while others wait for its locks",
        "engines/files/batches.py",
        "                if self._directory.temporary.keeps_nanoseconds:",
        "                if not batch:",
        "test_files_batches.py::test_while_others_wait_nothing_is_read_written_or_freed_but_the_journal",
    ),
    Mutant(
        "files: the listing's index trusts what it once saw",
        "engines/files/seen.py",
        "                if (\n                    entry.mtime_ns",
        "                if entry.error is None or (\n                    entry.mtime_ns",
        f"{RACES}[files]",
    ),
    Mutant(
        "files: a state that was seen before it was noted counts as two",
        "engines/files/image.py",
        "old is not image and old.version != image.version:",
        "old is not image:",
        "soak/races/test_states_seen_twice.py::"
        "test_who_replaced_a_state_can_compare_its_version_though_a_reader_was_faster",
    ),
    Mutant(
        "files: a session created anew under an id is taken for the one that was loaded",
        "engines/judging.py",
        "if requires.created is not None and present.created != requires.created:",
        "if requires.created is not None and present.created is None:",
        "conformance/test_files.py::TestFilesEngine::test_a_session_created_anew_is_another_session[plain]",
    ),
    Mutant(
        "memory: batches are made without the lock",
        "engines/memory.py",
        "        with self._lock:\n            judge(",
        "        if batch:\n            judge(",
        f"{RACES}[memory]",
    ),
    Mutant(
        "memory: a key that is known is stored again",
        "engines/memory.py",
        "if record.key is not None and record.key in self.seq_of_key:",
        "if record.seq is not None and record.key in self.seq_of_key:",
        f"{RACES}[memory]",
    ),
    Mutant(
        "any version will do",
        "engines/judging.py",
        "if requires.version is not None and present.version != requires.version:",
        "if requires.version is not None and present.version is None:",
        f"{RACES}[memory]",
    ),
    Mutant(
        "any owner will do",
        "engines/judging.py",
        "if requires.owner is not None and present.owner != requires.owner:",
        "if requires.owner is not None and present.owner is None:",
        f"{RACES}[memory]",
    ),
    Mutant(
        "an update does not notice that somebody came between",
        "store/writing.py",
        "Draft(session, exact=True)",
        "Draft(session)",
        f"{RACES}[sqlite]",
    ),
    Mutant(
        "a save sends all metadata, not only what changed",
        "store/saving.py",
        "        if as_new:\n            set_metadata, unset_metadata = members(self.metadata), ()",
        "        if known is not None:\n            set_metadata, unset_metadata = members(self.metadata), ()",
        f"{RACES}[sqlite]",
    ),
    Mutant(
        "a rewind drops what it did not see",
        "store/branching.py",
        "requires=Requires(present=True, version=stored.version, owner=self._owner)",
        "requires=Requires(present=True, owner=self._owner)",
        "conformance/test_sqlite.py::TestSqliteEngine::test_a_rewind_starts_again_when_somebody_appended",
    ),
    Mutant(
        "a prune takes what was touched after it was judged",
        "store/pruning.py",
        "Requires(version=summary.version, owner=self._owner)",
        "Requires(owner=self._owner)",
        f"{RACES}[sqlite]",
    ),
    Mutant(
        "a session is thrown away with what was said since it was packed",
        "store/trashing.py",
        "DeleteSession(stored.id, Requires(version=stored.version, owner=self._owner))",
        "DeleteSession(stored.id, Requires(owner=self._owner))",
        f"{RACES}[sqlite]",
    ),
    Mutant(
        "sqlite: a session that is written again and again is missing in listings",
        "engines/sqlite/listing.py",
        '("is_busy = 0", "is_busy <> 0")',
        '("is_busy = 0", "is_busy < 0")',
        "sqlite/test_sqlite_busy.py::test_busy_and_idle_sessions_are_listed_and_counted_together",
    ),
    Mutant(
        "sqlite: batches of a group are judged by what was before the group",
        "engines/sqlite/writing.py",
        "        if isinstance(change, ChangeSession):\n            return self._header(change.id)",
        "        if isinstance(change, ChangeSession):\n"
        '            seen = vars(self).setdefault("_seen", {})\n'
        "            there = self._header(change.id)\n"
        "            return seen.setdefault(change.id, there and Present(there.version, there.owner, there.created))",
        f"{RACES}[sqlite]",
    ),
    Mutant(
        "sqlite: who is awake wakes nobody",
        "engines/sqlite/gathering.py",
        "            entry.is_over = True\n            self._wake_next()\n",
        "            entry.is_over = True\n",
        f"{GROUPS}::test_whose_batch_is_done_is_woken_and_need_not_look_up",
    ),
    Mutant(
        "sqlite: what an interrupted leader took along is not offered to who leads alone",
        "engines/sqlite/gathering.py",
        "                self._group += 1\n",
        "                self._group += bool(self._waiting)\n",
        f"{GIVEN_UP}::test_what_a_leader_took_along_and_did_not_make_is_offered_to_the_next_one",
    ),
    Mutant(
        "sqlite: who is interrupted does not wait for what becomes of its batch",
        "engines/sqlite/gathering.py",
        "                while slots[-1].result is None and self._is_being_made(entry):\n",
        "                while False:\n",
        f"{GROUPS}::test_who_is_interrupted_while_another_makes_its_batch_may_save_again",
    ),
    Mutant(
        "sqlite: what a program's own handler raises is taken for a failure of the storage",
        "engines/sqlite/failures.py",
        "        return error.errno is not None  # a time-out of a program's own has none\n",
        "        return True\n",
        f"{GROUPS}::test_what_a_handler_of_signals_raises_is_the_callers_and_makes_nothing_twice",
    ),
    Mutant(
        "sqlite: a batch that was made is made again when something fails after it",
        "engines/sqlite/writer.py",
        "            if not is_of_storage(error) or slots[-1].result is not None:\n                raise\n",
        "",
        f"{GROUPS}::test_what_a_handler_of_signals_raises_is_the_callers_and_makes_nothing_twice",
    ),
    Mutant(
        "sqlite: a search drops what an old file is read through",
        "engines/sqlite/indexing.py",
        "    for statement in _MEMORY:\n",
        '    for statement in ("PRAGMA temp_store=DEFAULT", *_MEMORY):\n',
        "sqlite/test_sqlite_migrations.py::test_who_reads_an_old_file_lists_after_a_search_what_was_listed_before",
    ),
    Mutant(
        "sqlite: what was committed is said to have failed",
        "engines/sqlite/writer.py",
        "undecided = [slot for slot in slots if slot.result is None]",
        "undecided = slots",
        f"{GIVEN_UP}::test_what_was_committed_is_acknowledged_though_the_turn_cannot_be_handed_on",
    ),
    Mutant(
        "sqlite: a session is taken for what it was when we wrote it last",
        "engines/sqlite/writing.py",
        "            self.relies_on_known = True\n",
        "            pass\n",
        f"{KNOWN}::test_what_another_program_appended_in_between_is_kept",
    ),
    Mutant(
        "sqlite: any number of sessions may be busy",
        "engines/sqlite/queries.sql",
        " AND (SELECT count(*) FROM sessions WHERE is_busy <> 0) < 256;",
        ";",
        f"{BUSY}::test_no_more_are_busy_than_a_listing_sorts_in_no_time",
    ),
    Mutant(
        "sqlite: sessions stay busy",
        "engines/sqlite/upkeep.py",
        '                connection.execute(SQL["set_idle"])\n',
        "",
        f"{BUSY}::test_sessions_are_busy_until_somebody_tidies_up",
    ),
    Mutant(
        "sqlite: busy sessions are not listed",
        "engines/sqlite/listing.py",
        'return f"{_SELECT} {idle} UNION ALL {_SELECT} {busy} ORDER BY age, age_rest, id", values * 2',
        'return f"{_SELECT} {idle} ORDER BY age, age_rest, id", values',
        f"{BUSY}::test_busy_and_idle_sessions_are_listed_and_counted_together",
    ),
    Mutant(
        "sqlite: a user's sessions by id are looked for among everybody's",
        "engines/sqlite/listing.py",
        "        where[where.index(_OF_USER)] = _OF_USER_BY_INDEX\n        values.insert(0, query.user_id)\n",
        "        pass\n",
        f"{BUSY}::test_a_listing_costs_the_same_in_a_store_of_any_size",
    ),
    Mutant(
        "postgres: appends do not wait for each other",
        "engines/postgres/migrations/0001.sql",
        "v_held := ARRAY(SELECT id FROM sessions WHERE id = ANY (p_id) ORDER BY id FOR UPDATE);",
        "v_held := ARRAY(SELECT id FROM sessions WHERE id = ANY (p_id) ORDER BY id);",
        "postgres/test_postgres_contests.py::test_six_processes_append_and_each_message_is_there_once",
    ),
    Mutant(
        "postgres: documents are put into a category while it is emptied",
        "engines/postgres/batches.py",
        "        return range(NAMES)  # nobody knows what may come",
        "        return ()",
        f"{ABSENT}::test_nothing_is_put_into_a_category_while_it_is_emptied",
    ),
    Mutant(
        "postgres: what a batch found absent is created before the batch is made",
        "engines/postgres/batches.py",
        "if not is_creating and (is_alone or is_there or isinstance(change, ChangeSession)):",
        "if not is_creating:",
        f"{ABSENT}::test_a_session_that_a_batch_is_to_delete_is_not_created_while_the_batch_is_made",
    ),
    Mutant(
        "postgres: a search indexes what others write meanwhile, and never ends",
        "engines/postgres/queries.sql",
        "records.id = asked.id AND records.seq <= asked.last",
        "records.id = asked.id",
        f"{CATCHING_UP}::test_a_search_ends_although_others_write_more_than_it_can_index",
    ),
    Mutant(
        "postgres: what turns up late, below changes that the index has seen, is never indexed",
        "engines/postgres/catching_up.py",
        " if after == change else change",
        "",
        f"{CATCHING_UP}::test_however_much_happened_after_what_is_still_under_way_all_of_it_is_found",
    ),
    Mutant(
        "postgres: a search makes do with another that came too early",
        "engines/postgres/catching_up.py",
        " and turn is not before",
        "",
        f"{CATCHING_UP}::test_who_waits_for_another_search_finds_what_that_one_came_too_early_for",
    ),
    Mutant(
        "valkey: any version will do",
        "engines/valkey/lua/judging.lua",
        "if requires[3] and there.version ~= requires[3] then",
        "if requires[3] and not there.version then",
        f"{RACES}[valkey]",
    ),
    Mutant(
        "valkey: a session that was touched is not listed for its user",
        "engines/valkey/lua/commit.lua",
        "            redis.call('ZADD', newest_of_user, 0, new .. id)\n",
        "",
        f"{RACES}[valkey]",
    ),
    Mutant(
        "valkey cluster: what is to be new may be there already",
        "engines/valkey/lua/judging.lua",
        "    if requires[1] then\n        return 'exists'\n    end\n",
        "",
        f"{RACES}[valkey-cluster]",
    ),
)
