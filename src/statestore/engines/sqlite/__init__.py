"""``sqlite:FILE`` - the embedded default: one file, many processes, and a cost that follows the work.

``connecting`` opens the file and says what is wrong with it, ``turns`` lets processes write one after the other,
``gathering`` makes one transaction of all that waits, ``writing`` is what happens in it, ``reading`` and ``listing``
answer from connections of their own.
"""

from __future__ import annotations

from statestore.engines.sqlite.engine import SqliteEngine
from statestore.engines.sqlite.url import open_file, open_url

__all__ = ["SqliteEngine", "open_file", "open_url"]
