"""Hostile imports: exports after an accident, in the two forms that can be imported, and in those that cannot."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from random import Random
from typing import Final

from soak.hostile.mutation import mutated, restructured
from soak.hostile.trying import Tries, bounded
from soak.hostile.using import OTHERS, VICTIM, furnish
from soak.proof import Proof, Round
from statestore import StateStore
from statestore.exchange import FORMATS, export_sessions, import_sessions
from statestore.exchange.parsing import sessions_in_document, sessions_in_lines

TEXTS_A_ROUND: Final = 1500
IMPORTS_A_ROUND: Final = 60


def _round(this: Round) -> Mapping[str, int]:
    def use(tries: Tries) -> None:
        chance = this.random("imports")
        with StateStore.open(this.ground.target, durability="relaxed") as store:
            furnish(store)
            exports = [b"".join(export_sessions(store, format=format)) for format in FORMATS]
            exports += [b"".join(export_sessions(store, [VICTIM], format=format)) for format in ("jsonl", "json")]
            for _ in range(TEXTS_A_ROUND):
                given = _hostile_export(chance, exports)
                tries.take(given)
                tries.attempt(lambda given=given: [*sessions_in_lines(given.splitlines(keepends=True), "x")])
                tries.attempt(lambda given=given: [*sessions_in_document(given, "x")])
            before = b"".join(export_sessions(store, OTHERS))
            for _ in range(IMPORTS_A_ROUND):
                _import(tries, store, _hostile_export(chance, exports))
            assert b"".join(export_sessions(store, OTHERS)) == before

    return bounded(use)


def _hostile_export(chance: Random, exports: list[bytes]) -> bytes:
    """An export in which the victim has another name, after an accident."""
    good = chance.choice((*exports, *exports[-2:] * 3)).replace(VICTIM.encode(), f"new-{chance.randrange(50)}".encode())
    if chance.random() < 0.6:
        lines = good.splitlines(keepends=True)
        place = chance.randrange(len(lines))
        lines[place] = restructured(chance, lines[place]).replace(b"\n", b" ") + b"\n"
        good = b"".join(lines)
    return good if chance.random() < 0.4 else mutated(chance, good, exports)


def _import(tries: Tries, store: StateStore, given: bytes) -> None:
    """Into a store: what is imported is exported as it is, and may be imported again."""
    tries.take(given)
    there = {summary.id for summary in store.list_sessions()}
    landed = tries.attempt(lambda: [*import_sessions(store, BytesIO(given))]) or []
    new = sorted({summary.id for summary in store.list_sessions()} - there)
    assert len(new) >= sum(fate.fate == "imported" for fate in landed), given
    for session_id in new:
        tries.attempt(lambda session_id=session_id: store.load_session(session_id), ())
        again = b"".join(export_sessions(store, [session_id]))
        (fate,) = import_sessions(store, BytesIO(again))
        assert fate.fate == "skipped", (fate, given)
        for format in FORMATS:
            b"".join(export_sessions(store, [session_id], format=format)).decode()
        store.delete_session(session_id)


FUZZ_IMPORTS = Proof(
    name="fuzz-imports",
    promise="any text is imported, refused or no export; what is imported can be loaded, and is exported as it is",
    engines=("memory", "files", "sqlite"),
    round=_round,
    goal={"inputs": 100_000},
)
