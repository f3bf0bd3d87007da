"""A chat backend on a statestore, with asyncio alone: what the handlers of a web server would call.

    python examples/chat_backend.py

No network and no key: the agent says what is written below. All is kept in a temporary directory.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import json

from statestore import AgentResponse, AsyncStateStore, Notice, PruneConfig, Session, StateStoreError, UserMessage
from statestore.exchange import async_export_sessions

PAGE = 2
KEEP = PruneConfig(max_sessions=0, ttl_hours=24 * 30, max_sessions_per_user=100, trash_hours=24 * 7)


async def answer_to(question: str) -> str:
    """What the agent says; a model would be asked here."""
    return {"Which ferry arrives before noon?": "The 10:40.", "Book it.": "Booked: the 10:40."}[question]


class Backend:
    """A method for each kind of request. Whoever asks sees their own sessions alone."""

    def __init__(self, store: AsyncStateStore) -> None:
        self._store = store

    async def begin(self, user: str, title: str) -> str:
        """Begin a chat; its id."""
        session = Session(user)
        session.set_metadata("title", title)
        await self._store.for_user(user).save_session(session)
        return session.id

    async def say(self, user: str, chat: str, text: str, *, request: str) -> str:
        """Store what was said and what the agent answers. A request that is repeated gets the first answer again.

        (The agent is asked again, too. If that is dear, look first whether an answer follows the question.)
        """
        store = self._store.for_user(user)
        await store.append(chat, UserMessage(text), keys=[request])
        [seq] = await store.append(chat, AgentResponse(await answer_to(text)), keys=[f"{request}: answer"])
        [(_, stored)] = await store.timeline_as(chat, dict[str, Any], after=seq - 1, before=seq + 1)
        return stored["content"]

    async def chats(self, user: str, after: str | None = None) -> bytes:
        """A page of the user's chats as JSON, newest first, and where the next page begins."""
        page = await self._store.for_user(user).list_sessions(limit=PAGE, after=after)
        return json.encode({"chats": page, "next": page[-1].cursor if len(page) == PAGE else None})

    async def history(self, user: str, chat: str, before: int | None = None) -> list[tuple[int, dict[str, Any]]]:
        """The newest records, or the newest before a number, as they are stored."""
        return await self._store.for_user(user).timeline_as(chat, dict[str, Any], before=before, limit=PAGE)

    async def stream(self, user: str, chat: str, last: int = 0) -> AsyncGenerator[str]:
        """What was said after a record's number, then what is said, as it is said, as server-sent events.

        The id of an event is such a number, and a browser that reconnects sends the last one it got. (The cursor of a
        notice would not do: it expires while other chats go on.) After ``rewound``, what has a higher number is gone.
        """
        store = self._store.for_user(user)
        cursor = await store.change_cursor()
        kept = max((entry.seq or 0 for entry in await store.timeline(chat, before=last + 1, limit=1)), default=0)
        if kept < last:  # it was rewound while the browser was away
            last = kept
            yield event(last, "rewound")
        while page := await store.timeline(chat, after=last, limit=PAGE):
            for number, kind, record in page:
                last = number or last  # which is None before a record is stored
                if isinstance(record, UserMessage | AgentResponse):
                    yield event(last, kind, record.content)
        async with aclosing(store.watch(chat, after=cursor)) as notices:
            async for notice in notices:
                match notice:
                    case Notice(what="record", seq=int(number), kind=str(kind), record=record) if number > last:
                        last = number
                        if isinstance(record, UserMessage | AgentResponse):
                            yield event(last, kind, record.content)
                    case Notice(what="rewound", seq=int(number)) if number < last:
                        last = number
                        yield event(last, "rewound")
                    case Notice(what="deleted"):
                        yield event(last, "deleted")
                        return
                    case _:
                        pass  # its title changed; or it was sent above


def event(number: int, what: str, data: str | None = None) -> str:
    """A server-sent event."""
    return f"id: {number}\nevent: {what}\ndata: {json.encode(data).decode()}\n\n"


async def sweep(store: AsyncStateStore, swept: asyncio.Event) -> None:
    """Prune once an hour, for as long as the server runs. What goes stays in the trash for a week."""
    while True:
        try:
            await store.prune_sessions(KEEP)
        except StateStoreError as error:
            print("not pruned, the next try is in an hour:", error)
        swept.set()
        await asyncio.sleep(3600)


async def main(directory: Path) -> None:
    """Start up, answer a few requests, shut down."""
    async with AsyncStateStore.open(directory / "chats.db") as store:
        old = Session("alice", "old")
        old.updated_at = datetime.now(UTC) - timedelta(days=40)
        await store.save_session(old)
        janitor = asyncio.create_task(sweep(store, swept := asyncio.Event()))
        backend = Backend(store)
        chat, *_ = [await backend.begin("alice", title) for title in ("A day on the island", "Dinner", "Minutes")]
        await backend.say("alice", chat, "Which ferry arrives before noon?", request="r1")
        for _ in range(2):  # the browser lost the answer, and asks again
            print("agent:", await backend.say("alice", chat, "Book it.", request="r2"))
        newest = await backend.history("alice", chat)
        earlier = await backend.history("alice", chat, before=newest[0][0])
        print("history:", *(record["content"] for _, record in earlier + newest))

        page = json.decode(await backend.chats("alice"))
        rest = json.decode(await backend.chats("alice", after=page["next"]))
        print("chats:", *(f"{each['title']} ({each['message_count']})" for each in page["chats"] + rest["chats"]))
        try:
            await backend.say("mallory", chat, "Book it.", request="r3")
        except StateStoreError as error:
            print("mallory:", type(error).__name__)
        async with aclosing(backend.stream("alice", chat, last=2)) as events:  # where the connection was lost
            print("streamed:", *[(await anext(events)).splitlines()[2] for _ in range(2)])
        await swept.wait()
        print("pruned:", *(trashed.session.id for trashed in await store.list_trash()))
        text = b"".join([chunk async for chunk in async_export_sessions(store, [chat], format="markdown")])
        print("exported:", text.decode().splitlines()[0])
        await store.backup(directory / "backup.db")
        janitor.cancel()
    async with AsyncStateStore.open(directory / "backup.db", read_only=True) as backup:
        print("backed up:", await backup.count_sessions(user_id="alice"), "chats")


if __name__ == "__main__":
    with TemporaryDirectory() as temporary:
        asyncio.run(main(Path(temporary)))
