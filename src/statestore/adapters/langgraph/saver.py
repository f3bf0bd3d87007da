"""`StateStoreSaver`: LangGraph's checkpoints in a state store, a thread in a session."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from statestore.adapters.access import Access, ClosesEitherWay, Target, sessions_of
from statestore.adapters.langgraph.getting import Getter, config_of
from statestore.adapters.langgraph.listing import Lister
from statestore.adapters.langgraph.putting import Putter
from statestore.adapters.langgraph.rewriting import copy_thread, heads, keep_only
from statestore.adapters.langgraph.sessions import ThreadSession
from statestore.adapters.langgraph.thread import Thread
from statestore.adapters.langgraph.values import ValueCodec
from statestore.errors import InvalidValue
from statestore.store.async_store import AsyncStateStore

if TYPE_CHECKING:
    from langgraph.checkpoint.base import DeltaChannelHistory  # since 4.1

T = TypeVar("T")
Work = Callable[[AsyncStateStore], Coroutine[Any, Any, T]]
_THREADS: Final = 64
"""How many threads a saver remembers what it knows of."""


class StateStoreSaver(ClosesEitherWay, BaseCheckpointSaver[Any]):
    """Keeps LangGraph's checkpoints in a state store: ``graph = builder.compile(checkpointer=StateStoreSaver(store))``.

    ``store`` is an open `StateStore` or `AsyncStateStore`, or a URL to open one; what is opened here is closed by
    `close`, or by using the saver in ``with`` or ``async with``. All methods have their asynchronous twin, and nothing
    blocks an event loop.

    A thread is a session. The messages of its ``messages`` channel (``messages_key``) are the session's user messages
    and agent responses; checkpoints and pending writes are events. With a ``user_id``, threads are that user's, and
    those of others look absent.
    """

    def __init__(
        self,
        store: Target,
        *,
        user_id: str | None = None,
        messages_key: str = "messages",
        serde: SerializerProtocol | None = None,
    ) -> None:
        super().__init__(serde=serde)
        self._access = Access(store, opens="plain")
        self._user_id = user_id
        self._messages_key = messages_key
        self._threads: OrderedDict[str, Thread] = OrderedDict()
        self._lock = Lock()

    # -- Reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self._access.call(self._getting(config))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await self._access.run(self._getting(config))

    def _getting(self, config: RunnableConfig) -> Work[CheckpointTuple | None]:
        thread = self._thread(_thread_id(config))
        return lambda store: self._getter().get(store, thread, _namespace(config), get_checkpoint_id(config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        lister = self._lister(config, filter, before, limit)
        while (page := self._access.call(lister.page)) is not None:
            yield from page

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        lister = self._lister(config, filter, before, limit)
        while (page := await self._access.run(lister.page)) is not None:
            for found in page:
                yield found

    def _lister(
        self,
        config: RunnableConfig | None,
        filter: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Lister:
        configurable = {} if config is None else config.get("configurable", {})
        return Lister(
            self._getter(),
            self._thread,
            thread_id=None if config is None else _thread_id(config),
            user_id=self._user_id,
            ns=configurable.get("checkpoint_ns"),
            checkpoint_id=None if config is None else get_checkpoint_id(config),
            filter=filter or {},
            before=None if before is None else get_checkpoint_id(before),
            limit=limit,
        )

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return self._access.call(self._history(config, channels))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await self._access.run(self._history(config, channels))

    def _history(self, config: RunnableConfig, channels: Sequence[str]) -> Work[Mapping[str, DeltaChannelHistory]]:
        thread = self._thread(_thread_id(config))
        ns, checkpoint_id = _namespace(config), get_checkpoint_id(config)
        return lambda store: self._getter().history(store, thread, ns, checkpoint_id, channels)

    # -- Writing

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        self._access.call(self._putting(config, checkpoint, metadata, new_versions))
        return config_of(_thread_id(config), _namespace(config), checkpoint["id"])

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        await self._access.run(self._putting(config, checkpoint, metadata, new_versions))
        return config_of(_thread_id(config), _namespace(config), checkpoint["id"])

    def _putting(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Work[None]:
        thread = self._thread(_thread_id(config))
        told: dict[str, Any] = {**get_checkpoint_metadata(config, metadata)}
        return lambda store: self._putter().put(
            store, thread, _namespace(config), get_checkpoint_id(config), checkpoint, told, new_versions
        )

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        self._access.call(self._writing(config, writes, task_id, task_path))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await self._access.run(self._writing(config, writes, task_id, task_path))

    def _writing(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> Work[None]:
        thread = self._thread(_thread_id(config))
        checkpoint_id = config["configurable"]["checkpoint_id"]  # pyright: ignore[reportTypedDictNotRequiredAccess]
        return lambda store: self._putter().put_writes(
            store, thread, _namespace(config), checkpoint_id, writes, task_id, task_path
        )

    # -- Removing and copying

    def delete_thread(self, thread_id: str) -> None:
        self._access.call(self._deleting(thread_id))

    async def adelete_thread(self, thread_id: str) -> None:
        await self._access.run(self._deleting(thread_id))

    def _deleting(self, thread_id: str) -> Work[None]:
        return lambda store: self._delete(store, str(thread_id))

    async def _delete(self, store: AsyncStateStore, thread_id: str) -> None:
        thread = self._thread(thread_id)
        sessions = sessions_of(store, self._user_id)
        async with thread.turn(store):
            await sessions.delete_session(thread.session.id)
            thread.forget()

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        self._access.call(lambda store: self._delete_runs(store, run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await self._access.run(lambda store: self._delete_runs(store, run_ids))

    async def _delete_runs(self, store: AsyncStateStore, run_ids: Sequence[str]) -> None:
        metadata_of = self._getter().metadata_of
        lister = self._lister(None, None, None, None)
        for thread_id in await lister.threads_with_runs(store, run_ids):
            await keep_only(
                store,
                self._thread(thread_id),
                lambda view: (
                    key
                    for key, kept in view.checkpoints.items()
                    if metadata_of(view.note_of(kept)).get("run_id") not in run_ids
                ),
            )

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self._access.call(self._copying(source_thread_id, target_thread_id))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await self._access.run(self._copying(source_thread_id, target_thread_id))

    def _copying(self, source: str, target: str) -> Work[None]:
        one, other = (ThreadSession.of(str(thread_id), self._user_id) for thread_id in (source, target))
        return lambda store: copy_thread(store, one, other)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        self._access.call(self._pruning(thread_ids, strategy))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await self._access.run(self._pruning(thread_ids, strategy))

    def _pruning(self, thread_ids: Sequence[str], strategy: str) -> Work[None]:
        if strategy not in ("keep_latest", "delete"):
            raise InvalidValue(f"a strategy for pruning is 'keep_latest' or 'delete', not {strategy!r}")
        return lambda store: self._prune(store, thread_ids, strategy)

    async def _prune(self, store: AsyncStateStore, thread_ids: Sequence[str], strategy: str) -> None:
        for thread_id in map(str, thread_ids):
            if strategy == "delete":
                await self._delete(store, thread_id)
            else:
                await keep_only(store, self._thread(thread_id), partial(heads, self._getter().metadata_of))

    # -- Versions

    def get_next_version(self, current: Any, channel: None) -> Any:
        """The next version of a channel: a whole number. A value belongs to a checkpoint, so branches may share one."""
        if isinstance(current, str):  # of a thread that came from another saver
            number, point, _ = current.partition(".")
            return f"{int(number) + 1:0{len(number)}}{point}{'0' if point else ''}"
        return 1 if current is None else int(current) + 1

    # -- What a call needs; made anew for each, because a clone of the saver may have another serializer

    def _codec(self) -> ValueCodec:
        return ValueCodec(self.serde)

    def _getter(self) -> Getter:
        return Getter(self._codec())

    def _putter(self) -> Putter:
        return Putter(self._codec(), self._messages_key)

    def _thread(self, thread_id: str) -> Thread:
        with self._lock:
            thread = self._threads.get(thread_id)
            if thread is None:
                thread = self._threads[thread_id] = Thread(ThreadSession.of(thread_id, self._user_id))
            self._threads.move_to_end(thread_id)
            if len(self._threads) > _THREADS:
                self._threads.popitem(last=False)
            return thread


def _thread_id(config: RunnableConfig) -> str:
    return str(config.get("configurable", {})["thread_id"])


def _namespace(config: RunnableConfig) -> str:
    return config.get("configurable", {}).get("checkpoint_ns") or ""
