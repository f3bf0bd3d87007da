"""A redo journal: what makes a batch of several files happen entirely or not at all.

The new files are written beside the old ones first. Then the journal, which says what belongs where, is put in
place: that is the moment when the batch happens. Then the files are put in their places, and the journal goes.
Who finds a journal whose writer is gone finishes it: a file that is as it was before gets its new content, one
that has it is left, and a session that another program changed meanwhile gets our change merged into it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

import msgspec
from msgspec import Struct

from statestore.engine import ChangeSession, NewRecord, NewSession
from statestore.engines.files.directory import OWN, Directory, NotAFile
from statestore.engines.files.identity import status_of
from statestore.engines.files.locks import PREPARING
from statestore.errors import CorruptData, InvalidName
from statestore.names import check_stored_category
from statestore.seedform.pieces import Pieces

NAME: Final = "journal"


class SessionChange(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A change to a session whose preconditions were found to hold."""

    id: str
    updated: str
    create: NewSession | None = None
    truncate_after: int | None = None
    append: tuple[NewRecord, ...] = ()
    set_fields: dict[str, str | None] = {}
    set_metadata: dict[str, bytes] = {}
    unset_metadata: tuple[str, ...] = ()

    @classmethod
    def of(cls, change: ChangeSession) -> SessionChange:
        """The journal's form of a change."""
        return cls(**{name: getattr(change, name) for name in cls.__struct_fields__})

    def as_change(self) -> ChangeSession:
        """The change as an engine takes it."""
        return ChangeSession(**{name: getattr(self, name) for name in self.__struct_fields__})


class Step(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One file: where it belongs, what it was before, and what takes its place."""

    category: str
    name: str
    temporary: str
    """The temporary file that takes its place; if the file goes, the one that it becomes."""
    before: str | None = None
    """Size and checksum of the bytes before; ``None`` if there was no file."""
    after: str | None = None
    """Size and checksum of the bytes after; ``None`` if the file goes."""
    change: SessionChange | None = None

    def check(self) -> None:
        """Raise `InvalidName` if the step would reach out of the store."""
        check_stored_category(self.category)
        for name in (self.name, self.temporary):
            if "/" in name or name in ("", ".", ".."):
                raise InvalidName(f"{name!r} is not the name of a file")


class Journal(Struct, frozen=True, forbid_unknown_fields=True):
    """The steps of one batch. What a newer release adds to it is not understood, so its batch is not made by half."""

    steps: list[Step]


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Journal).decode


def fingerprint(body: Pieces | None) -> str | None:
    """Size and checksum of a file's bytes."""
    return None if body is None else f"{body.size:x}-{body.crc32():08x}"


def is_waiting(directory: Directory) -> bool:
    """Whether there is a journal: its batch is being made, or its writer died."""
    return directory.own >= 0 and status_of(directory.own, NAME) is not None


def read_journal(directory: Directory) -> Journal | None:
    """The journal, if there is one."""
    where = f"{directory.path}/{OWN}/{NAME}"
    try:
        found = directory.read(directory.own, NAME, where)
        if found is None:
            return None
        journal = _decode(found[0].joined())
        for step in journal.steps:
            step.check()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, InvalidName, NotAFile) as error:
        raise CorruptData(f"{where} cannot be understood: {error}; move it away to go on without its batch") from error
    return journal


def prepared(directory: Directory, journal: Journal) -> str:
    """The temporary file of a journal."""
    temporary, _ = directory.temporary.prepare(PREPARING, Pieces.of(_encode(journal)), None)
    try:
        directory.temporary.flush_names()  # a journal without the files that it speaks of would be half a batch
    except BaseException:
        directory.temporary.discard(temporary)
        raise
    return temporary


def put_in_place(directory: Directory, temporary: str) -> None:
    """Put a journal in its place. When this returns, the batch has happened."""
    directory.temporary.put_in_place(temporary, directory.own, NAME)
    directory.lasting.flush(directory.own)


def remove_journal(directory: Directory) -> None:
    """The batch is made. Flushed, because a journal that came back would be made again."""
    with suppress(FileNotFoundError):
        os.unlink(NAME, dir_fd=directory.own)
    directory.lasting.flush(directory.own)
