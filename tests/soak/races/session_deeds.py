"""What a worker can do to one session."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

from soak.races.history import Answer, Seen
from soak.races.worker import Worker
from statestore import Session, TimelineEntry, UserMessage

LONG_AGO: Final = datetime(2020, 1, 1, tzinfo=UTC)
KEYS: Final = ("k", "l")


async def append(worker: Worker, session_id: str) -> Answer:
    """Add one or two records without loading, perhaps with keys."""
    said = tuple(
        (worker.new_words(), worker.chance.choice((None, None, *KEYS))) for _ in range(worker.chance.choice((1, 1, 2)))
    )
    if len({key for _, key in said}) < len(said):
        said = said[:1]
    owner = worker.some_owner()
    messages, keys = [UserMessage(text) for text, _ in said], [key for _, key in said]

    async def do() -> tuple[int, ...]:
        return tuple(await worker.acting_for(owner).append(session_id, *messages, keys=keys))

    return await worker.note("append", do, id=session_id, said=said, owner=owner)


async def load(worker: Worker, session_id: str) -> Answer:
    """Read a session, and keep the object."""
    owner = worker.some_owner()

    async def do() -> Seen | None:
        session = await worker.acting_for(owner).load_session(session_id)
        if session is None:
            return None
        worker.loaded[session_id] = session
        return seen_in(session)

    return await worker.note("load", do, id=session_id, owner=owner)


async def save(worker: Worker, session_id: str) -> Answer | None:
    """Say something in a session that was loaded, and save it."""
    session = worker.loaded.get(session_id)
    if session is None:
        return await load(worker, session_id)
    change = changed(worker, session)

    async def do() -> str | None:
        await worker.store.save_session(session)
        return session.version

    return worker.keep_or_forget(session_id, await worker.note("save", do, **change))


async def rewrite(worker: Worker, session_id: str) -> Answer | None:
    """Remove or replace something that was said in a session that was loaded, and save it."""
    session = worker.loaded.get(session_id)
    if session is None or not session.user_messages:
        return await load(worker, session_id)
    held, index = session.version, worker.chance.randrange(len(session.user_messages))
    text = worker.new_words() if worker.chance.random() < 0.5 else None
    if text is None:
        session.user_messages.pop(index)
    else:
        session.user_messages[index] = UserMessage(text)

    async def do() -> str | None:
        await worker.store.save_session(session)
        return session.version

    about = {**_identity(session), "held": held, "index": index, "text": text}
    return worker.keep_or_forget(session_id, await worker.note("rewrite", do, **about))


async def count_up(worker: Worker, session_id: str) -> Answer:
    """Count in the metadata."""

    def count_one(session: Session) -> None:
        session.set_metadata("n", (session.get_metadata("n") or 0) + 1)

    async def do() -> Seen:
        return seen_in(await worker.store.update_session_with(session_id, count_one))

    return await worker.note("count_up", do, id=session_id)


async def rewind(worker: Worker, session_id: str) -> Answer:
    """Drop what comes after a number."""
    to = worker.chance.randrange(8)

    async def do() -> tuple[tuple[int, str], ...]:
        return _lines(await worker.store.rewind_session(session_id, to=to))

    return await worker.note("rewind", do, id=session_id, to=to)


async def timeline(worker: Worker, session_id: str) -> Answer:
    """Read the newest records."""
    limit = worker.chance.choice((1, 3))

    async def do() -> tuple[tuple[int, str], ...]:
        return _lines(await worker.store.timeline(session_id, limit=limit))

    return await worker.note("timeline", do, id=session_id, limit=limit)


async def exists(worker: Worker, session_id: str) -> Answer:
    """Ask whether there is a session."""
    return await worker.note("exists", lambda: worker.store.session_exists(session_id), id=session_id)


async def fork(worker: Worker, session_id: str) -> Answer:
    """Copy a session to where others copy theirs."""
    at, new = worker.chance.choice((None, 1, 3)), worker.scene.sessions[2]

    async def do() -> Seen:
        return seen_in(await worker.store.fork_session(session_id, at=at, new_id=new))

    return await worker.note("fork", do, id=session_id, at=at, new=new)


async def create(worker: Worker, session_id: str) -> Answer:
    """Save a new session, often with an old date."""
    session, said = Session(worker.some_user(), session_id), ((worker.new_words(), None),)
    session.add_user_message(said[0][0])
    is_old = worker.chance.random() < 0.6
    if is_old:
        session.updated_at = LONG_AGO

    async def do() -> str | None:
        await worker.store.save_session(session)
        return session.version

    return await worker.note("create", do, **_identity(session), said=said, is_old=is_old)


async def get_or_create(worker: Worker, session_id: str) -> Answer:
    """Have a session, whether there is one or not."""
    user = worker.some_user()

    async def do() -> Seen:
        session = await worker.store.get_or_create_session(user, session_id)
        worker.loaded[session_id] = session
        return seen_in(session)

    return await worker.note("get_or_create", do, id=session_id, user=user)


async def delete(worker: Worker, session_id: str) -> Answer:
    """Remove a session for good."""
    owner = worker.some_owner()

    async def do() -> bool:
        return await worker.acting_for(owner).delete_session(session_id)

    return await worker.note("delete", do, id=session_id, owner=owner)


async def trash(worker: Worker, session_id: str) -> Answer:
    """Throw a session away."""
    return await worker.note("trash", lambda: worker.store.delete_session(session_id, trash_hours=9), id=session_id)


async def restore(worker: Worker, session_id: str) -> Answer:
    """Get a session out of the trash."""

    async def do() -> Seen:
        return seen_in(await worker.store.restore_session(session_id))

    return await worker.note("restore", do, id=session_id)


def changed(worker: Worker, session: Session) -> dict[str, Any]:
    """Say something in a loaded session, and set something; what will be sent."""
    held, text, key = session.version, worker.new_words(), worker.chance.choice((None, None, *KEYS))
    metadata = ((worker.chance.choice("pq"), worker.new_number()),)
    session.add_user_message(text, key=key)
    session.set_metadata(*metadata[0])
    return {**_identity(session), "held": held, "said": ((text, key),), "metadata": metadata}


def _identity(session: Session) -> dict[str, Any]:
    return {"id": str(session.id), "user": session.user_id, "created": session.created_text}


def seen_in(session: Session) -> Seen:
    """What a session object shows."""
    return Seen(
        str(session.id),
        session.user_id,
        session.created_text,
        session.version,
        _lines(session.timeline),
        tuple(sorted(session.metadata.items())),
        session.parent_session_id,
    )


def _lines(entries: Iterable[TimelineEntry]) -> tuple[tuple[int, str], ...]:
    return tuple((entry.seq, entry.record.content) for entry in entries)
