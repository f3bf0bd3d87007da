"""What keeps a store whole when things around it go wrong, taken away piece by piece."""

from __future__ import annotations

from mutants.mutant import Mutant

_CANCELLED = "soak/test_faults.py::test_a_cancelled_call_happened_or_not_and_the_store_goes_on"
_EXITS = "faults/test_faults_exits.py"
_HANDLES = "faults/test_faults_handles.py"
_THREADS = "faults/test_faults_threads.py"
_CLOCKS = "faults/test_faults_clocks.py"
_FORKS = "faults/test_faults_forks.py"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "a batch whose outcome is unknown is not remembered as unsure",
        "store/async_store.py",
        "        drafted.note_unsure()",
        "",
        "test_unknown_outcomes.py::test_a_batch_may_be_repeated",
    ),
    Mutant(
        "a call that a thread has begun is not waited for when it is cancelled",
        "bridge/jobs.py",
        "            if not self.claim():\n                await self._finished()\n            elif",
        "            if self.claim() and",
        f"{_THREADS}::test_a_call_that_a_thread_has_begun_is_waited_for_when_it_is_cancelled",
    ),
    Mutant(
        "a batch in a group is let go of when its task is cancelled",
        "engines/grouping.py",
        "                await _over(result)\n",
        "                pass\n",
        "test_loop_thread.py::test_a_batch_that_waits_can_be_taken_back_and_one_under_way_cannot",
    ),
    Mutant(
        "connections that are parted with are not waited for when the loop ends",
        "engines/postgres/pool.py",
        "            await asyncio.wait(partings)",
        "            assert True",
        "faults/test_faults_loops.py::"
        "test_a_loop_that_ends_while_tasks_write_loses_nothing_and_complains_of_nothing[postgres]",
    ),
    Mutant(
        "the loop of a plain store ends before what others do at the exit",
        "bridge/loop_thread.py",
        "            ending.atexit = False  # what others do at the interpreter's exit may need it\n",
        "",
        f"{_EXITS}::test_however_an_interpreter_ends_all_that_was_acknowledged_is_there[valkey-left open]",
    ),
    Mutant(
        "a directory that could not be opened wholly stays open",
        "engines/files/engine.py",
        "        except BaseException:\n            self._let_go()\n            raise\n        self._usage.open()\n",
        "        except BaseException:\n            raise\n        self._usage.open()\n",
        f"{_HANDLES}::test_a_store_that_cannot_be_opened_leaves_no_handle[files]",
    ),
    Mutant(
        "that no event loop can be made is not told as an error of ours",
        "bridge/loop_thread.py",
        "        except OSError as error:\n            raise StoreUnavailable(",
        "        except ZeroDivisionError as error:\n            raise StoreUnavailable(",
        f"{_HANDLES}::test_a_store_that_cannot_be_opened_leaves_no_handle[valkey]",
    ),
    Mutant(
        "that no thread can be had is not told as an error of ours",
        "threads.py",
        "    except RuntimeError as error:\n",
        "    except ZeroDivisionError as error:\n",
        f"{_THREADS}::test_an_asynchronous_store_needs_a_thread_and_says_so[files]",
    ),
    Mutant(
        "a prune that finds no thread fails the save",
        "store/pruning.py",
        "            except RuntimeError:  # no thread",
        "            except ZeroDivisionError:  # no thread",
        f"{_THREADS}::test_what_was_saved_is_saved_though_the_prune_finds_no_thread[memory]",
    ),
    Mutant(
        "a copy of a store takes its locks along",
        "store/plain.py",
        "    def __reduce__(self) -> NoReturn:\n        raise not_portable()\n\n",
        "",
        f"{_THREADS}::test_a_store_is_neither_pickled_nor_copied",
    ),
    Mutant(
        "a session's moments are those of the machine's clock, raw",
        "timestamps.py",
        "max(time.time_ns() // 1000, self._last + 1)",
        "time.time_ns() // 1000",
        f"{_CLOCKS}::test_moments_rise_and_order_stays_whatever_the_clock_does[sqlite]",
    ),
    Mutant(
        "a file's new time may be that of its old one",
        "engines/files/temporary.py",
        "                    moment = max(moment, old.st_mtime_ns + 1)\n",
        "",
        f"{_CLOCKS}::test_versions_of_a_file_do_not_come_back_though_the_clock_stands_still",
    ),
    Mutant(
        "turns to prune go by the wall clock",
        "pruning.py",
        "clock: Callable[[], float] = time.monotonic",
        "clock: Callable[[], float] = lambda: time.time()",
        f"{_CLOCKS}::test_turns_to_prune_do_not_go_by_the_clock",
    ),
    Mutant(
        "the lock of a store in memory is not held by who forks",
        "engines/memory.py",
        "        hold_while_forking(self._lock)\n",
        "",
        f"{_FORKS}::test_a_store_in_memory_goes_on_in_parent_and_child_each_with_its_own",
    ),
    Mutant(
        "a child uses its parent's event loop",
        "bridge/loop_thread.py",
        "        if os.getpid() != self._process:\n            raise StoreClosed(",
        "        if not self._process:\n            raise StoreClosed(",
        f"{_FORKS}::test_a_child_forked_beside_busy_threads_is_told_to_open_its_own_and_can[valkey]",
    ),
    Mutant(
        "a child waits for a turn that a thread of its parent has",
        "host.py",
        " and turn.process == os.getpid()",
        "",
        f"{_FORKS}::test_an_object_that_a_thread_of_the_parent_is_saving_is_not_saved_in_the_child_and_nobody_hangs",
    ),
    Mutant(
        "a backup for which there is no room leaves SQLite's journal behind",
        "engines/sqlite/backing_up.py",
        '(unfinished, f"{unfinished}-journal")',
        "(unfinished,)",
        "faults/test_faults_no_room.py::test_the_command_says_that_there_is_no_room[backup]",
    ),
    Mutant(
        "an index that cannot be written fails the listing",
        "engines/files/index_file.py",
        "        except (sqlite3.DatabaseError, UnicodeDecodeError, OSError) as error:\n",
        "        except sqlite3.DatabaseError as error:\n",
        "faults/test_faults_permissions.py::test_an_index_that_may_not_be_written_does_not_stop_a_listing",
    ),
    Mutant(
        "file names that are not UTF-8 for this Python are not told",
        "engines/files/engine.py",
        '    if encoding != "utf-8":\n',
        "    if not encoding:\n",
        "faults/test_faults_surroundings.py::test_a_locale_without_utf8_is_right_or_says_what_to_set[C]",
    ),
)
