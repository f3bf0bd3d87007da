"""The driver, asyncpg: what we use of it, and loading it when an engine is made, not before."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from importlib import import_module
from typing import Any, Protocol

from statestore.errors import StoreUnavailable


class Row(Protocol):
    """What a statement gives back: values by place and by name."""

    def __getitem__(self, key: int | str) -> Any: ...

    def __iter__(self) -> Iterator[Any]: ...

    def __len__(self) -> int: ...


class Settings(Protocol):
    """What a server told when it was connected to."""

    in_hot_standby: str


class Connection(Protocol):
    """A connection to a server. Each call but `terminate` and the questions is a round trip."""

    async def fetch(self, query: str, /, *args: Any) -> list[Row]: ...

    async def fetchrow(self, query: str, /, *args: Any) -> Row | None: ...

    async def fetchval(self, query: str, /, *args: Any) -> Any: ...

    async def execute(self, query: str, /, *args: Any) -> str: ...

    def cursor(self, query: str, /, *args: Any) -> AsyncIterator[Row]: ...

    async def add_listener(self, channel: str, callback: Callable[..., None]) -> None: ...

    def add_termination_listener(self, callback: Callable[..., None]) -> None: ...

    def get_settings(self) -> Settings: ...

    def is_closed(self) -> bool: ...

    def is_in_transaction(self) -> bool: ...

    async def close(self) -> None: ...

    def terminate(self) -> None: ...


def load_driver() -> Any:
    """The driver's module; `StoreUnavailable` that says how to install it if it is missing."""
    try:
        return import_module("asyncpg")
    except ImportError as error:
        raise StoreUnavailable('PostgreSQL needs the driver asyncpg: pip install "statestore[postgres]"') from error
    except RuntimeError as error:
        raise StoreUnavailable(f"the driver asyncpg cannot be loaded while the interpreter ends ({error})") from error
