"""Before a file is written: where it is, what it holds now, and what it will hold."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from statestore.engine import ChangeSession, DeleteDocument, DeleteSession, PutDocument
from statestore.engines.files.directory import Directory, NotAFile
from statestore.engines.files.documents import file_name
from statestore.engines.files.editing import changed, created
from statestore.engines.files.identity import Identity, status_of
from statestore.engines.files.image import SessionImage, version_text
from statestore.engines.files.locks import stripe_of
from statestore.engines.files.seen import SUFFIX
from statestore.engines.files.sessions import SessionFiles
from statestore.engines.judging import Present, SingleChange
from statestore.errors import CorruptDocument, CorruptSession, InvalidName, StateStoreError
from statestore.names import SESSIONS
from statestore.seedform.pieces import Pieces
from statestore.seedform.text import SessionText
from statestore.stored import Version


class ChangedMeanwhile(StateStoreError):
    """Another program replaced a file between our read and our write."""


class Place(NamedTuple):
    """Where an item's file is."""

    category: str
    file: str

    @property
    def stripe(self) -> str:
        """The lock that guards it."""
        return stripe_of(self)


def place_of_file(change: SingleChange) -> Place:
    """Where the file is that a change is about."""
    if isinstance(change, (ChangeSession, DeleteSession)):
        place = Place(SESSIONS, change.id + SUFFIX)
    else:
        place = Place(change.category, file_name(change.name, change.kind))
    if "/" in place.file:
        raise InvalidName(f"{place.file!r} is not the name of a file")
    return place


class Found(NamedTuple):
    """What is there before a change: a file's bytes, and a session's image if it was understood."""

    body: Pieces
    status: os.stat_result
    version: Version
    image: SessionImage | None = None


class Plan(NamedTuple):
    """What a change comes to: the bytes that will be there (``None``: no file), and the numbers given out."""

    body: Pieces | None
    text: SessionText | None = None
    seqs: tuple[int, ...] = ()


class Surveyor:
    """Looks at what is there before a change, right before it, and notes what is there after it."""

    def __init__(self, directory: Directory, sessions: SessionFiles) -> None:
        self._directory = directory
        self._sessions = sessions

    def find_alone(self, change: SingleChange) -> Found | None:
        """What is there now, of a change whose directory is not open."""
        place = place_of_file(change)
        with self._directory.category(place.category) as directory:
            return None if directory is None else self.find(change, directory, place)

    def find(self, change: SingleChange, directory: int, place: Place) -> Found | None:
        """What is there now. A session to be deleted is read, and understood only if it matters whose it is."""
        if isinstance(change, ChangeSession):
            return _found_image(self._sessions.image_in(directory, change.id))
        if isinstance(change, DeleteSession) and (change.requires.owner, change.requires.created) != (None, None):
            try:
                image = self._sessions.image_in(directory, change.id)
            except CorruptSession:
                if change.requires.owner is not None:
                    raise
            else:
                return _found_image(image)
        where = f"{self._directory.path}/{place.category}/{place.file}"
        try:
            found = self._directory.read(directory, place.file, where)
        except NotAFile as error:
            kind = CorruptSession if isinstance(change, DeleteSession) else CorruptDocument
            raise kind(str(error)) from error
        if found is None:
            return None
        body, status = found
        return Found(body, status, version_text(Identity.of(status), body.crc32()))

    def check_unchanged(self, directory: int, place: Place, found: Found | None) -> None:
        """Raise `ChangedMeanwhile` if somebody without our lock replaced the file since we read it.

        What remains is the instant between this look and the rename that follows.
        """
        now = status_of(directory, place.file)
        is_same = now is None if found is None else now is not None and Identity.of(now) == Identity.of(found.status)
        if not is_same:
            raise ChangedMeanwhile(f"{place.category}/{place.file} changed")

    def check_all_unchanged(self, files: Iterable[tuple[Place, Found | None, Plan]]) -> None:
        """The same of many files, whose directories are not open. One that is to be written into must be there."""
        by_category = sorted(files, key=_category)
        for category, some in groupby(by_category, key=_category):
            with self._directory.category(category) as directory:
                for place, found, plan in some:
                    if directory is not None:
                        self.check_unchanged(directory, place, found)
                    elif found is not None or plan.body is not None:
                        raise ChangedMeanwhile(f"{category} was removed")

    def noted(self, place: Place, plan: Plan, status: os.stat_result) -> Version:
        """Remember what was written; its version."""
        assert plan.body is not None
        if plan.text is None:
            return version_text(Identity.of(status), plan.body.crc32())
        return self._sessions.keep(place.file.removesuffix(SUFFIX), status, plan.text).version

    def forget(self, place: Place) -> None:
        """Remember nothing of a file that is gone."""
        if place.category == SESSIONS:
            self._sessions.forget(place.file.removesuffix(SUFFIX))


def present(found: Found | None) -> Present | None:
    """What preconditions are judged by."""
    if found is None:
        return None
    fields = found.image.text.fields if found.image else None
    return Present(found.version, fields.user_id if fields else None, fields.created if fields else None)


def planned(change: SingleChange, found: Found | None) -> Plan:
    """What will be there after a change whose preconditions hold."""
    if isinstance(change, PutDocument):
        return Plan(Pieces.of(change.body))
    if isinstance(change, (DeleteDocument, DeleteSession)):
        return Plan(None)
    image = found.image if found else None
    text, seqs = created(change) if image is None else changed(image.text, change)
    return Plan(text.pieces, text, seqs)


def _category(file: tuple[Place, Found | None, Plan]) -> str:
    return file[0].category


def _found_image(image: SessionImage | None) -> Found | None:
    return None if image is None else Found(image.body, image.status, image.version, image)
