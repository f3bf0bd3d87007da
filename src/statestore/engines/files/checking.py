"""Looking at everything in a store's directory, and telling what is wrong. Changes nothing."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

import msgspec

from statestore.engines.files.directory import OWN, TEMPORARY, Directory, NotAFile
from statestore.engines.files.documents import directories_below, document_kind
from statestore.engines.files.identity import status_of
from statestore.engines.files.recovery import owner_of
from statestore.engines.files.seen import SUFFIX
from statestore.engines.files.sessions import SessionFiles
from statestore.engines.inspecting import faults_of_content, faults_of_name
from statestore.errors import CorruptSession, InvalidName, StateStoreError, StoreUnavailable
from statestore.names import SESSIONS, TRASH, check_session_id
from statestore.stored import Problem

_KEPT = "it is kept as it is; move it away, or mend it by hand"
_DAMAGED = "it is kept as it is; mend it by hand, or check(repair=True) moves it aside"
_LINK = Problem("", "it is a link, and links inside a store are not followed", "put the file itself here")


def check_everything(directory: Directory, sessions: SessionFiles) -> list[Problem]:
    """All problems, by place."""
    found = [*_check_own(directory)] if directory.own >= 0 else []
    unseen: dict[str, StoreUnavailable] = {}
    for top in ("", TRASH):
        for category in directories_below(directory, top, unseen=unseen):
            found += _check_category(directory, sessions, category)
    told = {problem.where for problem in found}
    found += [_unopened(category, error) for category, error in unseen.items() if shown(category) not in told]
    return sorted(found, key=lambda problem: problem.where)


def _check_category(directory: Directory, sessions: SessionFiles, category: str) -> Iterator[Problem]:
    try:
        with directory.category(category or ".") as fd:
            if fd is None:
                return
            with os.scandir(fd) as scan:
                names = [entry.name for entry in scan if not directory.is_kept_by_the_system(fd, entry.name)]
            entries = [(name, found.st_mode) for name in names if (found := status_of(fd, name)) is not None]
            for name, mode in entries:
                where = f"{category}/{name}" if category else name
                if stat.S_ISLNK(mode):
                    yield msgspec.structs.replace(_LINK, where=shown(where))
                elif not stat.S_ISDIR(mode):
                    yield from _check_file(directory, sessions, fd, category, name)
                elif document_kind(name) is not None:
                    is_moved = category == SESSIONS and name.endswith(SUFFIX)
                    what = "it is a directory named like a document"
                    yield Problem(shown(where), what, _DAMAGED if is_moved else _KEPT)
    except StoreUnavailable as error:
        yield _unopened(category, error)


def _unopened(category: str, error: StoreUnavailable) -> Problem:
    return Problem(shown(category), str(error), _KEPT)


def _check_file(directory: Directory, sessions: SessionFiles, fd: int, category: str, name: str) -> Iterator[Problem]:
    where = shown(f"{category}/{name}" if category else name)
    kind = document_kind(name)
    if name.endswith(".tmp"):
        yield Problem(where, "a temporary file of the Rust program", "remove it if no program is writing it")
    elif kind is None or not category:
        yield Problem(where, "it is no document: not in a category, or not .json, .md or .bin", _KEPT)
    elif category == SESSIONS:
        yield from _check_session(sessions, fd, name, where)
    else:
        yield from _check_document(directory, fd, category, name, where)


def _check_session(sessions: SessionFiles, fd: int, name: str, where: str) -> Iterator[Problem]:
    if not name.endswith(SUFFIX):
        yield Problem(where, "it is not a session, and lies among the sessions", _KEPT)
        return
    session_id = name.removesuffix(SUFFIX)
    try:
        check_session_id(session_id)
        sessions.check(fd, session_id)
    except InvalidName as error:
        yield Problem(where, f"its name breaks the naming rule: {error}", "rename it")
    except CorruptSession as error:
        yield Problem(where, str(error), _DAMAGED)
    except StoreUnavailable as error:
        yield Problem(where, str(error), _KEPT)


def _check_document(directory: Directory, fd: int, category: str, name: str, where: str) -> Iterator[Problem]:
    kind = document_kind(name)
    assert kind is not None
    try:
        found = directory.read(fd, name, where)
    except (NotAFile, StoreUnavailable) as error:
        yield Problem(where, str(error), _KEPT)
        return
    if found is not None:
        misnamed = [*faults_of_name(category, name.removesuffix(f".{kind}"))]
        for fault in misnamed:
            yield Problem(where, fault, _KEPT)
        for fault in faults_of_content(kind, found[0].joined()):
            yield Problem(where, fault, _KEPT if misnamed else _DAMAGED)


def _check_own(directory: Directory) -> Iterator[Problem]:
    try:
        for name in directory.temporary.names():
            where = shown(f"{OWN}/{TEMPORARY}/{name}")
            if owner_of(name) is None:
                yield Problem(where, "it is not a file of the store", _KEPT)
                continue
            what = "a temporary file: of a running writer, or of one that died"
            yield Problem(where, what, "open the store for writing: that removes what is left over")
    except (StateStoreError, OSError) as error:
        yield Problem(OWN, str(error), _KEPT)


def shown(where: str) -> str:
    """A path that can be printed, whatever bytes are in it."""
    return where.encode("utf-8", "backslashreplace").decode()
