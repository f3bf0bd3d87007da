"""Repairs: files that cannot be read are moved aside, where nobody stumbles over them. Nothing is deleted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from statestore.engines.files.checking import shown
from statestore.engines.files.directory import OWN, Directory, NotAFile
from statestore.engines.files.documents import directories_below, document_kind, documents_in
from statestore.engines.files.identity import status_of
from statestore.engines.files.locks import Locks
from statestore.engines.files.planning import Place
from statestore.engines.files.seen import SUFFIX
from statestore.engines.files.sessions import SessionFiles
from statestore.engines.inspecting import faults_of_content, faults_of_name
from statestore.errors import CorruptSession, StoreUnavailable
from statestore.names import SESSIONS, TRASH
from statestore.stored import DocumentInfo, Problem

ASIDE: Final = f"{OWN}/aside"


class Repair:
    """Looks at every file, and moves aside what is damaged, each under its lock."""

    def __init__(self, directory: Directory, sessions: SessionFiles, locks: Locks) -> None:
        self._directory = directory
        self._sessions = sessions
        self._locks = locks

    def run(self) -> Iterator[Problem]:
        """What was damaged, and where it lies now. What cannot be looked at is passed over: check() tells of it."""
        for session_id in self._session_ids():
            yield from self._mend_session(session_id)
        for category in (*directories_below(self._directory, "", unseen={}), TRASH):
            if category not in ("", SESSIONS):
                for info in self._documents(category):
                    yield from self._mend_document(category, f"{info.name}.{info.kind}")

    def _session_ids(self) -> list[str]:
        with suppress(StoreUnavailable), self._directory.category(SESSIONS) as fd:
            names = sorted(os.listdir(fd)) if fd is not None else []
            return [name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)]
        return []

    def _documents(self, category: str) -> list[DocumentInfo]:
        with suppress(StoreUnavailable):
            return documents_in(self._directory, category)
        return []

    def _mend_session(self, session_id: str) -> Iterator[Problem]:
        with self._locks.held(Place(SESSIONS, session_id + SUFFIX).stripe), self._directory.category(SESSIONS) as fd:
            if fd is None:
                return
            try:
                self._sessions.check(fd, session_id)
            except StoreUnavailable:
                return  # nobody may read it: check() tells
            except CorruptSession as error:
                yield self._moved(fd, SESSIONS, session_id + SUFFIX, str(error))

    def _mend_document(self, category: str, file: str) -> Iterator[Problem]:
        kind = document_kind(file)
        assert kind is not None
        name = file.removesuffix(f".{kind}")
        with self._locks.held(Place(category, file).stripe), self._directory.category(category) as fd:
            try:
                found = None if fd is None else self._directory.read(fd, file, f"{category}/{file}")
            except (NotAFile, StoreUnavailable):
                return  # a link or a pipe, or nobody may read it: check() tells
            if fd is None or found is None:
                return
            if any(faults_of_name(category, name)):
                return  # its place is what is wrong, which check() tells: it is for people to mend
            for fault in faults_of_content(kind, found[0].joined()):
                yield self._moved(fd, category, file, fault)

    def _moved(self, fd: int, category: str, file: str, what: str) -> Problem:
        """Move a file aside; under another name if one of its name lies there already."""
        with self._directory.category(f"{ASIDE}/{category}", create=True) as aside:
            assert aside is not None
            name, number = file, 1
            while status_of(aside, name) is not None:
                name, number = f"{file}.{number}", number + 1
            os.rename(file, name, src_dir_fd=fd, dst_dir_fd=aside)
            self._directory.lasting.flush(aside)
            self._directory.lasting.flush(fd)
        moved = f"it was moved to {ASIDE}/{category}/{name}"
        return Problem(shown(f"{category}/{file}"), shown(what), shown(moved))
