"""The session files: reading one, through what was kept of it last time; and the summaries of all."""

from __future__ import annotations

import os

import msgspec

from statestore.engines.files.directory import Directory, NotAFile
from statestore.engines.files.identity import Expected, Identity, status_of
from statestore.engines.files.image import ImageCache, SessionImage, version_text
from statestore.engines.files.index import Index
from statestore.engines.files.own_database import OwnDatabase
from statestore.engines.files.seen import NO_TIME, SUFFIX
from statestore.engines.files.summaries import summary_of
from statestore.errors import CorruptSession, InvalidName, InvalidValue, StoreUnavailable
from statestore.names import SESSIONS, check_session_id
from statestore.seedform.pieces import Pieces
from statestore.seedform.text import SessionText
from statestore.stored import SessionSummary


class SessionFiles:
    """What lies in the directory ``sessions``."""

    def __init__(self, directory: Directory, *, is_writable: bool) -> None:
        self._directory = directory
        self._images = ImageCache()
        self._index = Index(OwnDatabase(directory, "index.db"), is_writable=is_writable)

    def image(self, session_id: str) -> SessionImage | None:
        """The session file as it is now; `CorruptSession` if it cannot be understood."""
        with self._directory.category(SESSIONS) as directory:
            return None if directory is None else self.image_in(directory, session_id)

    def image_in(self, directory: int, session_id: str) -> SessionImage | None:
        """The same, with the directory open already."""
        kept = self._images.get(session_id)
        found = self.read(directory, session_id, expected=kept.expected if kept else None)
        if found is None:
            self.forget(session_id)
            return None
        body, status = found
        if kept is not None and body is kept.body and kept.identity == Identity.of(status):
            return kept
        text = self._understood(body.joined(), session_id)
        image = SessionImage(body, status, text)
        self._images.keep(session_id, image)
        return image

    def check(self, directory: int, session_id: str) -> None:
        """Read a session file anew, whatever is remembered of it; `CorruptSession` if it cannot be understood."""
        found = self.read(directory, session_id)
        if found is not None:
            self._understood(found[0].joined(), session_id)

    def read(
        self, directory: int, session_id: str, *, expected: Expected | None = None
    ) -> tuple[Pieces, os.stat_result] | None:
        """The bytes of a session file."""
        try:
            return self._directory.read(directory, session_id + SUFFIX, self.where(session_id), expected=expected)
        except NotAFile as error:
            raise CorruptSession(str(error)) from error

    def keep(self, session_id: str, status: os.stat_result, text: SessionText) -> SessionImage:
        """Remember what was just written."""
        text.forget_records()
        image = SessionImage(text.pieces, status, text, is_ours=self._directory.temporary.keeps_nanoseconds)
        self._images.keep(session_id, image)
        return image

    def forget(self, session_id: str) -> None:
        """Remember nothing of a session."""
        self._images.drop(session_id)

    def where(self, session_id: str) -> str:
        """The path of a session file, for messages."""
        return f"{self._directory.path}/{SESSIONS}/{session_id}{SUFFIX}"

    def _understood(self, body: bytes, session_id: str) -> SessionText:
        try:
            text = SessionText(body)
        except (msgspec.DecodeError, InvalidValue, UnicodeDecodeError, RecursionError) as error:
            raise CorruptSession(f"{self.where(session_id)} is not a session: {error}") from error
        if text.id != session_id:
            raise CorruptSession(f"{self.where(session_id)} holds the session {text.id!r}, not the one it is named for")
        return text

    # -- all of them

    def refreshed_index(self) -> Index:
        """The index of all session files, up to date. Parses only what changed."""
        with self._directory.category(SESSIONS) as directory:
            if directory is None:
                return Index(None)

            def examine(session_id: str) -> tuple[Identity, SessionSummary | str] | None:
                return self._examined(directory, session_id)

            def confirm(session_id: str, summary: SessionSummary) -> bool:
                return self._is_confirmed(directory, session_id, summary)

            self._index.refresh(directory, examine, confirm)
        return self._index

    def _is_confirmed(self, directory: int, session_id: str, summary: SessionSummary) -> bool:
        try:
            found = self.read(directory, session_id)
        except (CorruptSession, StoreUnavailable):
            return False
        return found is not None and version_text(Identity.of(found[1]), found[0].crc32()) == summary.version

    def _examined(self, directory: int, session_id: str) -> tuple[Identity, SessionSummary | str] | None:
        status = status_of(directory, session_id + SUFFIX)
        if status is None:
            return None
        identity = Identity.of(status)
        try:
            check_session_id(session_id)
            found = self.read(directory, session_id)
            if found is None:
                return None
            body, status = found
            identity = Identity.of(status)
            return identity, summary_of(SessionImage(body, status, self._understood(body.joined(), session_id)))
        except StoreUnavailable as error:
            return identity._replace(mtime_ns=NO_TIME), str(error)  # not the file's fault: look again next time
        except (CorruptSession, InvalidName) as error:
            return identity, str(error)
