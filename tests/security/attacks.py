"""Everything that Alice's code could pass to a method of her store to get at what is Bob's.

The methods and their parameters are found by looking: a new one is attacked, too, or is told to be missing here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import product
from typing import Any

from statestore import Event, NotSupported, PruneConfig, Session, StateStore, UserMessage, UserStore

SECRET = "bobs0wn"
"""It is in everything of Bob's but in the ids that Alice guesses."""
BOBS, THROWN, MINE = "b1", "thrown away", "a1"
MOST = 40
"""How many combinations of one method are tried."""


class Shifty(Session):
    """Belongs to Alice when it is looked at first, and to Bob from then on."""

    @property
    def user_id(self) -> str:
        self.set_metadata("looks", (self.get_metadata("looks") or 0) + 1)
        return "alice" if self.get_metadata("looks") == 1 else "bob"


def furnish(store: StateStore) -> None:
    """Sessions of both, one of Bob's in the trash, and a child of his session that is Alice's."""
    for user, session_id, word in (("bob", BOBS, SECRET), ("bob", THROWN, SECRET), ("alice", MINE, "mine")):
        session = Session(user, session_id)
        session.add_user_message(f"{word} message", key=f"{word}-key")
        session.add_event(f"{word}-kind", {word: word})
        session.add_agent_response(f"{word} answer")
        session.set_metadata("title", f"{word} title")
        session.set_metadata(word, word)
        session.project_id = f"{word}-project"
        store.save_session(session)
    store.delete_session(THROWN, trash_hours=1)
    child = Session("alice", "a2")
    child.parent_session_id = BOBS
    store.save_session(child)


@dataclass
class Attacker:
    """Alice's code, which has laid hands on what the whole store, or Bob's, gave out."""

    whole: StateStore
    cursors: list[str | None] = field(default_factory=lambda: [None])

    def __post_init__(self) -> None:
        bobs = self.whole.for_user("bob")
        self.cursors += [summary.cursor for store in (self.whole, bobs) for summary in store.list_sessions()]
        with suppress(NotSupported):
            self.cursors += [hit.cursor for hit in (*bobs.search_sessions(SECRET), *self.whole.search_sessions("mine"))]
        with suppress(NotSupported):
            self.cursors.append(self.whole.change_cursor())

    def values(self, parameter: str) -> list[Any]:
        """What to pass as a parameter of this name; the first is harmless. Sessions are to be made by a call."""
        known: dict[str, Callable[[], list[Any]]] = {
            "session_id": lambda: [MINE, BOBS, THROWN],
            "new_id": lambda: [None, BOBS, THROWN],
            "user_id": lambda: [None, "alice", "bob", "", "alice' OR '1'='1", "%", "*"],
            "parent_session_id": lambda: [None, BOBS, THROWN],
            "project_id": lambda: [None, f"{SECRET}-project"],
            "session": lambda: [
                lambda: self.whole.load_session(MINE),
                self._stolen,
                self._stolen_part,
                lambda: Session("alice", BOBS),
                lambda: Session("alice", THROWN),
                lambda: Session("bob", "b9"),
                lambda: Shifty("alice", BOBS),
            ],
            "query": lambda: list(QUERIES),
            "after": lambda: [*self.cursors, "0" * 40],
            "change": lambda: [lambda session: session.set_metadata("x", 1), _become_bob],
            "records": lambda: [UserMessage("more"), Event("x", 1)],
            "keys": lambda: [None, [f"{SECRET}-key"]],
            "config": lambda: [None, PruneConfig(max_sessions=1, ttl_hours=0), PruneConfig(max_sessions_per_user=1)],
            "order": lambda: ["updated", "id"],
            "updated_since": lambda: [None, datetime(1970, 1, 1, tzinfo=UTC)],
            "type": lambda: [dict],
        }
        known["prune_config"] = known["config"]
        known |= dict.fromkeys(("last", "limit"), lambda: [50, 0, 2**70])
        known |= dict.fromkeys(("at", "to", "before"), lambda: [2**40, 0, 1])
        known |= dict.fromkeys(("recreate", "top_level", "dry_run"), lambda: [False, True])
        known |= {"trash_hours": lambda: [0, 1]}
        assert parameter in known, f"say what to attack a parameter {parameter!r} with"
        return known[parameter]()

    def _stolen(self) -> Session:
        """Bob's session, as the whole store loaded it."""
        stolen = self.whole.load_session(BOBS)
        assert stolen is not None
        stolen.add_user_message("by alice")
        return stolen

    def _stolen_part(self) -> Session:
        """A part of it, as Bob's own store loaded it."""
        part = self.whole.for_user("bob").load_session(BOBS, last=1)
        assert part is not None
        part.set_metadata("title", "by alice")
        return part

    def attempts(self, method: str) -> Iterator[Callable[[UserStore], Any]]:
        """Calls of a method with all that there is to pass, as far as they are not too many."""
        signature = inspect.signature(getattr(UserStore, method))
        names = [name for name in signature.parameters if name != "self"]
        kinds = [signature.parameters[name].kind for name in names]
        values = {name: self.values(name) for name in names}
        for chosen in _some(list(product(*(range(len(values[name])) for name in names)))):
            given = {name: values[name][place] for name, place in zip(names, chosen, strict=True)}
            if "session" in given:  # a fresh one for each attempt
                given["session"] = given["session"]()
            positional = [
                given.pop(name)
                for name, kind in zip(names, kinds, strict=True)
                if kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
            ]
            yield lambda store, positional=positional, given=given: getattr(store, method)(*positional, **given)


def _some(combinations: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """All, or those that differ from the harmless one in the fewest parameters."""
    return sorted(combinations, key=lambda chosen: sum(place > 0 for place in chosen))[:MOST]


def _become_bob(session: Session) -> None:
    """What an update might try: Python lets it, and the store must not."""
    session._user_id = "bob"
    session.set_metadata("title", "by alice")


QUERIES = (
    SECRET,
    f"{SECRET}*",
    f'"{SECRET} message"',
    f"text:{SECRET}",
    f"{{text}} : {SECRET}",
    f"user_id:bob OR {SECRET}",
    f"nothing OR {SECRET}",
    f'x" OR "{SECRET}',
    f"NEAR({SECRET} message, 5)",
    f"^{SECRET} + message",
    f"-mine {SECRET}",
    f"{SECRET}:* | x & !y <-> z",
    f"' OR 1=1 -- {SECRET}",
    "*",
    '"',
    "\0",
)


def methods() -> list[str]:
    """All public methods of a user's store."""
    return sorted(name for name, _ in inspect.getmembers(UserStore, inspect.isfunction) if not name.startswith("_"))
