"""Looking at session files for the change log."""

from __future__ import annotations

import time
from typing import NamedTuple

from statestore.engines.files.identity import Identity, status_of
from statestore.engines.files.image import SessionImage
from statestore.engines.files.seen import NO_TIME, SUFFIX, Entry, is_settled
from statestore.engines.files.sessions import SessionFiles
from statestore.engines.files.states import SessionState, state_of
from statestore.errors import CorruptSession, InvalidName, StoreUnavailable
from statestore.names import check_session_id


class Look(NamedTuple):
    """What was found in the place of a session file."""

    entry: Entry
    image: SessionImage | None
    """Not there if the entry has an error."""
    is_known: bool = True
    """Whether that is the file's own state, and not the system's refusal to show it."""


class Looker:
    """Looks at the files of one directory, for the length of one call."""

    def __init__(self, sessions: SessionFiles, fd: int | None) -> None:
        self._sessions = sessions
        self.fd = fd
        """The directory ``sessions``, open; ``None`` if there is none."""
        self._states: dict[str, SessionState] = {}

    def look(self, session_id: str) -> Look | None:
        """The file as it is now; ``None`` if there is none."""
        moment = time.time_ns()
        status = None if self.fd is None else status_of(self.fd, session_id + SUFFIX)
        if status is None:
            return None
        try:
            check_session_id(session_id)
            image = self.image(session_id)
        except StoreUnavailable as error:
            entry = Entry(session_id, status.st_size, NO_TIME, status.st_ino, is_settled=False, error=str(error))
            return Look(entry, None, is_known=False)
        except (CorruptSession, InvalidName) as error:
            seen = Identity.of(status)
            return Look(Entry(session_id, *seen, is_settled(seen.mtime_ns, moment), error=str(error)), None)
        if image is None:
            return None
        return Look(Entry(session_id, *image.identity, is_settled(image.identity.mtime_ns, moment)), image)

    def image(self, session_id: str) -> SessionImage | None:
        """A session file that is understood; raises as `SessionFiles.image` does."""
        return None if self.fd is None else self._sessions.image_in(self.fd, session_id)

    def prepare(self, image: SessionImage) -> None:
        """Work out what will be noted of a file, before anything is locked."""
        self._states[image.text.id] = state_of(image)

    def state(self, image: SessionImage) -> SessionState:
        """What is to be noted of a file: what was prepared, if it still is the same."""
        prepared = self._states.pop(image.text.id, None)
        return prepared if prepared is not None and prepared.version == str(image.version) else state_of(image)
