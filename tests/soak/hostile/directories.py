"""A store's directory with hostile bytes in one of its files: sessions, documents, and our own notes about them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Final

from soak.hostile.mutation import mutated, restructured
from soak.hostile.sessions import hostile_session
from soak.hostile.trying import Tries, bounded
from soak.hostile.using import OTHERS, VICTIM, changes, follows, furnish, looks
from soak.proof import Proof, Round
from statestore import Session, StateStore, UserMessage

INPUTS: Final = 30
OWN: Final = ".statestore"
_JOURNAL: Final = b"""{"steps":[{"category":"notes","name":"victim.md","before":"5-00000000","after":"4-00000000",
"temporary":"00.x"},{"category":"sessions","name":"victim.json","before":"1-0","after":"2-0","temporary":"01.x",
"change":{"id":"victim","updated":"2026-01-01T00:00:00Z","append":[{"kind":"user","body":"e30=","timestamp_ns":1}],
"set_fields":{"project_id":"p"},"set_metadata":{"k":"MQ=="}}}]}"""


def _round(this: Round) -> Mapping[str, int]:
    model = this.ground.directory / "model"
    with StateStore.open(f"file:{model}", durability="relaxed") as store:
        furnish(store)
        store.search_sessions("ferry")
        store.list_sessions()
    chance = this.random("directories")

    def use(tries: Tries) -> None:
        for number in range(INPUTS):
            place = this.ground.directory / f"try-{number}"
            shutil.copytree(model, place)
            given = _damage(chance, place)
            _use(tries, place, given)
            shutil.rmtree(place)

    return bounded(use)


def _damage(chance: Random, place: Path) -> object:
    """Put something hostile into one file of a store; what it was."""
    own = place / OWN
    match chance.randrange(8):
        case 0:
            path, body = place / "notes" / f"{VICTIM}.json", mutated(chance, b'{"a": [1, 2.5, "x"]}')
        case 1:
            path, body = place / "notes" / f"{VICTIM}.md", mutated(chance, b"# One\n")
        case 2:
            path, body = own / "journal", mutated(chance, _JOURNAL)
            if chance.random() < 0.5:
                body = restructured(chance, _JOURNAL)
        case 3 | 4:
            path = own / chance.choice(("index.db", "changes.db"))
            body = mutated(chance, path.read_bytes())
        case 5:
            (path,) = (place / OWN / "trash").glob(chance.choice(("*.json", "*.bin")))
            body = chance.choice((mutated, restructured))(chance, path.read_bytes())
        case _:
            path, body = place / "sessions" / f"{VICTIM}.json", _as_victim(hostile_session(chance))
    path.write_bytes(body)
    return path.relative_to(place), body


def _as_victim(text: bytes) -> bytes:
    """A session file under the victim's name, where its id can be found."""
    start = text.find(b'"id": "') + 7
    end = text.find(b'"', start)
    return text if start < 7 or end < 0 else text[:start] + VICTIM.encode() + text[end:]


def _use(tries: Tries, place: Path, given: object) -> None:
    tries.take(given)
    before, others = _contents(place), _others(place)
    for is_reader in (True, False):
        store = tries.attempt(
            lambda is_reader=is_reader: StateStore.open(f"file:{place}", read_only=is_reader, durability="relaxed")
        )
        if store is None:
            continue
        with store:
            for look in looks(store):
                tries.attempt(look)
            if is_reader:
                assert _contents(place) == before, f"looking changed a file: {given!r}"
                continue
            for follow in follows(store):
                tries.attempt(follow)
            _check_grows(tries, store, given)
            for change in changes(store):
                tries.attempt(change)
            tries.attempt(lambda store=store: store.check(repair=True))
    assert _others(place) == others, f"another item changed: {given!r}"


def _check_grows(tries: Tries, store: StateStore, given: object) -> None:
    """A session that can be read can be added to, and holds what it held."""
    session = tries.attempt(lambda: store.load_session(VICTIM))
    if session is None:
        return
    held = [entry.record for entry in session.timeline]
    store.append(VICTIM, UserMessage("another"))
    again = store.load_session(VICTIM)
    assert isinstance(again, Session)
    assert [entry.record for entry in again.timeline][: len(held)] == held, f"records changed: {given!r}"
    assert len(again.timeline) == len(held) + 1


def _contents(place: Path) -> dict[str, bytes]:
    """What users stored, by file."""
    return {
        str(path.relative_to(place)): path.read_bytes()
        for path in sorted(place.rglob("*"))
        if path.is_file() and OWN not in path.parts
    }


def _others(place: Path) -> dict[str, bytes]:
    names = {f"sessions/{name}.json" for name in OTHERS} | {"notes/other.json"}
    return {name: body for name, body in _contents(place).items() if name in names}


FUZZ_FILES = Proof(
    name="fuzz-files",
    promise="hostile bytes in any file of a directory are a value or an error of ours, and change no other file",
    engines=("files",),
    round=_round,
    goal={"inputs": 20_000},
)
