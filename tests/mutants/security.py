"""Ways to let one user reach another's sessions, to let a password slip, or to keep what should be gone."""

from __future__ import annotations

from mutants.mutant import Mutant

ATTACKS = "security/test_for_user.py::test_no_method_reaches_another_users_session_with_any_argument"
LOOKS = "security/test_for_user.py::test_another_users_session_looks_exactly_as_one_that_is_not_there"
WATCHES = "security/test_for_user.py::test_a_watch_tells_nothing_of_another_user_whatever_cursor_it_begins_with"
OPENING = "security/test_secrets.py::test_no_error_of_a_store_that_cannot_be_opened_tells_a_password"
SHOWING = "security/test_secrets.py::test_nothing_that_an_engine_shows_of_itself_tells_a_password"
USING = "security/test_secrets.py::test_a_store_in_use_tells_no_password"
COMPACTING = "sqlite/test_sqlite_compacting.py::test_nothing_of_an_erased_user_is_left_in_any_file"
ERASING = "test_erasing.py::test_a_user_is_not_said_to_be_erased_while_there_are_files_that_may_be_theirs"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "an append does not ask whose session it is",
        "store/writing.py",
        "appending(session_id, records, keys, self._owner)",
        "appending(session_id, records, keys)",
        f"{ATTACKS}[plain-memory]",
    ),
    Mutant(
        "a delete does not ask whose session it is",
        "store/writing.py",
        "Requires(owner=self._owner))",
        "Requires())",
        f"{ATTACKS}[plain-sqlite]",
    ),
    Mutant(
        "a rewind does not ask whose session it is when it writes",
        "store/branching.py",
        "requires=Requires(present=True, version=stored.version, owner=self._owner),",
        "requires=Requires(present=True, version=stored.version),",
        f"{ATTACKS}[async-memory]",
    ),
    Mutant(
        "a prune does not ask whose session it is when it deletes",
        "store/pruning.py",
        "Requires(version=summary.version, owner=self._owner)",
        "Requires(version=summary.version)",
        f"{ATTACKS}[plain-memory]",
    ),
    Mutant(
        "what an object says when it is saved is believed though it says something else when it is looked at",
        "store/writing.py",
        "        self._check_bound(draft.change)\n",
        "",
        f"{ATTACKS}[plain-memory]",
    ),
    Mutant(
        "a session is read for whoever asks",
        "store/reading.py",
        "if stored is None or self._owner not in (None, stored.fields.user_id):",
        "if stored is None:",
        f"{LOOKS}[plain-files]",
    ),
    Mutant(
        "the trash is everybody's",
        "store/trashing.py",
        "found = [note for note in notes if self._owner in (None, note.session.user_id)]",
        "found = notes",
        f"{ATTACKS}[plain-sqlite]",
    ),
    Mutant(
        "a listing that begins with a cursor is of all users",
        "store/reading.py",
        '            user_id=texts["user_id"] if self._owner is None else self._owner,\n',
        "            user_id=user_id if self._owner is None or after else self._owner,\n",
        f"{ATTACKS}[plain-postgres]",
    ),
    Mutant(
        "a search finds what others said",
        "store/searching.py",
        "SearchQuery(terms, user_id if self._owner is None else self._owner, project_id, after, count)",
        "SearchQuery(terms, user_id, project_id, after, count)",
        f"{ATTACKS}[plain-files]",
    ),
    Mutant(
        "a watch tells of others' sessions",
        "store/watching.py",
        "session_id=session_id, user_id=self._owner)",
        "session_id=session_id)",
        f"{WATCHES}[plain-valkey]",
    ),
    Mutant(
        "a port that is a password is quoted",
        "engines/postgres/url.py",
        '"postgresql: a port in the URL is not a number from 1 to 65535: is it user:password without @host?"',
        'f"postgresql: {port!r} is no port"',
        OPENING,
    ),
    Mutant(
        "what an engine knows of its login shows the password",
        "engines/postgres/servers.py",
        'return f"Login({self.user!r}, {self.database!r})"  # not the password',
        'return f"Login({self.user!r}, {self.password!r})"',
        SHOWING,
    ),
    Mutant(
        "the URL of a store has its password",
        "engines/postgres/url.py",
        """user = f"{quote(login.user, safe='')}@" if login.user else \"\"""",
        """user = f"{login.user}:{login.password}@" if login.user else \"\"""",
        USING,
    ),
    Mutant(
        "an address shows its password",
        "engines/valkey/address.py",
        'return f"Address({self.url!r})"',
        'return f"Address({self.url!r}, {self.password!r})"',
        SHOWING,
    ),
    Mutant(
        "a compacted store still has the words of what was deleted",
        "engines/sqlite/indexing.py",
        """        connection.execute("INSERT INTO words (words) VALUES ('optimize')")\n""",
        "",
        COMPACTING,
    ),
    Mutant(
        "a compacted store still has what was deleted in the gaps of its pages",
        "engines/sqlite/compacting.py",
        """connection.execute("VACUUM")""",
        "pass",
        COMPACTING,
    ),
    Mutant(
        "the log of a compacted store still has what was deleted",
        "engines/sqlite/compacting.py",
        '        if not upkeep.cut_log(connection, PATIENCE_MS):\n            raise _log_in_use(file, "what',
        '        if False:\n            raise _log_in_use(file, "what',
        COMPACTING,
    ),
    Mutant(
        "a user is said to be erased while a file that nobody can read may be theirs",
        "engines/files/straying.py",
        "return True  # nobody can tell",
        "return False",
        f"{ERASING}[plain-cut]",
    ),
    Mutant(
        "a user is said to be erased while a cluster has a session that no listing shows",
        "engines/valkey/straying.py",
        "if not _is_anothers(owner, user_id)]",
        "if isinstance(owner, bytes) and owner == user_id]",
        "valkey/test_valkey_damage.py::test_a_user_is_not_said_to_be_erased_while_a_damaged_session_may_be_theirs"
        "[cluster_url-no header]",
    ),
    Mutant(
        "a user is said to be erased while nobody can read whose something in the trash is",
        "store/in_trash.py",
        "if name in unread] if unread else []",
        "if name in unread] if False else []",
        f"{ERASING}[plain-in the trash]",
    ),
)
