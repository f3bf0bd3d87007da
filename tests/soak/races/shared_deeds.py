"""What a worker can do to documents, and to several items at once."""

from __future__ import annotations

from typing import Any, Final

from soak.races.history import Answer, Listed
from soak.races.session_deeds import changed
from soak.races.worker import Worker
from statestore import PruneConfig, SessionSummary

OLD: Final = PruneConfig(max_sessions=0, ttl_hours=1)


async def put(worker: Worker, name: str) -> Answer:
    """Write a document, over anything or only where there is none."""
    return await _put(worker, name, worker.chance.choice((None, None, "")))


async def swap(worker: Worker, name: str) -> Answer:
    """Write a document over the version that was last read."""
    return await (_put(worker, name, worker.versions[name]) if name in worker.versions else get(worker, name))


async def _put(worker: Worker, name: str, if_version: str | None) -> Answer:
    value = worker.new_number()

    async def do() -> str:
        worker.versions[name] = await worker.store.save_json(worker.scene.category, name, value, if_version=if_version)
        return worker.versions[name]

    return await worker.note("put", do, name=name, value=value, if_version=if_version)


async def get(worker: Worker, name: str) -> Answer:
    """Read a document."""

    async def do() -> tuple[Any, str] | None:
        document = await worker.store.get_document(worker.scene.category, name, kind="json")
        if document is None:
            return None
        worker.versions[name] = document.version
        return document.value, document.version

    return await worker.note("get", do, name=name)


async def drop(worker: Worker, name: str) -> Answer:
    """Remove a document."""
    return await worker.note(
        "drop", lambda: worker.store.delete_file(worker.scene.category, name, kind="json"), name=name
    )


async def clear(worker: Worker, _: str) -> Answer:
    """Remove all documents."""
    return await worker.note(
        "clear", lambda: worker.store.delete_category(worker.scene.category), items=worker.scene.papers
    )


async def names(worker: Worker, _: str) -> Answer:
    """List the documents."""

    async def do() -> tuple[str, ...]:
        return tuple(await worker.store.list_category(worker.scene.category))

    return await worker.note("names", do, items=worker.scene.papers, is_whole=worker.scene.is_whole)


async def listing(worker: Worker, user: str) -> Answer:
    """List a user's sessions."""

    async def do() -> tuple[Listed, ...]:
        summaries = await worker.store.list_sessions(user_id=user)
        assert summaries == sorted(summaries, key=lambda summary: (-_moment(summary), summary.id))
        assert len({summary.id for summary in summaries}) == len(summaries)
        return tuple(map(_listed, summaries))

    return await worker.note("listing", do, **_about_all(worker, user))


async def page(worker: Worker, user: str) -> Answer:
    """List the first session of a user."""

    async def do() -> Listed | None:
        page = await worker.store.list_sessions(user_id=user, order="id", limit=1)
        return _listed(page[0]) if page else None

    return await worker.note("page", do, user=user, after="", items=worker.scene.sessions)


async def count(worker: Worker, user: str) -> Answer:
    """Count a user's sessions."""
    return await worker.note("count", lambda: worker.store.count_sessions(user_id=user), **_about_all(worker, user))


async def prune(worker: Worker, user: str) -> Answer:
    """Delete a user's old sessions."""
    return await worker.note(
        "prune", lambda: worker.store.for_user(user).prune_sessions(OLD), **_about_all(worker, user)
    )


def _about_all(worker: Worker, user: str) -> dict[str, Any]:
    return {"user": user, "items": worker.scene.sessions, "is_whole": worker.scene.is_whole}


async def batch(worker: Worker, session_id: str) -> Answer:
    """Write all documents and one session together, and perhaps delete another one."""
    scene, session = worker.scene, worker.loaded.get(session_id)
    puts = tuple(
        {"name": name, "value": worker.new_number(), "if_version": worker.versions.get(name) if place else None}
        for place, name in enumerate(scene.papers)
    )
    saved = None if session is None else changed(worker, session)
    others = [other for other in scene.sessions if other != session_id]
    deleted = worker.chance.choice(others) if saved is None or worker.chance.random() < 0.4 else None

    async def do() -> str | None:
        async with worker.store.batch() as batch:
            for one in puts:
                batch.save_json(scene.category, one["name"], one["value"], if_version=one["if_version"])
            if deleted is not None:
                batch.delete_session(deleted)
            if session is not None:
                batch.save_session(session)
        return None if session is None else session.version

    return worker.keep_or_forget(session_id, await worker.note("batch", do, puts=puts, save=saved, delete=deleted))


def _listed(summary: SessionSummary) -> Listed:
    return Listed(
        summary.id,
        summary.user_id,
        summary.created_text,
        summary.version,
        summary.message_count,
        summary.title,
        summary.parent_session_id,
    )


def _moment(summary: SessionSummary) -> float:
    return summary.updated_at.timestamp()
