"""Hostile session files: read by the thousand as bytes."""

from __future__ import annotations

from collections.abc import Mapping

from soak.hostile.sessions import NO_SESSION, check_stays_the_same, hostile_session
from soak.hostile.trying import Tries, bounded
from soak.proof import Proof, Round
from statestore.seedform.text import SessionText

TEXTS = 3000


def _round(this: Round) -> Mapping[str, int]:
    chance = this.random("texts")

    def read_texts(tries: Tries) -> None:
        for _ in range(TEXTS):
            given = hostile_session(chance)
            tries.take(given)
            text = tries.attempt(lambda given=given: SessionText(given), NO_SESSION)
            if text is not None:
                tries.attempt(lambda text=text: check_stays_the_same(text), ())

    return bounded(read_texts)


FUZZ_SESSION_TEXTS = Proof(
    name="fuzz-session-texts",
    promise="any bytes are a session or an error of ours; a session is the same after it was written and moved",
    engines=("files",),
    round=_round,
    goal={"inputs": 500_000},
)
