"""Makes the golden stores of a release, one for each engine, and the words that describe them.

    PYTHONPATH=src:tests python tests/compat/make_golden.py VERSION

Those of a release that is out are never made anew: they stand for the stores that users have. A release with another
schema gets a directory of its own. Update ``tests/data/SHA256SUMS`` afterwards: ``cd tests/data`` and
``find golden golden_v1.db odd stores -type f | LC_ALL=C sort | xargs -d '\\n' sha256sum >SHA256SUMS``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from compat.contents import fill, standing_clock
from compat.described import described, found_words, told_since
from compat.dumps import ENGINES, dump
from soak.grounds import fresh
from statestore import StateStore, copy_store

STORES = Path(__file__).parent.parent / "data" / "stores"


def main(version: str) -> None:
    directory = STORES / version
    if directory.exists():
        sys.exit(f"{directory} exists: what a release wrote is not made anew")
    directory.mkdir(parents=True)
    told: dict[str, Any] = {}
    own: dict[str, Any] = {}
    for engine in ENGINES:
        with fresh(engine) as ground:
            with standing_clock() as clock, StateStore.open(ground.target) as store:
                cursor = fill(store, clock)
                now = described(store)
            assert told.setdefault("store", now) == now, f"{engine} differs from the engines before it"
            # Before anybody searches or watches again: what was written last is not in the indexes.
            dump(ground, directory)
            with StateStore.open(ground.target) as store:
                own[engine] = {"digest of a copy": copy_store(store, "memory:").digest}
                words = found_words(store)
                assert words is None or told.setdefault("words", words) == words
                if cursor is not None:
                    own[engine]["cursor"] = cursor
                    since = told_since(store, cursor)
                    assert told.setdefault("since the cursor", since) == since
    (directory / "described.json").write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")
    (directory / "engines.json").write_text(json.dumps(own, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
