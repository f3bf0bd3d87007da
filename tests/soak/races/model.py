"""What each operation does, and what it may answer: sessions.

A rule takes a state, what the operation remembers of its earlier steps, and the operation with its answer; it gives
what may come next, or nothing if the operation cannot take effect here with that answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from soak.races.checker import DONE
from soak.races.history import Operation, Seen
from soak.races.state import Kept, State, Thrown

Effects = Iterator[tuple[State, Any]]
Rule = Callable[[State, Any, Operation], Effects]


def is_refused(operation: Operation, reason: str) -> bool:
    """Whether this is why it was refused. One whose answer is lost may have been, which changes nothing."""
    return operation.answer is not None and operation.answer.refused == reason


def has_answered(operation: Operation, value: object) -> bool:
    """Whether this is what it answered, or nobody knows."""
    return operation.answer is None or (operation.answer.refused is None and operation.answer.value == value)


def value_of(operation: Operation) -> Any:
    """What it answered; ``None`` if it was refused, or nobody knows."""
    return None if operation.answer is None else operation.answer.value


def was_done(operation: Operation) -> bool:
    """Whether it was not refused, as far as anybody knows."""
    return operation.answer is None or operation.answer.refused is None


def shown(state: State, seen: Seen) -> State | None:
    """The state, if a session is as an answer shows it, with what the answer tells of it."""
    kept = state.session(seen.id)
    if kept is None or (kept.user, kept.metadata, kept.parent) != (seen.user, seen.metadata, seen.parent):
        return None
    if tuple(record[:2] for record in kept.records) != seen.records or seen.version is None:
        return None
    return state.learnt(seen.id, seen.version, seen.created)


def _shown(state: State | None) -> Effects:
    if state is not None:
        yield state, DONE


def append(state: State, _: Any, operation: Operation) -> Effects:
    """Add records without loading: they follow all that is there."""
    session_id, said = operation.about["id"], operation.about["said"]
    kept = state.session(session_id, operation.about["owner"])
    if kept is None:
        if is_refused(operation, "missing"):
            yield state, DONE
        return
    new = kept.with_records(said)
    if has_answered(operation, new.seqs_of(said)):
        yield state.with_session(session_id, new.touched(operation.number)), DONE
        if new == kept:  # a change without effect may keep its version
            yield state.with_session(session_id, kept._replace(is_old=False)), DONE


def load(state: State, _: Any, operation: Operation) -> Effects:
    """Read a session whole."""
    if value_of(operation) is not None:
        yield from _shown(shown(state, value_of(operation)))
    elif state.session(operation.about["id"], operation.about["owner"]) is None:
        yield state, DONE


def timeline(state: State, _: Any, operation: Operation) -> Effects:
    """Read the newest records of a session."""
    kept = state.session(operation.about["id"])
    if kept is None:
        if is_refused(operation, "missing"):
            yield state, DONE
        return
    records = tuple(record[:2] for record in kept.records)[-operation.about["limit"] :]
    if has_answered(operation, records):
        yield state, DONE


def exists(state: State, _: Any, operation: Operation) -> Effects:
    """Ask whether there is a session."""
    if has_answered(operation, state.session(operation.about["id"]) is not None):
        yield state, DONE


def same(state: State, about: dict[str, Any]) -> Kept | None:
    """The session that was loaded, if it is still there: one with its id that was created anew is another."""
    kept = state.session(about["id"])
    return kept if kept is not None and (kept.user, kept.created) == (about["user"], about["created"]) else None


def merged(state: State, operation: Operation, about: dict[str, Any], told: str | None) -> State | None:
    """What a save of a loaded session makes of it.

    The object knows its version if it holds what is stored: nobody came between, and no key was used before.
    """
    kept = same(state, about)
    if kept is None:
        return None
    new = kept.with_records(about["said"])
    is_current = about["held"] is not None and about["held"] == kept.version
    is_current = is_current and len(new.records) == len(kept.records) + len(about["said"])
    new = new.with_metadata(about["metadata"]).touched(operation.number)
    following = state.with_session(about["id"], new)
    if operation.answer is None:
        return following
    if is_current != (told is not None):
        return None
    return following if told is None else following.learnt(about["id"], told)


def save(state: State, _: Any, operation: Operation) -> Effects:
    """Save a session that was loaded: what is new in it goes in, whoever else wrote."""
    if same(state, operation.about) is None:
        if is_refused(operation, "missing"):
            yield state, DONE
    elif was_done(operation):
        yield from _shown(merged(state, operation, operation.about, value_of(operation)))


def rewrite(state: State, _: Any, operation: Operation) -> Effects:
    """Save a session whose history was edited: only at the version it was loaded at."""
    about = operation.about
    kept = same(state, about)
    if about["held"] is None:
        if is_refused(operation, "conflict"):  # the object itself knows that it is stale
            yield state, DONE
    elif kept is None:
        if is_refused(operation, "missing"):
            yield state, DONE
    elif kept.version != about["held"]:
        if is_refused(operation, "conflict"):
            yield state, DONE
    elif was_done(operation):
        index, text = about["index"], about["text"]
        again = tuple((record.text, record.key) for record in kept.records[index + 1 :])
        new = kept._replace(records=kept.records[:index])
        new = new.with_records(again if text is None else ((text, None), *again)).touched(operation.number)
        following = state.with_session(about["id"], new)
        if operation.answer is None:
            yield following, DONE
        elif value_of(operation) is not None:
            yield from _shown(following.learnt(about["id"], value_of(operation)))


def count_up(state: State, _: Any, operation: Operation) -> Effects:
    """Add one to a number in the metadata, by reading, changing and writing."""
    session_id = operation.about["id"]
    kept = state.session(session_id)
    if kept is None:
        if is_refused(operation, "missing"):
            yield state, DONE
    elif was_done(operation):
        number = dict(kept.metadata).get("n", 0) + 1
        following = state.with_session(session_id, kept.with_metadata((("n", number),)).touched(operation.number))
        if operation.answer is None:
            yield following, DONE
        else:
            yield from _shown(shown(following, value_of(operation)))


def rewind(state: State, _: Any, operation: Operation) -> Effects:
    """Drop all records after a number, and tell which."""
    kept = state.session(operation.about["id"])
    if kept is None:
        if is_refused(operation, "missing"):
            yield state, DONE
        return
    to = operation.about["to"]
    if has_answered(operation, tuple(record[:2] for record in kept.records if record.seq > to)):
        left = tuple(record for record in kept.records if record.seq <= to)
        if left == kept.records:
            yield state, DONE
        else:
            kept = kept._replace(records=left).touched(operation.number)
            yield state.with_session(operation.about["id"], kept), DONE


def fork(state: State, memory: Any, operation: Operation) -> Effects:
    """Copy a session: it is read, the copy is created, the copy is read."""
    about = operation.about
    if memory is None:
        original = state.session(about["id"])
        if original is None:
            if is_refused(operation, "missing"):
                yield state, DONE
            return
        at = about["at"]
        records = tuple(record for record in original.records if at is None or record.seq <= at)
        next_seq = records[-1].seq + 1 if records else 1
        yield (
            state,
            Kept(original.user, None, operation.number, None, False, records, original.metadata, next_seq, about["id"]),
        )
    elif isinstance(memory, Kept):
        if state.session(about["new"]) is None:
            yield state.with_session(about["new"], memory), "made"
        elif is_refused(operation, "conflict"):
            yield state, DONE
    else:
        yield from _seen_after(state, operation, about["new"], "missing")


def _seen_after(state: State, operation: Operation, session_id: str, gone: str) -> Effects:
    """The last step of an operation that reads what it made: it may be gone, or another one."""
    if operation.answer is None:
        yield state, DONE
    elif operation.answer.refused is not None:
        if operation.answer.refused == gone and state.session(session_id) is None:
            yield state, DONE
    else:
        yield from _shown(shown(state, value_of(operation)))


def create(state: State, _: Any, operation: Operation) -> Effects:
    """Save a new session: its id must be free."""
    about = operation.about
    kept = state.session(about["id"])
    if kept is not None:
        if is_refused(operation, "conflict" if kept.user == about["user"] else "wrong user"):
            yield state, DONE
    elif was_done(operation):
        new = Kept(about["user"], about["created"], operation.number, is_old=about["is_old"])
        following = state.with_session(about["id"], new.with_records(about["said"]))
        if operation.answer is None:
            yield following, DONE
        elif value_of(operation) is not None:
            yield from _shown(following.learnt(about["id"], value_of(operation)))


def get_or_create(state: State, _: Any, operation: Operation) -> Effects:
    """A session as it is, or a new one."""
    about = operation.about
    kept = state.session(about["id"])
    if kept is not None and kept.user != about["user"]:
        if is_refused(operation, "wrong user"):
            yield state, DONE
    elif was_done(operation):
        if kept is None:
            state = state.with_session(about["id"], Kept(about["user"], None, operation.number))
        if operation.answer is None:
            yield state, DONE
        else:
            yield from _shown(shown(state, value_of(operation)))


def delete(state: State, _: Any, operation: Operation) -> Effects:
    """Remove a session for good."""
    kept = state.session(operation.about["id"], operation.about["owner"])
    if has_answered(operation, kept is not None):
        yield state if kept is None else state.with_session(operation.about["id"], None), DONE


def trash(state: State, _: Any, operation: Operation) -> Effects:
    """Throw a session away."""
    kept = state.session(operation.about["id"])
    if has_answered(operation, kept is not None):
        if kept is None:
            yield state, DONE
        else:
            thrown = Thrown(operation.about["id"], kept, operation.number)
            following = state.with_session(operation.about["id"], None).with_batch()
            yield following._replace(trash=(*state.trash, thrown)), DONE


def restore(state: State, memory: Any, operation: Operation) -> Effects:
    """Get a session out of the trash: what is there, which is the newest still there, out with it, and a look at it."""
    session_id = operation.about["id"]
    if memory is None:
        names = tuple(thrown.by for thrown in state.trash if thrown.id == session_id)
        yield state, ("listed", names)
    elif memory == "made":
        yield from _seen_after(state, operation, session_id, "restored")
    elif memory[0] == "listed":
        found = [thrown.by for thrown in state.trash if thrown.by in memory[1]]
        if found:
            yield state, ("chosen", found[-1])
        elif is_refused(operation, "missing"):
            yield state, DONE
    else:
        chosen = next((thrown for thrown in state.trash if thrown.by == memory[1]), None)
        is_taken = state.session(session_id) is not None
        if (is_refused(operation, "missing") and chosen is None) or (is_refused(operation, "conflict") and is_taken):
            yield state, DONE
        elif chosen is not None and not is_taken:
            kept = chosen.kept._replace(by=operation.number, version=None)
            following = state.with_session(session_id, kept).with_batch()
            yield following._replace(trash=tuple(t for t in state.trash if t != chosen)), "made"


RULES: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (append, load, timeline, exists, save, rewrite, count_up, rewind, fork, create, get_or_create, delete)
} | {"trash": trash, "restore": restore}
