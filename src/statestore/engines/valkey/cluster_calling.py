"""Calls to a cluster: each goes to the node that has its key, and all nodes work at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final

from statestore.engines.valkey.address import Address
from statestore.engines.valkey.calling import ATTEMPTS, Caller, settings_in
from statestore.engines.valkey.connecting import pool_for
from statestore.engines.valkey.driver import AskError, ClusterDownError, MovedError, ResponseError, key_slot
from statestore.engines.valkey.failures import may_pass
from statestore.engines.valkey.pool import Command, ConnectionPool
from statestore.engines.valkey.scripts import Script

Node = tuple[str, int]
SLOTS: Final = 16384
_SCRIPTS: Final = ("EVALSHA", "EVAL")


class ClusterCaller(Caller):
    """A cluster. Which node has which slots is asked for at first, and again when one of them says otherwise."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self._pools: dict[Node, ConnectionPool] = {}
        self._nodes: list[Node | None] = [None] * SLOTS
        """Who has which slot, as far as we were told."""
        self._is_known = False
        """Whether that still holds, as far as we know."""
        self._informant = address.hosts[0]
        """Who told."""

    def _begin(self) -> tuple[Callable[[], Awaitable[object]], Callable[[], object]]:
        pools = self._pools = {}
        self._is_known = False
        self._asking = asyncio.Lock()

        async def close() -> None:
            for pool in pools.values():
                await pool.close()

        def abandon() -> None:
            for pool in pools.values():
                pool.abandon()

        return close, abandon

    def _pool(self, node: Node) -> ConnectionPool:
        if node not in self._pools:
            self._pools[node] = pool_for(self.address, node)
        return self._pools[node]

    # -- who has which slots

    async def _find_nodes(self) -> Exception | None:
        """See that we know who has which slots; why nobody told."""
        try:
            async with asyncio.timeout(self.address.timeout / ATTEMPTS), self._asking:
                return None if self._is_known else await self._ask_around()
        except TimeoutError as error:
            return error

    async def _ask_around(self) -> Exception | None:
        """Ask who told last time, and if it does not tell all the others at once; why none of them did."""
        problem = await self._ask(self._informant)
        if problem is None:
            return None
        others = {*self._masters(), *self.address.hosts} - {self._informant}
        asking = [asyncio.create_task(self._ask(node)) for node in others]
        try:
            for answer in asyncio.as_completed(asking):
                another = await answer
                if another is None:
                    return None
                problem = min(problem, another, key=may_pass)  # a refusal says more than silence
            return problem
        finally:
            for task in asking:
                task.cancel()

    async def _ask(self, node: Node) -> Exception | None:
        """Ask a node who has which slots; why it did not tell."""
        (reply,) = await self._exchange(self._pool(node), [("CLUSTER", "SLOTS")], share=2 * ATTEMPTS)
        if isinstance(reply, Exception):
            return reply
        self._nodes, self._is_known, self._informant = _nodes_of(reply, node[0]), True, node
        return None

    def _masters(self) -> list[Node]:
        """All nodes that have slots."""
        return list(dict.fromkeys(node for node in self._nodes if node is not None))

    def _node_of(self, command: Command) -> Node | None:
        """The node that has a command's key; none if nobody has its slot."""
        key = command[3 if command[0] in _SCRIPTS else 1]
        assert not isinstance(key, int)
        return self._nodes[key_slot(key.encode() if isinstance(key, str) else key)]

    # -- calling

    async def _attempt(self, commands: Sequence[Command], script: Script | None, besides: list[Command]) -> list[Any]:
        problem = await self._find_nodes()
        if problem is not None:
            return [problem] * len(commands)
        at_node: dict[Node | None, list[int]] = {}
        for index, command in enumerate(commands):
            at_node.setdefault(self._node_of(command), []).append(index)
        along: dict[Node | None, list[Command]] = {node: [] for node in at_node}
        staying: list[Command] = []
        for command in besides:
            along.get(self._node_of(command), staying).append(command)
        besides[:] = staying
        replies: list[Any] = [None] * len(commands)

        async def attempt(node: Node | None, indexes: list[int]) -> None:
            there = [commands[index] for index in indexes]
            found = await self._exchange_at(node, there, along[node])
            found = await self._with_text(script, there, found, partial(self._exchange_at, node))
            for index, reply in zip(indexes, found, strict=True):
                replies[index] = reply

        await asyncio.gather(*(attempt(*part) for part in at_node.items()))
        if any(map(_tells_of_others, replies)):
            self._is_known = False
        return replies

    async def _exchange_at(
        self, node: Node | None, commands: Sequence[Command], along: Sequence[Command] = ()
    ) -> list[Any]:
        """Send commands to the node that has their slots; where it sends us on, to the one that is to have them."""
        if node is None:
            return [ClusterDownError("CLUSTERDOWN Hash slot not served")] * len(commands)
        replies = (await self._exchange(self._pool(node), [*commands, *along]))[: len(commands)]

        async def follow(index: int, host: str, port: int) -> None:
            _, replies[index] = await self._exchange(self._pool((host, port)), [("ASKING",), commands[index]])

        await asyncio.gather(
            *(
                follow(index, reply.host, reply.port)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
                for index, reply in enumerate(replies)
                if isinstance(reply, AskError) and not isinstance(reply, MovedError)
            )
        )
        return replies

    async def _known_masters(self) -> list[Node]:
        """All nodes that have slots, as soon as somebody tells."""

        async def find(_: Sequence[Command]) -> list[Any]:
            return [await self._find_nodes()]

        (problem,) = await self._persist(find, [("CLUSTER", "SLOTS")])
        self.granted(problem)
        return self._masters()

    async def scan(self, pattern: str) -> AsyncIterator[str]:
        for node in await self._known_masters():
            async for key in self._keys_at(self._pool(node), pattern):
                yield key

    async def settings_of(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        found: dict[str, dict[str, str]] = {}
        for host, port in await self._known_masters():
            commands = [("CONFIG", "GET", name) for name in names]
            replies = await self._persist(partial(self._exchange, self._pool((host, port))), commands)
            found[f"{host}:{port}"] = settings_in(map(self.granted, replies))
        return found


def _tells_of_others(reply: Any) -> bool:
    """Whether somebody else has a slot, or may have taken over, going by a reply."""
    if isinstance(reply, ResponseError):
        return isinstance(reply, (ClusterDownError, MovedError))
    return isinstance(reply, Exception)


def _nodes_of(reply: list[Any], asked: str) -> list[Node | None]:
    """The master of each slot; a node that does not know its own name is known by the name that we asked it by."""
    nodes: list[Node | None] = [None] * SLOTS
    for first, last, (host, port, *_), *_ in reply:
        nodes[first : last + 1] = [(host.decode() if host else asked, port)] * (last - first + 1)
    return nodes
