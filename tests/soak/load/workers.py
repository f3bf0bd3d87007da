"""What one process of the load does, call by call, and what it knows must be there."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from msgspec import Struct

from soak.load.gauges import Gauge, Window
from statestore import Event, PruneConfig, Session, SessionNotFound, StateStore, UserMessage

KEPT = 20
"""How many sessions of a user a prune spares."""
SURE = KEPT // 2
"""Of so many, those touched last, a worker knows that they are there: it deletes none of them, nor does any prune."""
LONG = 30
"""Records after which a session is rewound."""
LEDGER_LONG = 60
COUNTER = "counter"
END = "end"


def ledger_id(worker: str, number: int) -> str:
    """A session that is only appended to, and deleted as a whole when the one after the next is begun."""
    return f"ledger-{worker}-{number}"


class Known(Struct):
    """What a worker knows when it is done."""

    windows: list[Window]
    sessions: dict[str, list[str]]
    """What was said in its sessions, those that it touched last at the end."""
    ledgers: dict[str, list[str]]
    counted: int
    calls: dict[str, int]


class Worker:
    """One process's part of the load. Users are pruned by their neighbours."""

    def __init__(self, store: StateStore, name: str, neighbour: str, chance: Random, *, searches: bool) -> None:
        self._store = store
        self._name = name
        self._neighbour = neighbour
        self._chance = chance
        self._turn = 0
        self._sessions: dict[str, list[str]] = {}
        self._ledgers: dict[int, list[str]] = {}
        self._ledger = 0
        self._counted = 0
        self._calls: dict[str, int] = {}
        deeds: tuple[tuple[Callable[[], None], int], ...] = (
            *((self._append, 30), (self._append_with_key, 8), (self._save, 15), (self._load, 15), (self._list, 6)),
            *((self._create, 5), (self._fork, 3), (self._delete, 3), (self._prune, 3), (self._document, 5)),
            *((self._count, 3), (self._enter, 8), (self._watch, 2)),
        )
        if searches:
            deeds += ((self._search, 3),)
        self._deeds, self._weights = zip(*deeds, strict=True)

    def work(self, gauge: Gauge) -> Known:
        """Work until the time is over."""
        has_time = True
        while has_time:
            (deed,) = self._chance.choices(self._deeds, self._weights)
            self._turn += 1
            deed()
            name = deed.__name__.strip("_")
            self._calls[name] = self._calls.get(name, 0) + 1
            has_time = gauge.count()
        ledgers = {ledger_id(self._name, number): words for number, words in self._ledgers.items()}
        return Known(gauge.windows, self._sessions, ledgers, self._counted, self._calls)

    # -- its sessions

    def _word(self) -> str:
        return f"{self._name}w{self._turn}"

    def _some(self) -> str:
        """A session, one of the newer ones more often than not."""
        if not self._sessions:
            self._create()
        names = list(self._sessions)
        return names[-1 - int(len(names) * self._chance.random() ** 2)]

    def _touched(self, session_id: str, *words: str) -> None:
        self._sessions[session_id] = [*self._sessions.pop(session_id, []), *words]

    def _gone(self, session_id: str) -> None:
        """One that a neighbour pruned: it may not be one that was touched lately."""
        assert session_id not in list(self._sessions)[-SURE:], f"{session_id} was pruned though it was new"
        del self._sessions[session_id]

    def _append(self) -> None:
        self._append_to(self._some(), self._word())

    def _append_to(self, name: str, word: str, key: str | None = None) -> bool:
        try:
            self._store.append(name, UserMessage(word), Event("tool", word), keys=[key, None])
        except SessionNotFound:
            self._gone(name)
            return False
        self._touched(name, word)
        if len(self._sessions[name]) > LONG:
            self._rewind(name)
        return True

    def _append_with_key(self) -> None:
        name, word = self._some(), self._word()
        if self._append_to(name, word, word) and word in self._sessions[name]:
            self._store.append(name, UserMessage(word), keys=[word])

    def _rewind(self, name: str) -> None:
        session = self._store.load_session(name)
        if session is None:
            self._gone(name)
            return
        entries = session.timeline
        self._store.rewind_session(name, to=entries[9].seq or 0)
        self._sessions[name] = [entry.record.content for entry in entries[:10] if entry.kind == "user"]  # type: ignore[union-attr]

    def _save(self) -> None:
        session = self._loaded(self._some())
        if session is not None:
            word = self._word()
            session.add_user_message(word)
            session.set_metadata("last", word)
            try:
                self._store.save_session(session)
            except SessionNotFound:
                self._gone(session.id)
            else:
                self._touched(session.id, word)

    def _load(self) -> None:
        self._loaded(self._some())

    def _loaded(self, name: str) -> Session | None:
        session = self._store.load_session(name)
        if session is None:
            self._gone(name)
            return None
        assert [message.content for message in session.user_messages] == self._sessions[name]
        return session

    def _create(self) -> None:
        session, word = Session(self._name, f"{self._name}-{self._turn}"), self._word()
        session.add_user_message(word)
        self._store.save_session(session)
        self._touched(session.id, word)

    def _fork(self) -> None:
        name, new = self._some(), f"{self._name}-{self._turn}-fork"
        words = list(self._sessions[name])
        try:
            self._store.fork_session(name, new_id=new)
        except SessionNotFound:
            self._gone(name)
        else:
            self._touched(new, *words)

    def _delete(self) -> None:
        old = list(self._sessions)[:-SURE]
        if old:
            name = self._chance.choice(old)
            del self._sessions[name]
            self._store.delete_session(name)

    def _prune(self) -> None:
        self._store.for_user(self._neighbour).prune_sessions(PruneConfig(max_sessions=KEPT, ttl_hours=0))

    def _list(self) -> None:
        listed = [summary.id for summary in self._store.list_sessions(user_id=self._name, limit=SURE)]
        assert listed == list(reversed(self._sessions))[: len(listed)]

    def _search(self) -> None:
        name = next(reversed(self._sessions), None) or self._some()
        word = self._sessions[name][-1]
        assert any(hit.session_id == name for hit in self._store.search_sessions(word, user_id=self._name))

    # -- what is its own alone, or everybody's

    def _watch(self) -> None:
        """See one's own next word come by."""
        cursor = self._store.change_cursor()
        self._enter()
        for notice in self._store.watch(ledger_id(self._name, self._ledger), after=cursor):
            if isinstance(notice.record, UserMessage):
                assert notice.record.content == self._word()
                return

    def _enter(self) -> None:
        """Write into the ledger, and begin another one when it is full."""
        if len(self._ledgers.get(self._ledger, ())) >= LEDGER_LONG or not self._ledgers:
            self._ledger += 1
            self._store.save_session(Session(f"{self._name}.ledger", ledger_id(self._name, self._ledger)))
            self._ledgers[self._ledger] = []
            if self._ledgers.pop(self._ledger - 2, None) is not None:
                self._store.delete_session(ledger_id(self._name, self._ledger - 2))
        self._store.append(ledger_id(self._name, self._ledger), UserMessage(self._word()))
        self._ledgers[self._ledger].append(self._word())

    def _count(self) -> None:
        def count_one(session: Session) -> None:
            session.set_metadata("count", (session.get_metadata("count") or 0) + 1)

        self._store.update_session_with(COUNTER, count_one)
        self._counted += 1

    def _document(self) -> None:
        name, value = f"n{self._chance.randrange(20)}", {"turn": self._turn, "text": "x" * self._chance.randrange(2000)}
        self._store.save_json(f"{self._name}-notes", name, value)
        found: Any = self._store.load_json(f"{self._name}-notes", name)
        assert found == value
