"""Something to do with every method of `AsyncStateStore`, in a corner of the store of its own, and how that looks.

A corner is a user with a few sessions and a category with a few documents. What is done in one corner can be told from
what is done in another, so one store serves for any number of tries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from statestore import AgentResponse, AsyncStateStore, Event, PruneConfig, Session, UserMessage

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
ONLY_LONG_AGO = PruneConfig(max_sessions=0, ttl_hours=24 * 365)

Look = dict[str, Any]


class Corner:
    """One user's sessions, one category's documents, and one object that is to be saved."""

    def __init__(self, store: AsyncStateStore, tag: str, directory: Path) -> None:
        self.store = store
        self.tag = tag
        self.user = f"user-{tag}"
        self.category = f"notes-{tag}"
        self.backup = directory / f"backup-{tag}.db"
        self.session = Session(self.user, self.id("new"))

    def id(self, name: str) -> str:
        return f"{name}-{self.tag}"

    async def furnish(self) -> None:
        """What is there before."""
        store = self.store
        async with store.batch() as batch:
            for name in ("first", "doomed", "gone"):
                session = Session(self.user, self.id(name))
                session.add_user_message(f"{name}: question")
                session.add_agent_response(f"{name}: answer")
                batch.save_session(session)
            old = Session(self.user, self.id("old"))
            old.updated_at = LONG_AGO
            batch.save_session(old)
            batch.save_markdown(self.category, "text", "as it was")
            batch.save_json(self.category, "value", {"as it": "was"})
            batch.save_bytes(self.category, "bytes", b"as it was")
        await store.delete_session(self.id("gone"), trash_hours=24)
        loaded = await store.load_session(self.id("first"))
        assert loaded is not None
        self.session = loaded
        self.session.add_user_message("one more question")
        self.session.add_event("tool", {"z": 1, "a": 2})
        self.session.set_metadata("colour", "blue")

    async def clear(self) -> None:
        """Leave nothing behind."""
        await self.store.erase_user(self.user)
        await self.store.delete_category(self.category)

    async def look(self) -> Look:
        """All that can be seen of it, times, versions and the tag aside."""
        found: Look = {}
        for summary in await self.store.list_sessions(user_id=self.user, order="id"):
            session = await self.store.load_session(summary.id)
            assert session is not None, "what is listed is there"
            said = [(entry.seq, _said(entry.record)) for entry in session.timeline]
            counts = (summary.message_count, summary.response_count, summary.event_count)
            assert counts == (len(session.user_messages), len(session.agent_responses), len(session.events))
            found[summary.id.replace(self.tag, "")] = (said, dict(session.metadata), session.user_id == self.user)
        for info in await self.store.list_documents(self.category):
            document = await self.store.get_document(self.category, info.name, kind=info.kind)
            assert document is not None, "what is listed is there"
            found[f"{info.name}.{info.kind}"] = document.body
        for trashed in await self.store.list_trash():
            if trashed.session.user_id == self.user:
                found[f"trashed {trashed.session.id.replace(self.tag, '')}"] = trashed.session.message_count
        return found


def _said(record: UserMessage | AgentResponse | Event) -> object:
    return record.data if isinstance(record, Event) else record.content


class Deed(NamedTuple):
    """Something to do in a corner. In several steps, it may be seen half done, and doing it again finishes it."""

    do: Callable[[Corner], Coroutine[Any, Any, Any]]
    in_steps: bool = False
    once: bool = False
    """Whether doing it again, when it was done, is something else."""


async def _batch(corner: Corner) -> None:
    new = Session(corner.user, corner.id("new"))
    new.add_user_message("hello")
    async with corner.store.batch() as batch:
        batch.save_session(corner.session)
        batch.delete_session(corner.id("doomed"))
        batch.save_markdown(corner.category, "text", "new")
        batch.save_json(corner.category, "another", [1, 2, 3])


async def _save_after_another(corner: Corner) -> None:
    """Two tasks save one object: the second waits for its turn."""
    first = asyncio.create_task(corner.store.save_session(corner.session))
    try:
        await asyncio.sleep(0)
        await corner.store.save_session(corner.session)
    finally:
        await first


async def _watch(corner: Corner) -> None:
    cursor = await corner.store.change_cursor()
    await corner.store.append(corner.id("first"), UserMessage("watched"))
    watch = corner.store.watch(corner.id("first"), after=cursor)
    try:
        await anext(watch)
    finally:
        await watch.aclose()


LOOKS: dict[str, Deed] = {
    "load_session": Deed(lambda c: c.store.load_session(c.id("first"))),
    "session_exists": Deed(lambda c: c.store.session_exists(c.id("first"))),
    "list_sessions": Deed(lambda c: c.store.list_sessions(user_id=c.user)),
    "count_sessions": Deed(lambda c: c.store.count_sessions(user_id=c.user)),
    "timeline": Deed(lambda c: c.store.timeline(c.id("first"), limit=1)),
    "timeline_as": Deed(lambda c: c.store.timeline_as(c.id("first"), dict)),
    "search_sessions": Deed(lambda c: c.store.search_sessions("question", user_id=c.user)),
    "change_cursor": Deed(lambda c: c.store.change_cursor()),
    "list_trash": Deed(lambda c: c.store.list_trash()),
    "load_markdown": Deed(lambda c: c.store.load_markdown(c.category, "text")),
    "load_json": Deed(lambda c: c.store.load_json(c.category, "value")),
    "load_bytes": Deed(lambda c: c.store.load_bytes(c.category, "bytes")),
    "get_document": Deed(lambda c: c.store.get_document(c.category, "text")),
    "list_category": Deed(lambda c: c.store.list_category(c.category)),
    "list_documents": Deed(lambda c: c.store.list_documents(c.category)),
    "list_categories": Deed(lambda c: c.store.list_categories(c.category)),
    "check": Deed(lambda c: c.store.check()),
}
CHANGES: dict[str, Deed] = {
    "save_session": Deed(lambda c: c.store.save_session(c.session)),
    "update_session": Deed(lambda c: c.store.update_session(c.session)),
    "save_session_with_prune": Deed(
        lambda c: c.store.save_session_with_prune(c.session, PruneConfig(max_sessions=0, ttl_hours=0))
    ),
    "get_or_create_session": Deed(lambda c: c.store.get_or_create_session(c.user, c.id("new"))),
    "update_session_with": Deed(
        lambda c: c.store.update_session_with(c.id("first"), lambda session: session.set_metadata("n", 1))
    ),
    "append": Deed(
        lambda c: c.store.append(c.id("first"), Event("tool", 1), AgentResponse("done"), keys=["one", "two"])
    ),
    "append without keys": Deed(lambda c: c.store.append(c.id("first"), UserMessage("one more")), once=True),
    "delete_session": Deed(lambda c: c.store.delete_session(c.id("doomed"))),
    "delete_session into the trash": Deed(lambda c: c.store.delete_session(c.id("doomed"), trash_hours=1)),
    "restore_session": Deed(lambda c: c.store.restore_session(c.id("gone")), once=True),
    "empty_trash": Deed(lambda c: c.store.for_user(c.user).empty_trash()),
    "fork_session": Deed(lambda c: c.store.fork_session(c.id("first"), new_id=c.id("branch")), once=True),
    "rewind_session": Deed(lambda c: c.store.rewind_session(c.id("first"), to=1)),
    "prune_sessions": Deed(lambda c: c.store.prune_sessions(ONLY_LONG_AGO)),
    "prune_sessions into the trash": Deed(
        lambda c: c.store.for_user(c.user).prune_sessions(PruneConfig(max_sessions=1, ttl_hours=0, trash_hours=1))
    ),
    "erase_user": Deed(lambda c: c.store.erase_user(c.user), in_steps=True),
    "save_markdown": Deed(lambda c: c.store.save_markdown(c.category, "text", "new")),
    "save_json": Deed(lambda c: c.store.save_json(c.category, "new", [1, 2, 3])),
    "save_bytes": Deed(lambda c: c.store.save_bytes(c.category, "bytes", b"\0\1")),
    "delete_file": Deed(lambda c: c.store.delete_file(c.category, "value")),
    "delete_category": Deed(lambda c: c.store.delete_category(c.category)),
    "batch": Deed(_batch),
    "save_session after another task's": Deed(_save_after_another),
    "watch": Deed(_watch, once=True),
}
OF_DATABASES: dict[str, Deed] = {
    "backup": Deed(lambda c: c.store.backup(c.backup), once=True),
    "compact": Deed(lambda c: c.store.compact()),
}
"""Where the engine offers it."""
ENDS = ("close",)
"""What a store does once; see the tests of opening and closing."""


def deeds_of(engine: str) -> tuple[dict[str, Deed], dict[str, Deed]]:
    """What there is to do on an engine: what only looks, and what changes something."""
    looks, changes = dict(LOOKS), dict(CHANGES)
    if engine in ("memory", "valkey"):
        del looks["search_sessions"]
    if engine == "memory":
        del looks["change_cursor"], changes["watch"]
    if engine == "sqlite":
        changes |= OF_DATABASES
    return looks, changes
