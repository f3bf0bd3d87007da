"""List a store's sessions; print how many there are and how many files were parsed for that.

python count_parsed.py DIRECTORY
"""

from __future__ import annotations

import json
import sys
from typing import Any

from statestore import StateStore
from statestore.seedform.text import SessionText

_parse = SessionText.__init__
_parsed: list[int] = []


def _counted(text: SessionText, *arguments: Any) -> None:
    _parsed.append(1)
    _parse(text, *arguments)


if __name__ == "__main__":
    SessionText.__init__ = _counted  # type: ignore[method-assign]
    with StateStore.open(sys.argv[1]) as store:
        print(json.dumps({"listed": len(store.list_sessions()), "parsed": len(_parsed)}))
