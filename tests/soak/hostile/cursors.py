"""Hostile cursors, of listings, searches and watches, and hostile queries: any text at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from soak.hostile.mutation import TEXTS, mutated, mutated_text
from soak.hostile.trying import Tries, bounded
from soak.hostile.using import OTHERS, VICTIM, furnish
from soak.proof import Proof, Round
from statestore import StateStore, StateStoreError
from statestore.engines.fulltext import match_at
from statestore.engines.postgres.finding import Place
from statestore.engines.telling import Moment
from statestore.searching import index_text, match_expression, parse_query, snippet_of, tokens_of
from statestore.stored import Cursor

TEXTS_A_ROUND: Final = 5000
CALLS_A_ROUND: Final = 100
WORDS: Final = (
    "ferry",
    '"10 40"',
    "tool*",
    "東京都",
    "東",
    "don't",
    "Straße",
    "e\u0301\u0301",
    "\u0e01\u0e33",
    "😀",
    '"',
    "*",
    "\u00ab",
)


def _round(this: Round) -> Mapping[str, int]:
    def use(tries: Tries) -> None:
        chance = this.random("cursors")
        cursors = [Cursor(17, "an-id").text, Moment("0f", 3, 2).cursor, Place(0.5, 3, "x").cursor, _match_cursor()]
        for _ in range(TEXTS_A_ROUND):
            _parse(tries, chance, cursors)
        with StateStore.open(this.ground.target, durability="relaxed") as store:
            furnish(store)
            _use(tries, chance, store)

    return bounded(use)


def _match_cursor() -> str:
    return f"{-0.25!r}:{5 << 32 | 1}".encode().hex()


def _parse(tries: Tries, chance: Random, cursors: list[str]) -> None:
    """The parsers alone: what they take they give back as it was."""
    given = hostile_cursor(chance, cursors) if chance.random() < 0.5 else hostile_query(chance)
    tries.take(given)
    for read in (Cursor.parse, Moment.parse, match_at, Place.parse):
        found: Any = tries.attempt(lambda read=read: read(given))
        assert found is None or getattr(found, "text", None) == given or found.cursor == given, given
    terms = parse_query(given)
    assert sum(len(term.tokens) for term in terms) <= 500
    match_expression(terms).encode("utf-8", "surrogatepass")
    assert all(token and not token.isspace() for token in tokens_of(given))
    index_text(given)
    snippet = snippet_of(given, terms)
    assert all(0 <= start < end <= len(snippet.text) for start, end in snippet.marks), given


def hostile_cursor(chance: Random, cursors: list[str]) -> str:
    """A cursor after an accident: to its text, or to what is behind it."""
    good = chance.choice(cursors)
    match chance.randrange(4):
        case 0:
            return mutated_text(chance, good)
        case 1:
            return chance.choice(TEXTS)
        case 2:
            return good.upper() if chance.random() < 0.5 else " ".join(good[i : i + 2] for i in range(0, len(good), 2))
        case _:
            return mutated(chance, bytes.fromhex(good))[:5000].hex()


def hostile_query(chance: Random) -> str:
    """Words, quotes and anything else."""
    words = [chance.choice((*WORDS, *TEXTS)) for _ in range(chance.choice((1, 2, 3, 30)))]
    query = chance.choice((" ", "", "\u3000")).join(words)[:3000]
    return mutated_text(chance, query) if chance.random() < 0.5 else query


def _use(tries: Tries, chance: Random, store: StateStore) -> None:
    """A store: its own cursors, those of another user's page, of another query, of another call, and none at all."""
    hits = store.search_sessions("ferry") if _can(store.search_sessions, "ferry") else []
    now = [store.change_cursor()] if _can(store.change_cursor) else []
    cursors = [summary.cursor for summary in store.list_sessions()] + [hit.cursor for hit in hits] + now
    for _ in range(CALLS_A_ROUND):
        cursor = chance.choice(cursors) if chance.random() < 0.3 else hostile_cursor(chance, cursors)
        query = hostile_query(chance)
        tries.take((cursor, query))
        _ask(tries, store, cursor, query)
        if now and not _waits(cursor, Moment.parse(now[0])):
            notices = store.watch(after=cursor)
            tries.attempt(lambda notices=notices: next(notices))
    assert store.count_sessions() == len((VICTIM, *OTHERS))


def _ask(tries: Tries, store: StateStore, cursor: str, query: str) -> None:
    tries.attempt(lambda: store.list_sessions(after=cursor, limit=2))
    tries.attempt(lambda: store.list_sessions(after=cursor, order="id"))
    tries.attempt(lambda: store.list_sessions(user_id=query))
    tries.attempt(lambda: store.list_sessions(project_id=query, parent_session_id=query))
    tries.attempt(lambda: store.search_sessions(query, after=cursor))
    tries.attempt(lambda: store.search_sessions(query, user_id=query, project_id=query, limit=3))
    bobs = store.for_user("bob")
    seen = tries.attempt(lambda: bobs.list_sessions(after=cursor)) or []
    assert {summary.user_id for summary in seen} <= {"bob"}, cursor
    found = tries.attempt(lambda: bobs.search_sessions("ferry", after=cursor)) or []
    assert {hit.user_id for hit in found} <= {"bob"}, cursor


def _waits(cursor: str, now: Moment) -> bool:
    """Whether a watch from a cursor would wait for what comes."""
    try:
        moment = Moment.parse(cursor)
    except StateStoreError:
        return False
    return moment.identity == now.identity and moment.change >= now.change


def _can(call: Callable[..., object], *arguments: object) -> bool:
    try:
        call(*arguments)
    except StateStoreError:  # memory: has no index
        return False
    return True


FUZZ_CURSORS_QUERIES = Proof(
    name="fuzz-cursors-queries",
    promise="any text is a cursor or an error of ours, any text is a query; no cursor shows another user's sessions",
    engines=("memory", "files", "sqlite"),
    round=_round,
    goal={"inputs": 200_000},
)
