"""Looking at session files for the change log: each is parsed once and put in order once, within one call."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Final, NamedTuple

from statestore.engines.files.directory import Directory
from statestore.engines.files.image import SessionImage
from statestore.engines.files.seen import SUFFIX, TICK_NS, Entry
from statestore.engines.files.sessions import SessionFiles
from statestore.errors import CorruptSession, InvalidName, StoreUnavailable
from statestore.names import check_session_id
from statestore.stored import StoredRecord

_KEPT_RECORDS: Final = 20_000
_NO_TIME: Final = -1
"""A time that no file has: who cannot be looked at now is looked at again."""


class Look(NamedTuple):
    """What was found in the place of a session file."""

    entry: Entry
    image: SessionImage | None
    """Not there if the entry has an error."""
    is_known: bool = True
    """Whether that is the file's own state, and not the system's refusal to show it."""


class Looker:
    """Looks at the files of one directory, for the length of one call."""

    def __init__(self, directory: Directory, sessions: SessionFiles, fd: int | None) -> None:
        self._directory = directory
        self._sessions = sessions
        self.fd = fd
        """The directory ``sessions``, open; ``None`` if there is none."""
        self._ordered: OrderedDict[SessionImage, list[StoredRecord]] = OrderedDict()
        self._kept = 0

    def look(self, session_id: str) -> Look | None:
        """The file as it is now; ``None`` if there is none."""
        moment = time.time_ns()
        status = None if self.fd is None else self._directory.stat(self.fd, session_id + SUFFIX)
        if status is None:
            return None
        try:
            check_session_id(session_id)
            image = self.image(session_id)
        except StoreUnavailable as error:
            entry = Entry(session_id, status.st_size, _NO_TIME, status.st_ino, is_settled=False, error=str(error))
            return Look(entry, None, is_known=False)
        except (CorruptSession, InvalidName) as error:
            is_settled = moment - status.st_mtime_ns > TICK_NS
            seen = (status.st_size, status.st_mtime_ns, status.st_ino)
            return Look(Entry(session_id, *seen, is_settled, error=str(error)), None)
        if image is None:
            return None
        return Look(Entry(session_id, *image.identity, moment - image.identity.mtime_ns > TICK_NS), image)

    def image(self, session_id: str) -> SessionImage | None:
        """A session file that is understood; raises as `SessionFiles.image` does."""
        return None if self.fd is None else self._sessions.image_in(self.fd, session_id)

    def records(self, image: SessionImage) -> list[StoredRecord]:
        """The records of a session, in order."""
        found = self._ordered.get(image)
        if found is None:
            found = self._ordered[image] = image.text.records.in_order()
            self._kept += len(found)
            while self._kept > _KEPT_RECORDS and len(self._ordered) > 1:
                self._drop_oldest()
        return found

    def close(self) -> None:
        """Have the images keep bytes only."""
        while self._ordered:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        image, records = self._ordered.popitem(last=False)
        self._kept -= len(records)
        image.text.forget_records()
