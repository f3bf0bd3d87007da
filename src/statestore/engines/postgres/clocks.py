"""What a server's clock shows, so that it can be told until when a commit may happen, whenever it gets to it."""

from __future__ import annotations

import asyncio
from typing import Final
from weakref import WeakKeyDictionary

from statestore.engines.postgres.driver import Connection
from statestore.engines.postgres.statements import SQL

SECONDS: Final = 60.0
"""How long a reading of a server's clock is good for: by then it has drifted, or somebody may have set it."""


class ServerClocks:
    """The clocks of servers, each read on the connection that asks, once a minute."""

    def __init__(self) -> None:
        self._read: WeakKeyDictionary[Connection, tuple[float, float]] = WeakKeyDictionary()

    async def at(self, connection: Connection, moment: float) -> float:
        """What the server's clock shows at a moment of the loop's clock, or a little less, in seconds since 1970."""
        clock = asyncio.get_running_loop().time
        reading = self._read.get(connection)
        if reading is None or clock() - reading[0] > SECONDS:
            shown = await connection.fetchval(SQL["clock"])
            reading = self._read[connection] = (clock(), shown)  # it was read before we heard of it
        heard, shown = reading
        return shown + moment - heard

    def forget(self, connection: Connection) -> None:
        """Read a clock anew: it does not show what it should."""
        self._read.pop(connection, None)
