"""Files that are often mistaken for an export, known by how they begin."""

from __future__ import annotations

from typing import Final

from statestore.errors import InvalidValue

_UTF_16: Final = "it is UTF-16: save it as UTF-8, without a byte order mark"
_COMPRESSED: Final = "it is compressed: unpack it first, and import what comes out"
_FOREIGN: Final = {
    b"\xef\xbb\xbf": "it begins with a byte order mark: save it as UTF-8 without one",
    b"\xff\xfe": _UTF_16,
    b"\xfe\xff": _UTF_16,
    b"\x1f\x8b": f"{_COMPRESSED} (gunzip -c FILE | statestore import -)",
    b"\x28\xb5\x2f\xfd": f"{_COMPRESSED} (zstd -dc FILE | statestore import -)",
    b"\xfd7zXZ": f"{_COMPRESSED} (xz -dc FILE | statestore import -)",
    b"BZh": f"{_COMPRESSED} (bzip2 -dc FILE | statestore import -)",
    b"PK\x03\x04": f"{_COMPRESSED} (unzip -p FILE | statestore import -)",
    b"SQLite format 3\0": "it is a database: statestore copy FILE TARGET copies one that is a store",
}
"""How they begin, and what to do with them."""


def check_is_not_foreign(beginning: bytes) -> None:
    """Raise `InvalidValue`, which says what this is the beginning of, if that is known and no export."""
    for mark, reason in _FOREIGN.items():
        if beginning.startswith(mark):
            raise InvalidValue(reason)
