"""Ways to let hostile input through: links that are followed, names and values that nobody judges."""

from __future__ import annotations

from mutants.mutant import Mutant

HOSTILE = "soak/test_hostile.py"
FUZZED = f"{HOSTILE}::test_hostile_input_is_a_value_or_an_error_of_ours"
TRASH = f"{HOSTILE}::test_what_lies_in_the_trash_cannot_be_restored_as_something_else"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "a file that is a link is read",
        "engines/files/directory.py",
        "_FILE = os.O_RDONLY | os.O_NOFOLLOW |",
        "_FILE = os.O_RDONLY |",
        "processes/test_bad_files.py::test_what_stands_where_a_document_belongs_is_reported_and_left_as_it_is",
    ),
    Mutant(
        "a directory that is a link is entered",
        "engines/files/lasting.py",
        "DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW |",
        "DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY |",
        f"{HOSTILE}::test_a_category_that_is_a_link_is_not_entered",
    ),
    Mutant(
        "our own databases are looked for by their path, wherever that leads",
        "engines/files/own_database.py",
        "return os.path.samestat(found, os.fstat(self._directory.own))",
        "return True",
        f"{HOSTILE}::test_our_own_databases_are_not_looked_for_behind_a_link",
    ),
    Mutant(
        "our own databases are written into a file that has another name",
        "engines/files/own_database.py",
        " and status.st_nlink <= 1)",
        ")",
        f"{HOSTILE}::test_our_own_databases_are_not_written_into_a_file_that_has_another_name",
    ),
    Mutant(
        "a thread waits for a lock that it holds under another name",
        "engines/files/locks.py",
        "        if is_held:\n",
        "        if False:\n",
        f"{HOSTILE}::test_two_locks_that_are_one_file_are_an_error_and_not_a_wait_without_end",
    ),
    Mutant(
        "the turns of writers are noted in somebody's file",
        "engines/sqlite/turns.py",
        "self._is_ours_alone = os.fstat(self._turn).st_nlink <= 1",
        "self._is_ours_alone = True",
        f"{HOSTILE}::test_the_turns_of_writers_are_not_noted_in_a_file_that_has_another_name",
    ),
    Mutant(
        "the names in a journal are not judged",
        "engines/files/journal.py",
        "            step.check()",
        "            pass",
        "processes/test_bad_own_files.py::test_a_journal_cannot_reach_out_of_the_store",
    ),
    Mutant(
        "what is taken out of the trash may be another session",
        "store/in_trash.py",
        "if (thrown.id, thrown.fields.user_id) != (note.session.id, note.session.user_id):",
        "if False:",
        TRASH,
    ),
    Mutant(
        "an engine takes any name for a file's",
        "engines/files/planning.py",
        'if "/" in place.file:',
        "if False:",
        f"{HOSTILE}::test_an_engine_writes_no_file_whose_name_leads_out_of_its_directory",
    ),
    Mutant(
        "a name may hold two dots",
        "names.py",
        '    if ".." in part:\n',
        "    if False:\n",
        f"{FUZZED}[fuzz-names-values]",
    ),
    Mutant(
        "a name is judged by what it says of itself",
        "names.py",
        "    whole, part = str.__str__(whole), str.__str__(part)\n",
        "",
        f"{HOSTILE}::test_a_name_is_judged_by_what_it_holds",
    ),
    Mutant(
        "a value may be nested to any depth",
        "jsontext.py",
        "    if depth == 0:\n",
        "    if depth == -50:\n",
        f"{HOSTILE}::test_a_value_is_nested_to_100_levels_and_no_deeper",
    ),
    Mutant(
        "a number of any size is taken",
        "jsontext.py",
        "        if not -(2**63) <= number < 2**64:\n",
        "        if False:\n",
        f"{FUZZED}[fuzz-names-values]",
    ),
    Mutant(
        "a text that turns what stands beside it is shown as it is",
        "visible.py",
        "*range(0x202A, 0x202F), ",
        "*(), ",
        f"{FUZZED}[fuzz-names-values]",
    ),
    Mutant(
        "what a user said is markup in an HTML export",
        "exchange/html.py",
        '<p class="plain">{escape(text)}</p>',
        '<p class="plain">{text}</p>',
        "exchange/test_for_people.py::test_no_text_becomes_an_element_of_the_page",
    ),
    Mutant(
        "a page after a cursor shows everybody's sessions",
        "store/reading.py",
        'user_id=texts["user_id"] if self._owner is None else self._owner,',
        'user_id=texts["user_id"],',
        f"{FUZZED}[fuzz-cursors-queries]",
    ),
    Mutant(
        "a cursor is taken that nobody gave out",
        "stored.py",
        "if cursor is None or cursor.text != text:",
        "if cursor is None:",
        f"{FUZZED}[fuzz-cursors-queries]",
    ),
    Mutant(
        "a row that makes no sense raises what Python says of it",
        "engines/sqlite/failures.py",
        "    except (sqlite3.Error, OSError, *SENSELESS) as error:",
        "    except (sqlite3.Error, OSError) as error:",
        f"{HOSTILE}::test_a_row_of_our_own_that_is_gone_is_an_error_of_ours",
    ),
    Mutant(
        "a row with a value of the wrong type is listed",
        "engines/sqlite/listing.py",
        "if tuple(map(type, shown)) in _SOUND:",
        "if True:",
        f"{HOSTILE}::test_a_value_of_the_wrong_type_is_left_out_of_listings_and_cannot_be_loaded",
    ),
    Mutant(
        "a record that is none is an error of the decoder's",
        "store/documents.py",
        "        with understanding(session_id):\n            return Document",
        "        if True:\n            return Document",
        f"{HOSTILE}::test_a_row_that_is_no_record_is_a_corrupt_session_however_it_is_read",
    ),
)
