"""Makes ``tests/data/golden_v1.db``: a database of schema 1 as the release wrote it that introduced it.

    PYTHONPATH=src python tests/sqlite/make_golden.py [PATH]

The file in the repository is never made anew once that schema is released: it stands for those that users have. What is
in it is told here once, by `CHANGES`, and the test compares.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from statestore import StateStore
from statestore.engine import (
    Change,
    ChangeSession,
    DeleteSession,
    NewRecord,
    NewSession,
    PutDocument,
)
from statestore.engines.files import FilesEngine
from statestore.engines.sqlite import SqliteEngine
from statestore.host import step
from statestore.jsontext import members
from statestore.stored import StoredSession

DATA = Path(__file__).parent.parent / "data"
GOLDEN = DATA / "golden_v1.db"
FILES = DATA / "golden"
BORN = "2026-01-31T12:00:00.000000001Z"


def _user(content: str, moment: str, more: str = "") -> bytes:
    return f'{{"content":"{content}","timestamp":"{moment}"{more}}}'.encode()


def _event(kind: str, data: str, moment: str) -> bytes:
    return f'{{"kind":"{kind}","data":{data},"timestamp":"{moment}"}}'.encode()


FULL = ChangeSession(
    "full",
    "2026-01-31T12:00:09.123456789Z",
    create=NewSession("ユーザー-1", BORN),
    append=(
        NewRecord("user", _user("Which ferry arrives before noon?", "2026-01-31T12:00:01Z"), 0, key="request-1"),
        NewRecord("tool_call", _event("tool_call", '{"name":"timetable","z":1,"a":2}', "2026-01-31T12:00:02.5Z"), 0),
        NewRecord(
            "agent",
            b'{"content":"The 10:40. \\ud83e\\udd80 \xf0\x9f\xa6\x80","session_id":"full","seed_id":"seed-a",'
            b'"phase_reached":"evaluate","evaluation_passed":true,"timestamp":"2026-01-31T12:00:03.000000005Z"}',
            0,
            key="answer-1",
        ),
        NewRecord("user", _user("", "2026-01-31T12:00:04+02:00", ',"attachments":[{"name":"a.png"}]'), 0),
        NewRecord("thought", _event("thought", "null", "2026-01-31T12:00:05Z"), 0, key="ключ"),
    ),
    set_fields={
        "active_seed_id": "seed-a",
        "active_persona_id": "persona-π",
        "project_id": "project-7",
        "parent_session_id": "empty",
        "title": "A day on the island",
        "project": "other",
        "projects": "first",
        "opening": "Which ferry arrives before noon?",
    },
    set_metadata={
        "title": b'"A day on the island"',
        "project_id": b'"other"',
        "project_ids": b'["first","second"]',
        "numbers": b"[0, -1, 1.5, 1e16, 18446744073709551615, -0.0]",
        "nested": b'{"a": {"b": [true, false, null]}, "\xe3\x82\xad": ""}',
    },
)
EMPTY = ChangeSession("empty", BORN, create=NewSession("bob", BORN))
GAPS = ChangeSession(
    "gaps",
    BORN,
    create=NewSession("bob", BORN, next_seq=20),
    append=tuple(NewRecord("user", _user(f"number {seq}", BORN), 0, seq=seq) for seq in (2, 5, 9)),
    set_fields={"opening": "number 2"},
)
REWOUND = (
    ChangeSession(
        "rewound",
        BORN,
        create=NewSession("bob", BORN),
        append=tuple(NewRecord("user", _user(f"turn {turn}", BORN), 0, key=f"key-{turn}") for turn in range(1, 7)),
        set_fields={"opening": "turn 1"},
    ),
    ChangeSession("rewound", "2026-02-01T00:00:00Z", truncate_after=3),
    ChangeSession(
        "rewound", "2026-02-02T00:00:00Z", append=(NewRecord("user", _user("turn 7", BORN), 0, key="key-7"),)
    ),
)
DOCUMENTS = (
    PutDocument("notes", "today", "md", "# Today – ünïcode\n".encode()),
    PutDocument("notes", "empty", "md", b""),
    PutDocument("projects/alpha", "plan", "json", b'{"steps": 3, "z": 1, "a": [1e5]}'),
    PutDocument("projects/alpha", "plan", "md", b"the plan"),
    PutDocument("images", "logo", "bin", bytes(range(256)) * 20),
)


def copied_sessions() -> list[StoredSession]:
    """The sessions that the Rust program wrote, unknown fields and all; one that is merely long is left out."""
    engine = FilesEngine(str(FILES), read_only=True)
    step(engine.open())
    paths = sorted(path for path in (FILES / "sessions").iterdir() if path.stat().st_size < 100_000)
    found = [step(engine.read_session(path.stem)) for path in paths]
    step(engine.close())
    return [stored for stored in found if stored is not None]


def _copy_of(stored: StoredSession) -> ChangeSession:
    fields = stored.fields
    names = ("active_seed_id", "active_persona_id", "project_id", "parent_session_id")
    return ChangeSession(
        stored.id,
        fields.updated,
        create=NewSession(fields.user_id, fields.created, stored.layout, stored.next_seq),
        append=tuple(
            NewRecord(record.kind, record.body, 0, record.key, record.seq) for record in stored.records.in_order()
        ),
        set_fields={name: getattr(fields, name) for name in names if getattr(fields, name) is not None},
        set_metadata=members(stored.metadata),
    )


def changes() -> Iterable[list[Change]]:
    """Everything that happens, batch by batch."""
    yield [FULL]
    yield [ChangeSession("deleted", BORN, create=NewSession("bob", BORN), set_metadata={"a": b"1"})]
    yield [EMPTY, GAPS]
    for change in REWOUND:
        yield [change]
    yield [DeleteSession("deleted")]
    yield list(DOCUMENTS)


def main(path: Path) -> None:
    if path.exists():
        sys.exit(f"{path} exists")
    engine = SqliteEngine(path)
    step(engine.open())
    for batch in changes():
        step(engine.commit(batch))
    step(engine.close())
    with StateStore.open(path) as store:
        assert store.search_sessions("ferry")
    engine = SqliteEngine(path)
    step(engine.open())
    for stored in copied_sessions():  # which are not in the index of words yet
        step(engine.commit([_copy_of(stored)]))
    step(engine.close())
    for suffix in ("-gate", "-turn"):
        os.unlink(f"{path}{suffix}")
    os.chmod(path, 0o644)
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else GOLDEN)
