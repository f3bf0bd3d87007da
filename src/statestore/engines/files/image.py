"""A session file as it was last seen: its bytes, what they say, and the version they make.

Working out a version means reading every byte once more, which costs as much as a quarter of a write. So a version
is worked out when somebody asks for it; two that stem from one image are equal without that.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import Final

from statestore.engines.files.identity import Expected, Identity
from statestore.engines.files.kept_notes import layout_with_notes
from statestore.engines.forking import forget_after_fork
from statestore.seedform.pieces import Pieces
from statestore.seedform.text import SessionText

KEPT_BYTES: Final = 64 << 20
OF_AN_IMAGE: Final = 4 << 10
"""About how many bytes an image takes beside those of its file."""


def version_text(identity: Identity, checksum: int) -> str:
    """The version of a file in this state, whose bytes have this checksum."""
    return f"{identity.size:x}-{identity.mtime_ns:x}-{identity.inode:x}-{checksum:08x}"


def is_version_of(version: str, size: int, mtime_ns: int, inode: int) -> bool:
    """Whether a version is that of a file in this state, whatever its bytes."""
    return version.startswith(f"{size:x}-{mtime_ns:x}-{inode:x}-")


class FileVersion:
    """A session file's version: equal to what has the same text, worked out when first needed."""

    __slots__ = ("_body", "_identity", "_text")

    def __init__(self, identity: Identity, body: Pieces) -> None:
        self._identity = identity
        self._body: Pieces | None = body
        self._text = ""

    def __str__(self) -> str:
        body = self._body
        if body is not None:
            self._text = version_text(self._identity, body.crc32())
            self._body = None
        return self._text

    def supersede_unless(self, present: Identity) -> None:
        """The file has another version now, unless this is what it is at present: whoever looked before it was written
        may have told of it later. Who asks for the text of this one then gets one that no file ever has.

        So session objects that hold an old version do not hold the old bytes.
        """
        if self._body is not None and self._identity != present:
            self._text = f"{version_text(self._identity, 0)}-superseded"
            self._body = None

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, FileVersion) and self._identity != other._identity:
            return False
        return str(self) == str(other) if isinstance(other, (FileVersion, str)) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))

    def __repr__(self) -> str:
        return f"FileVersion({str(self)!r})"


class SessionImage:
    """One state of one session file."""

    __slots__ = ("_layouts", "body", "expected", "identity", "status", "text", "version")

    def __init__(self, body: Pieces, status: os.stat_result, text: SessionText, *, is_ours: bool = False) -> None:
        self._layouts: tuple[bytes | None, ...] = ()
        self.body = body
        self.status = status
        self.expected = Expected(body, status if is_ours else None)
        self.identity = Identity.of(status)
        self.text = text
        self.version = FileVersion(self.identity, body)

    @property
    def layout(self) -> bytes | None:
        """The session's layout, as it travels; worked out once."""
        if not self._layouts:
            self._layouts = (layout_with_notes(self.text),)
        return self._layouts[0]


class ImageCache:
    """The images last used, up to a total size; so that saving a session again need not parse it again."""

    def __init__(self) -> None:
        self.forget()
        forget_after_fork(self)

    def forget(self) -> None:
        """Keep nothing."""
        self._images: OrderedDict[str, SessionImage] = OrderedDict()
        self._replaced: dict[str, FileVersion] = {}
        self._size = 0
        self._lock = threading.Lock()

    def get(self, session_id: str) -> SessionImage | None:
        """The image of a session, if it is kept; that is a use of it."""
        with self._lock:
            image = self._images.get(session_id)
            if image is not None:
                self._images.move_to_end(session_id)
            return image

    def keep(self, session_id: str, image: SessionImage) -> None:
        """Keep an image in place of the one before it; the ones not used for longest make room."""
        with self._lock:
            old = self._images.get(session_id)
            self._drop(session_id)
            self._images[session_id] = image
            if old is not None and old is not image and old.version != image.version:  # else it is the same state
                # Who just replaced it may still compare its version, so it is the one before it that goes.
                if session_id in self._replaced:
                    self._replaced[session_id].supersede_unless(image.identity)
                self._replaced[session_id] = old.version
            self._size += image.body.size + OF_AN_IMAGE
            while self._size > KEPT_BYTES and len(self._images) > 1:
                oldest = next(iter(self._images))
                str(self._images[oldest].version)  # worked out now, so that whoever holds it does not hold the bytes
                self._forget(oldest)

    def drop(self, session_id: str) -> None:
        """Keep nothing of a session."""
        with self._lock:
            self._forget(session_id)

    def _forget(self, session_id: str) -> None:
        self._drop(session_id)
        if session_id in self._replaced:
            str(self._replaced.pop(session_id))  # the same: and it may be the present one

    def _drop(self, session_id: str) -> None:
        image = self._images.pop(session_id, None)
        if image is not None:
            self._size -= image.body.size + OF_AN_IMAGE
