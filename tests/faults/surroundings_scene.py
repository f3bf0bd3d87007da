"""Writes and reads one and the same, in whatever time zone and locale this interpreter runs; tells what came of it.

python surroundings_scene.py DIRECTORY [ZONE …]: the zones are set in mid-run, one after the other.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from pathlib import Path

from faults.clock import wall_clock
from statestore import AgentResponse, Session, StateStore, StoreUnavailable
from statestore.exchange import export_sessions

USER, ID, CATEGORY, NAME = "alïce", "東京-İ", "nötes", "İstanbul ı"
TEXT = "Grüße aus 東京 \U0001f600 İıIi"


def digest(directory: Path) -> str:
    """Of all files and names below a directory, but for the store's own corner."""
    found = hashlib.sha256()
    for root, directories, files in os.walk(os.fsencode(directory)):
        directories[:] = sorted(name for name in directories if name != b".statestore")
        for name in sorted(files):
            found.update(os.path.join(os.path.relpath(root, os.fsencode(directory)), name) + b"\0")
            found.update(Path(os.fsdecode(os.path.join(root, name))).read_bytes())
    return found.hexdigest()


def written(target: str, zones: list[str]) -> str:
    """Write something to a store, setting the time zone in between; what an export tells of it."""
    session = Session(USER, ID)
    with StateStore.open(target) as store:
        for turn in range(3):
            if zones:
                os.environ["TZ"] = zones[turn % len(zones)]
                time.tzset()
            session.add_user_message(f"{TEXT} {turn}")
            session.add_agent_response(AgentResponse(TEXT))
            session.add_event("tool", {"ı": TEXT})
            session.set_metadata("title", TEXT)
            store.save_session(session)
        store.save_markdown(CATEGORY, NAME, TEXT)
        store.save_json(CATEGORY, NAME, {TEXT: [TEXT]})
        assert [summary.id for summary in store.list_sessions()] == [ID]
        assert store.list_category(CATEGORY) == [NAME]
        assert store.load_markdown(CATEGORY, NAME) == TEXT
        assert len(store.search_sessions("東京")) > 0
        assert store.check() == []
        texts = [b"".join(export_sessions(store, format=form)) for form in ("jsonl", "markdown", "html")]
        return hashlib.sha256(b"".join(texts)).hexdigest()


def main(place: Path, zones: list[str]) -> None:
    told: dict[str, str] = {"encoding": sys.getfilesystemencoding()}
    with wall_clock() as clock:
        clock.freeze_at("2026-03-29T01:30:00Z")
        told["sqlite"] = written(f"sqlite:{place / 'state.db'}", zones)
        try:
            told["files"] = written(f"file:{place / 'state'}", zones)
            told["bytes"] = digest(place / "state")
        except StoreUnavailable as error:
            told["refused"] = str(error)
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
