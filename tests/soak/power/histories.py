"""Things to do to a store, chosen by chance from what it holds: a history, the same from the same seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from processes.deeds import LONG_AGO
from statestore import AgentResponse, Event, PruneConfig, Session, StateStore, UserMessage
from statestore.stored import DocumentKind

WORDS = ("ferry", "noon", "東京", "coffee", "é", "window seat", "\u0000", '"quoted"', "line\nbreak")


@dataclass(frozen=True)
class Step:
    """One thing to do; whoever does it again because it was not acknowledged gets it acknowledged."""

    name: str
    do: Callable[[StateStore], object]
    about: tuple[str, ...] | None = None
    """The files it is about, if it may be repeated: when it is acknowledged, they are as they are seen."""


def first_steps() -> list[Step]:
    """What every history begins with, so that there is something to change."""

    def session(name: str) -> Callable[[StateStore], object]:
        def do(store: StateStore) -> None:
            new = Session("alice", name)
            new.add_user_message(f"{name}: question")
            new.add_agent_response(f"{name}: answer")
            store.save_session(new)

        return do

    return [
        Step("a first session", session("s0")),
        Step("a second session", session("s1")),
        Step("a first document", lambda store: store.save_markdown("notes", "d0", "as it was")),
    ]


def next_step(store: StateStore, chance: random.Random, number: int) -> Step:
    """Something that can be done now."""
    sessions = sorted(summary.id for summary in store.list_sessions(order="id"))
    choices: list[Callable[[StateStore, random.Random, int, list[str]], Step]] = [_new_session, _put, _put, _batch]
    if sessions:
        choices += [_append, _append, _save, _save, _edit, _rewind, _fork, _delete_session, _throw_away, _prune]
    if store.list_trash():
        choices += [_restore]
    if store.list_categories():
        choices += [_delete_document, _delete_category]
    return chance.choice(choices)(store, chance, number, sessions)


def _text(chance: random.Random) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(chance.choice((1, 5, 150))))


def _file(session_id: str) -> str:
    return f"sessions/{session_id}.json"


def _loaded(store: StateStore, session_id: str) -> Session:
    session = store.load_session(session_id)
    assert session is not None
    return session


def _new_session(_store: StateStore, chance: random.Random, number: int, _: list[str]) -> Step:
    session = Session(chance.choice(("alice", "bob")), f"s{number}")
    if chance.random() < 0.3:
        session.updated_at = LONG_AGO
    else:
        session.add_user_message(_text(chance))
    return Step("a new session", lambda store: store.save_session(session))


def _append(_store: StateStore, chance: random.Random, number: int, sessions: list[str]) -> Step:
    chosen, records = chance.choice(sessions), (UserMessage(_text(chance)), Event("tool", {"number": number}))
    keys = [f"key-{number}", f"other-{number}"]
    return Step("an append", lambda store: store.append(chosen, *records, keys=keys), (_file(chosen),))


def _save(store: StateStore, chance: random.Random, number: int, sessions: list[str]) -> Step:
    session = _loaded(store, chance.choice(sessions))
    session.add_user_message(_text(chance))
    session.add_event("thought", {"text": _text(chance)})
    session.add_agent_response(AgentResponse(_text(chance)))
    session.set_metadata(f"m{number % 3}", [number, _text(chance)])
    session.set_active_persona(f"persona-{number}")
    return Step("a save", lambda store: store.save_session(session))


def _edit(store: StateStore, chance: random.Random, number: int, sessions: list[str]) -> Step:
    session = _loaded(store, chance.choice(sessions))
    if not session.user_messages:
        return _append(store, chance, number, sessions)
    session.user_messages[-1] = msgspec.structs.replace(session.user_messages[-1], content=_text(chance))
    return Step("an edit", lambda store: store.save_session(session))


def _rewind(store: StateStore, chance: random.Random, _number: int, sessions: list[str]) -> Step:
    chosen = chance.choice(sessions)
    seqs = [0, *(entry.seq for entry in store.timeline(chosen))]
    to = chance.choice(seqs)
    return Step("a rewind", lambda store: store.rewind_session(chosen, to=to))


def _fork(_store: StateStore, chance: random.Random, number: int, sessions: list[str]) -> Step:
    chosen = chance.choice(sessions)
    return Step("a fork", lambda store: store.fork_session(chosen, new_id=f"fork-{number}"))


def _delete_session(_store: StateStore, chance: random.Random, _number: int, sessions: list[str]) -> Step:
    chosen = chance.choice(sessions)
    return Step("a session deleted", lambda store: store.delete_session(chosen), (_file(chosen),))


def _throw_away(_store: StateStore, chance: random.Random, _number: int, sessions: list[str]) -> Step:
    chosen = chance.choice(sessions)
    return Step("a session thrown away", lambda store: store.delete_session(chosen, trash_hours=24))


def _restore(store: StateStore, chance: random.Random, _number: int, sessions: list[str]) -> Step:
    trashed = [one.session.id for one in store.list_trash() if one.session.id not in sessions]
    if not trashed:
        return _new_session(store, chance, _number, sessions)
    chosen = chance.choice(trashed)
    return Step("a session restored", lambda store: store.restore_session(chosen))


def _prune(_store: StateStore, chance: random.Random, _number: int, _: list[str]) -> Step:
    config = PruneConfig(max_sessions=3, ttl_hours=24 * 365, trash_hours=chance.choice((0, 24)))
    return Step("a prune", lambda store: store.prune_sessions(config))


def _document(store: StateStore, chance: random.Random) -> tuple[str, str, DocumentKind]:
    """One that is there."""
    known = [
        (category, info.name, info.kind)
        for category in store.list_categories()
        for info in store.list_documents(category)
    ]
    return chance.choice(known)


def _put_into(store: Any, category: str, name: str, kind: str, text: str) -> None:
    """Write a document of a kind; a batch has the same methods as a store."""
    match kind:
        case "md":
            store.save_markdown(category, name, text)
        case "json":
            store.save_json(category, name, {"text": text})
        case _:
            store.save_bytes(category, name, text.encode() + b"\0\xff")


def _put(store: StateStore, chance: random.Random, _number: int, _: list[str]) -> Step:
    if store.list_categories() and chance.random() < 0.4:
        category, name, kind = _document(store, chance)
    else:
        category = chance.choice(("notes", "deep/er/still", f"new-{_number}"))
        name, kind = f"d{chance.randrange(3)}", chance.choice(("md", "json", "bin"))
    text = chance.choice(("as it was", _text(chance)))

    def do(store: StateStore) -> None:
        _put_into(store, category, name, kind, text)

    return Step("a document", do, (f"{category}/{name}.{kind}",))


def _delete_document(store: StateStore, chance: random.Random, _number: int, _: list[str]) -> Step:
    category, name, kind = _document(store, chance)

    def do(store: StateStore) -> None:
        store.delete_file(category, name, kind=kind)

    return Step("a document deleted", do, (f"{category}/{name}.{kind}",))


def _delete_category(store: StateStore, chance: random.Random, _number: int, _: list[str]) -> Step:
    category = chance.choice(store.list_categories())
    return Step("a category deleted", lambda store: store.delete_category(category))


def _batch(store: StateStore, chance: random.Random, number: int, sessions: list[str]) -> Step:
    changed = [_loaded(store, name) for name in chance.sample(sessions, min(2, len(sessions)))]
    for session in changed:
        session.add_user_message(f"batch {number}: {_text(chance)}")
    gone = [name for name in sessions if name not in {session.id for session in changed}][: chance.randrange(2)]
    new = Session("alice", f"s{number}")
    written = ("batches", f"b{number % 2}", "json")
    removed = [_document(store, chance)] if store.list_categories() and chance.random() < 0.6 else []
    text = chance.choice(("as it was", _text(chance)))

    def do(store: StateStore) -> None:
        with store.batch() as batch:
            for session in changed:
                batch.save_session(session)
            batch.save_session(new)
            for name in gone:
                batch.delete_session(name)
            for category, name, kind in removed:
                if (category, name, kind) != written:  # a batch names an item once
                    batch.delete_file(category, name, kind=kind)
            _put_into(batch, *written, text)
            _put_into(batch, f"new-{number}", "together", "bin", text)

    return Step("a batch", do)
