"""Calls to a cluster: each goes to the node that has its key, and all nodes work at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final

from statestore.engines.valkey.address import Address
from statestore.engines.valkey.calling import Caller, Command, settings_in
from statestore.engines.valkey.connecting import connect_server
from statestore.engines.valkey.pool import ConnectionPool

Node = tuple[str, int]
SLOTS: Final = 16384
_SCRIPTS: Final = ("EVALSHA", "EVAL")


class ClusterCaller(Caller):
    """A cluster. Which node has which slots is asked for at first, and again when one of them says otherwise."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._pools: dict[Node, ConnectionPool] = {}
        self._nodes: list[Node | None] = []
        self._asking = asyncio.Lock()

    def _connect(self) -> tuple[Callable[[], Awaitable[object]], Callable[[], object]]:
        self._pools, self._nodes = {}, []
        pools = self._pools

        async def close() -> None:
            for pool in pools.values():
                await pool.close()

        def abandon() -> None:
            for pool in pools.values():
                pool.abandon()

        return close, abandon

    def _pool(self, node: Node) -> ConnectionPool:
        if node not in self._pools:
            self._pools[node] = connect_server(self.address, node)
        return self._pools[node]

    # -- who has which slots

    async def _find_nodes(self) -> None:
        """Ask any node that answers who has which slots."""
        from statestore.engines.valkey.failures import DriverError  # noqa: PLC0415 - needs the driver

        async with self._asking:
            if self._nodes:
                return
            problem: Exception = ConnectionError("no node answers")
            for node in dict.fromkeys((*self._pools, *self.address.hosts)):
                try:
                    async with asyncio.timeout(self.address.timeout / 6):  # the others may answer
                        (reply,) = await self._pool(node).exchange([("CLUSTER", "SLOTS")])
                except DriverError as error:
                    problem = error
                    continue
                if isinstance(reply, Exception):
                    raise reply
                self._nodes = _nodes_of(reply, node[0])
                return
            raise problem

    async def _node_of(self, command: Command) -> Node:
        from redis.crc import key_slot  # noqa: PLC0415 - needs the driver
        from redis.exceptions import ClusterDownError  # noqa: PLC0415

        await self._find_nodes()
        key = command[3 if command[0] in _SCRIPTS else 1]
        assert not isinstance(key, int)
        node = self._nodes[key_slot(key.encode() if isinstance(key, str) else key)]
        if node is None:
            self._nodes = []
            raise ClusterDownError("CLUSTERDOWN Hash slot not served")
        return node

    # -- calling

    async def _attempt(self, commands: Sequence[Command]) -> list[Any]:
        from redis.exceptions import AskError, MovedError  # noqa: PLC0415 - needs the driver

        at_node: dict[Node, list[int]] = {}
        for index, command in enumerate(commands):
            at_node.setdefault(await self._node_of(command), []).append(index)
        replies: list[Any] = [None] * len(commands)

        async def exchange(node: Node, indexes: list[int]) -> None:
            found = await self._pool(node).exchange([commands[index] for index in indexes])
            for index, reply in zip(indexes, found, strict=True):
                replies[index] = reply

        results = await asyncio.gather(*(exchange(*part) for part in at_node.items()), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                self._nodes = []  # somebody else may have taken over
                raise result
        for index, reply in enumerate(replies):
            if isinstance(reply, MovedError):
                self._nodes = []
            elif isinstance(reply, AskError):  # the slot is on its way to another node, and this key is there already
                there: Any = (reply.host, reply.port)  # pyright: ignore[reportUnknownMemberType]
                _, replies[index] = await self._pool(there).exchange([("ASKING",), commands[index]])
        return replies

    async def scan(self, pattern: str) -> AsyncIterator[str]:
        await self._persist(self._known, keep_trying=True)
        for node in dict.fromkeys(node for node in self._nodes if node is not None):
            async for key in self._keys_at(self._pool(node), pattern):
                yield key

    async def _known(self) -> list[Any]:
        await self._find_nodes()
        return []

    async def settings_of(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        await self._persist(self._known, keep_trying=True)
        found: dict[str, dict[str, str]] = {}
        for host, port in dict.fromkeys(node for node in self._nodes if node is not None):
            commands = [("CONFIG", "GET", name) for name in names]
            found[f"{host}:{port}"] = settings_in(await self._pool((host, port)).exchange(commands))
        return found


def _nodes_of(reply: list[Any], asked: str) -> list[Node | None]:
    """The master of each slot; a node that does not know its own name is known by the name that we asked it by."""
    nodes: list[Node | None] = [None] * SLOTS
    for first, last, (host, port, *_), *_ in reply:
        nodes[first : last + 1] = [(host.decode() if host else asked, port)] * (last - first + 1)
    return nodes
