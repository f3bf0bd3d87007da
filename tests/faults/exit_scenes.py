"""Ways in which an interpreter ends while a store is open, each in one of its own; tells what was acknowledged.

python exit_scenes.py SCENE TARGET
"""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from statestore import AsyncStateStore, NotSupported, PruneConfig, StateStore, UserMessage

target = sys.argv[2]
kept: list[object] = []
"""What lives until the interpreter ends."""


def tell(seqs: list[int]) -> None:
    """Say that a record was acknowledged: written at once, whatever becomes of us."""
    os.write(1, "".join(f"{seq}\n" for seq in seqs).encode())


def opened() -> StateStore:
    store = StateStore.open(target)
    store.get_or_create_session("alice", "one")
    kept.append(store)
    return store


def write(store: StateStore, count: int = 5) -> None:
    for number in range(count):
        tell(store.append("one", UserMessage(str(number))))


async def async_opened() -> AsyncStateStore:
    store = await AsyncStateStore.open(target)
    await store.get_or_create_session("alice", "one")
    kept.append(store)
    return store


async def async_write(store: AsyncStateStore, count: int = 5) -> None:
    for number in range(count):
        tell(await store.append("one", UserMessage(str(number))))


# -- plain code


def nobody_closed_it() -> None:
    write(opened())


def a_prune_is_pending() -> None:
    store = opened()
    session = store.load_session("one")
    assert session is not None
    for _ in range(5):
        session.add_user_message("x")
        store.save_session_with_prune(session, PruneConfig(max_sessions=1))
        tell([session.timeline[-1].seq])


def somebody_watches() -> None:
    store = opened()
    cursor = store.change_cursor()
    write(store, 1)
    watch = store.watch(after=cursor)
    kept.append(watch)
    next(watch)

    def watch_on() -> None:
        for _ in store.watch():
            pass

    threading.Thread(target=watch_on, daemon=True).start()
    write(store)


def handlers_write() -> None:
    """One was registered before the store was opened, and so is called after whatever the store registered."""
    atexit.register(lambda: write(kept[0]))  # type: ignore[arg-type]
    store = opened()
    atexit.register(write, store)


def daemons_write() -> None:
    store = opened()
    is_writing = threading.Event()

    def write_on() -> None:
        while True:
            write(store, 3)
            is_writing.set()

    for _ in range(3):
        threading.Thread(target=write_on, daemon=True).start()
    is_writing.wait()


def it_exits_in_a_batch() -> None:
    store = opened()
    write(store)
    with store.batch() as batch:
        batch.save_markdown("notes", "never", "x")
        sys.exit()


def a_pool_is_at_work() -> None:
    store = opened()
    pool = ThreadPoolExecutor(4)
    kept.append(pool)
    for _ in range(5):
        pool.submit(write, store, 2)


def it_is_terminated() -> None:
    daemons_write()
    os.kill(os.getpid(), signal.SIGTERM)
    signal.pause()


def it_is_interrupted() -> None:
    store = opened()
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        while True:
            write(store)
    except KeyboardInterrupt:
        write(store)


# -- event loops


def a_loop_ends_while_tasks_write() -> None:
    async def main() -> None:
        store = await async_opened()
        for _ in range(4):
            kept.append(asyncio.create_task(async_write(store, 1000)))
        await async_write(store)

    asyncio.run(main())


def a_loop_ends_while_tasks_watch_and_prune() -> None:
    async def main() -> None:
        store = await async_opened()

        async def watch_on() -> None:
            async for _ in store.watch():
                pass

        kept.append(asyncio.create_task(watch_on()))
        await async_write(store)
        session = await store.load_session("one")
        assert session is not None
        session.add_user_message("x")
        await store.save_session_with_prune(session)

    asyncio.run(main())


def a_loop_is_interrupted() -> None:
    async def main() -> None:
        store = await async_opened()
        await async_write(store)
        asyncio.get_running_loop().call_later(0.02, os.kill, os.getpid(), signal.SIGINT)
        await async_write(store, 100_000)

    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        kept.append("interrupted")


def a_loop_runs_in_a_handler() -> None:
    async def main() -> None:
        async with AsyncStateStore.open(target) as store:
            await store.get_or_create_session("alice", "one")
            await async_write(store)

    opened().close()  # which loads the driver: a new pool of threads can not be made any more by then
    atexit.register(lambda: asyncio.run(main()))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        globals()[sys.argv[1]]()
    except NotSupported as missing:
        print(missing, file=sys.stderr)
