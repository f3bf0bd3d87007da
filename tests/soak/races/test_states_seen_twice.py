"""On files, a state that a reader saw before its writer had noted it is one state, not two."""

from __future__ import annotations

import os
from pathlib import Path

from statestore.engines.files.image import ImageCache, SessionImage, version_text
from statestore.seedform.pieces import Pieces
from statestore.seedform.text import SessionText

SESSION = b'{"id": "s", "user_id": "ann", "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"}'


def _image(path: Path, more: bytes) -> SessionImage:
    path.write_bytes(SESSION + more)
    return SessionImage(Pieces.of(SESSION + more), os.stat(path), SessionText(SESSION))


def test_who_replaced_a_state_can_compare_its_version_though_a_reader_was_faster(tmp_path: Path) -> None:
    images = ImageCache()
    before, now = _image(tmp_path / "before", b""), _image(tmp_path / "now", b" ")
    images.keep("s", before)
    images.keep("s", SessionImage(now.body, now.status, now.text))  # by a reader
    images.keep("s", now)  # by the writer, who goes on to compare
    assert str(before.version) == version_text(before.identity, before.body.crc32())
