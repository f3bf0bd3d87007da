"""What strands do: all that can be done to a store, each with what the store must hold when it is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations
from random import Random
from typing import Any

from soak.kills.pictures import SHARED, SPREAD, SPREAD_DOCUMENT, Kept, Picture, Said, category_of
from statestore import AgentResponse, Event, PruneConfig, Session, StateStore, UserMessage

LETTERS = "abcde"
MANY = 4
"""How many sessions a strand has before it is time to prune."""
LONG = 12
"""How many records a session has before it is time to rewind."""


@dataclass
class Deed:
    """Something to do, and what is there afterwards."""

    act: Callable[[Any], Any]
    """Takes a store; of an asynchronous one, what it returns is to be awaited."""
    makes: Picture
    expects: Callable[[Any], bool] = lambda _: True
    """Whether what was returned is what ought to be."""
    between: list[Picture] = field(default_factory=list[Picture])
    """What may be there if it was interrupted, on an engine where it takes several batches."""
    repeats: bool = False
    """Whether doing it again changes nothing."""


@dataclass(frozen=True)
class Situation:
    """A strand at one of its deeds."""

    strand: str
    position: int
    picture: Picture
    chance: Random
    is_atomic: bool
    """Whether a batch may hold several items."""

    @property
    def word(self) -> str:
        """What is said now, and never before or after."""
        return f"{self.strand}w{self.position}"

    def text(self) -> str:
        """The word, with more or less behind it."""
        return f"{self.word} {'x' * int(10 ** self.chance.uniform(0, 4.3))}"

    def some_session(self) -> str | None:
        return self.chance.choice(sorted(self.picture.sessions)) if self.picture.sessions else None

    def free_id(self) -> str | None:
        taken = {*self.picture.sessions, *self.picture.trash}
        return next((name for letter in LETTERS if (name := f"{self.strand}-{letter}") not in taken), None)

    def changed(self, session_id: str) -> tuple[Picture, Kept]:
        """A copy of the picture, and in it a session that this deed changes."""
        after = self.picture.copy()
        after.sessions[session_id].touched = self.position
        return after, after.sessions[session_id]


def create(now: Situation) -> Deed | None:
    name = now.free_id()
    if name is None or len(now.picture.sessions) >= MANY:
        return None
    session = Session(now.strand, name)
    text = now.text()
    session.add_user_message(text)
    after = now.picture.copy()
    after.sessions[name] = kept = Kept(touched=now.position)
    kept.add("user", text)
    return Deed(lambda store: store.save_session(session), after)


def append(now: Situation) -> Deed | None:
    name = now.some_session()
    if name is None:
        return None
    text = now.text()
    after, kept = now.changed(name)
    seqs = [kept.add("user", text)]
    return Deed(lambda store: store.append(name, UserMessage(text)), after, lambda told: told == seqs)


def append_with_keys(now: Situation) -> Deed | None:
    name = now.some_session()
    if name is None:
        return None
    text = now.text()
    after, kept = now.changed(name)
    seqs = [kept.add("agent", text), kept.add("tool", now.word)]
    records, keys = (AgentResponse(text), Event("tool", now.word)), [now.word, f"{now.word}-tool"]
    return Deed(lambda store: store.append(name, *records, keys=keys), after, lambda told: told == seqs, repeats=True)


def update(now: Situation) -> Deed | None:
    name = now.some_session()
    if name is None:
        return None
    text = now.text()
    after, kept = now.changed(name)
    kept.add("user", text)
    kept.add("agent", now.word)
    kept.metadata["last"] = now.word
    kept.seed = now.word

    def change(session: Session) -> None:
        session.add_user_message(text)
        session.add_agent_response(now.word)
        session.set_metadata("last", now.word)
        session.set_active_seed(now.word)

    return Deed(lambda store: store.update_session_with(name, change), after)


def save(now: Situation) -> Deed | None:
    name = now.some_session()
    if name is None:
        return None
    text = now.text()
    after, kept = now.changed(name)
    kept.add("user", text)
    kept.metadata["saved"] = now.position

    def load_and_save(store: StateStore) -> None:
        session = store.load_session(name)
        assert session is not None
        session.add_user_message(text)
        session.set_metadata("saved", now.position)
        store.save_session(session)

    return Deed(load_and_save, after)


def rewrite(now: Situation) -> Deed | None:
    name = now.some_session()
    users = [said for said in now.picture.sessions[name].records if said.kind == "user"] if name else []
    if name is None or not users:
        return None
    place = now.chance.randrange(len(users))
    after, kept = now.changed(name)
    cut = users[place].seq
    again = [said for said in kept.records if said.seq >= cut]
    kept.records = [said for said in kept.records if said.seq < cut]
    for said in again:
        kept.add(said.kind, now.word if said.seq == cut else said.text)

    def change(session: Session) -> None:
        session.user_messages[place] = UserMessage(now.word)

    return Deed(lambda store: store.update_session_with(name, change), after)


def rewind(now: Situation) -> Deed | None:
    name = now.some_session()
    if name is None or not now.picture.sessions[name].records:
        return None
    after, kept = now.changed(name)
    to = now.chance.choice(kept.records[:-1]).seq if len(kept.records) > 1 else 0
    gone = [said.seq for said in kept.records if said.seq > to]
    kept.records = [said for said in kept.records if said.seq <= to]
    return Deed(
        lambda store: store.rewind_session(name, to=to), after, lambda told: [entry.seq for entry in told] == gone
    )


def fork(now: Situation) -> Deed | None:
    name, new = now.some_session(), now.free_id()
    if name is None or new is None or len(now.picture.sessions) >= MANY:
        return None
    original = now.picture.sessions[name]
    at = now.chance.choice([said.seq for said in original.records] or [0])
    records = [said for said in original.records if said.seq <= at]
    after = now.picture.copy()
    after.sessions[new] = Kept(
        records, records[-1].seq + 1 if records else 1, now.position, dict(original.metadata), original.seed, name
    )
    return Deed(lambda store: store.fork_session(name, at=at, new_id=new), after)


def delete(now: Situation) -> Deed | None:
    name = now.some_session()
    if name is None:
        return None
    after = now.picture.copy()
    del after.sessions[name]
    return Deed(lambda store: store.delete_session(name), after, bool)


def throw_away(now: Situation) -> Deed | None:
    name = now.some_session()
    if name is None or now.picture.trash:
        return None
    after = now.picture.copy()
    after.trash[name] = after.sessions.pop(name)
    return Deed(lambda store: store.delete_session(name, trash_hours=1), after, bool, _in_both_places(now, after, name))


def restore(now: Situation) -> Deed | None:
    if not now.picture.trash:
        return None
    (name,) = now.picture.trash
    after = now.picture.copy()
    after.sessions[name] = after.trash.pop(name).copy()
    return Deed(lambda store: store.restore_session(name), after, between=_in_both_places(now, after, name))


def _in_both_places(now: Situation, after: Picture, name: str) -> list[Picture]:
    if now.is_atomic:
        return []
    both = after.copy()
    both.trash[name] = both.sessions[name] = (now.picture.sessions | now.picture.trash)[name]
    return [both]


def prune(now: Situation) -> Deed | None:
    sessions = now.picture.sessions
    if len(sessions) < MANY:
        return None
    after = now.picture.copy()
    doomed = sorted(sessions, key=lambda name: -sessions[name].touched)[2:]
    for name in doomed:
        del after.sessions[name]
    config = PruneConfig(max_sessions=2, ttl_hours=0)
    deed = Deed(
        lambda store: store.for_user(now.strand).prune_sessions(config), after, lambda told: told == len(doomed)
    )
    if not now.is_atomic:
        for count in range(1, len(doomed)):  # one by one, in any order
            for some in combinations(doomed, count):
                partly = now.picture.copy()
                for name in some:
                    del partly.sessions[name]
                deed.between.append(partly)
    return deed


def put_document(now: Situation) -> Deed:
    name, kind = f"n{now.chance.randrange(3)}", now.chance.choice(("json", "md", "bin"))
    category, text = category_of(now.strand), now.text()
    after = now.picture.copy()
    match kind:
        case "json":
            after.documents[name, kind] = {"text": text}
            return Deed(lambda store: store.save_json(category, name, {"text": text}), after)
        case "md":
            after.documents[name, kind] = text
            return Deed(lambda store: store.save_markdown(category, name, text), after)
        case _:
            after.documents[name, kind] = text.encode()
            return Deed(lambda store: store.save_bytes(category, name, text.encode()), after)


def delete_document(now: Situation) -> Deed | None:
    if not now.picture.documents:
        return None
    name, kind = now.chance.choice(sorted(now.picture.documents))
    after = now.picture.copy()
    del after.documents[name, kind]
    return Deed(lambda store: store.delete_file(category_of(now.strand), name, kind=kind), after, bool)


def delete_category(now: Situation) -> Deed | None:
    count = len(now.picture.documents)
    after = now.picture.copy()
    after.documents.clear()
    return Deed(lambda store: store.delete_category(category_of(now.strand)), after, lambda told: told == count)


def share(now: Situation) -> Deed:
    after = now.picture.copy()
    after.shared.append(now.word)
    return Deed(lambda store: store.append(SHARED, UserMessage(now.word), keys=[now.word]), after, repeats=True)


def spread(now: Situation) -> Deed:
    """One batch over sessions and a document that others write, too."""
    after = now.picture.copy()
    after.spread.append(now.word)

    def load_and_save(store: StateStore) -> None:
        with store.batch() as batch:
            for name in SPREAD:
                session = store.load_session(name)
                assert session is not None
                session.add_user_message(now.word)
                batch.save_session(session)
            batch.save_markdown(*SPREAD_DOCUMENT, now.word)

    return Deed(load_and_save, after)


def batch_own(now: Situation) -> Deed | None:
    """One batch that creates, changes and deletes sessions and documents."""
    new, names = now.free_id(), sorted(now.picture.sessions)
    if new is None or len(names) < 2:
        return None
    first, doomed = now.chance.sample(names, 2)
    text = now.text()
    after, kept = now.changed(first)
    kept.add("user", text)
    kept.add("tool", now.word)
    del after.sessions[doomed]
    after.sessions[new] = Kept([Said(1, "user", text)], 2, now.position + 0.5)  # said later, in the same deed
    gone = next(iter(sorted(after.documents)), None)
    if gone is not None:
        del after.documents[gone]
    after.documents["batch", "json"] = now.word
    after.documents["batch", "bin"] = text.encode()
    category = category_of(now.strand)

    def commit(store: StateStore) -> None:
        session = store.load_session(first)
        assert session is not None
        session.add_user_message(text)
        session.add_event("tool", now.word)
        created = Session(now.strand, new)
        created.add_user_message(text)
        with store.batch() as batch:
            batch.save_session(session)
            batch.save_session(created)
            batch.delete_session(doomed)
            batch.save_json(category, "batch", now.word)
            batch.save_bytes(category, "batch", text.encode())
            if gone is not None and gone[0] != "batch":
                batch.delete_file(category, gone[0], kind=gone[1])  # type: ignore[arg-type]

    return Deed(commit, after)


def search(now: Situation) -> Deed | None:
    """Look for something that was said, wherever it was said or copied to since."""
    spoken = [said.text.split()[0] for kept in now.picture.sessions.values() for said in kept.records]
    if not spoken:
        return None
    word = now.chance.choice(spoken)
    places = {
        (name, said.seq)
        for name, kept in now.picture.sessions.items()
        for said in kept.records
        if said.text.split()[0] == word
    }
    return Deed(
        lambda store: store.search_sessions(word, user_id=now.strand),
        now.picture,
        lambda hits: {(hit.session_id, hit.seq) for hit in hits} == places,
        repeats=True,
    )
