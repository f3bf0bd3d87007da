"""What a process of a contest does; here, and not in a test, so that a new interpreter finds it."""

from __future__ import annotations

import asyncio

from statestore import AsyncStateStore, Session, StateStore, UserMessage


def append_to_one(url: str, writer: str, count: int) -> list[int]:
    """Append to the session that all share; the numbers that were given."""
    numbers: list[int] = []
    with StateStore.open(url) as store:
        for turn in range(count):
            numbers += store.append("shared", UserMessage(f"{writer}:{turn}"))
    return numbers


def append_by_tasks(url: str, writer: str, count: int) -> list[int]:
    """The same, by many tasks at once."""

    async def run() -> list[int]:
        async with AsyncStateStore.open(url) as store:
            told = await asyncio.gather(
                *(store.append("shared", UserMessage(f"{writer}:{turn}")) for turn in range(count))
            )
        return [number for numbers in told for number in numbers]

    return asyncio.run(run())


def append_with_keys(url: str, writer: str, count: int) -> list[int]:
    """Append what all the others append, too, under the same keys."""
    numbers: list[int] = []
    with StateStore.open(url) as store:
        for turn in range(count):
            numbers += store.append("shared", UserMessage(f"all:{turn}"), keys=[f"k{turn}"])
    return numbers


def count_up(url: str, writer: str, count: int) -> list[int]:
    """Read, modify and write one number."""

    def increment(session: Session) -> None:
        session.set_metadata("n", session.metadata.get("n", 0) + 1)

    with StateStore.open(url) as store:
        for _ in range(count):
            store.update_session_with("shared", increment)
    return []


def create_one(url: str, writer: str, count: int) -> list[int]:
    """Be the first to create a session, for each of some ids; which ones we were first with."""
    from statestore.errors import SessionConflict

    won: list[int] = []
    with StateStore.open(url) as store:
        for turn in range(count):
            session = Session.with_id("alice", f"new-{turn}")
            session.add_user_message(writer)
            try:
                store.save_session(session)
            except SessionConflict:
                continue
            won.append(turn)
    return won
