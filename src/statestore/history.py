"""The list type that a session keeps its messages in: a list that knows what was done to it.

An append is noted, so that a save costs what is new. Anything else (an insert, a removal, a sort) is a
rewrite of history, which is told of beforehand, so that what was stored can be remembered.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, SupportsIndex, TypeVar, cast, overload
from weakref import ref

T = TypeVar("T")


class Keeper(Protocol):
    """Who is told what is done to a list."""

    def append_to(self, history: list[Any], record: Any) -> None:
        """Put a record at the end, and take note of it."""
        ...

    def before_edit(self, history: list[Any]) -> None:
        """Anything else is about to be done to the list."""
        ...


class History(list[T]):
    """A list of frozen records. Append to it freely; anything else is a rewrite, which a save may refuse."""

    __slots__ = ("_accepts", "_keeper")

    def __init__(self, records: Iterable[T], accepts: type[T], keeper: Keeper) -> None:
        super().__init__(records)
        self._accepts = accepts
        self._keeper = ref(keeper)  # weak: a list that outlives its session is a plain list

    def append(self, record: T, /) -> None:
        """Add a record at the end."""
        self._check(record)
        keeper = self._keeper()
        if keeper is None:
            super().append(record)
        else:
            keeper.append_to(self, record)

    def extend(self, records: Iterable[T], /) -> None:
        """Add records at the end."""
        new = list(records)
        for record in new:
            self._check(record)
        for record in new:
            self.append(record)

    def __iadd__(self, records: Iterable[T], /) -> History[T]:  # type: ignore[override, misc]
        self.extend(records)
        return self

    def insert(self, index: SupportsIndex, record: T, /) -> None:
        self._check(record)
        self._edit()
        super().insert(index, record)

    def pop(self, index: SupportsIndex = -1, /) -> T:
        self._edit()
        return super().pop(index)

    def remove(self, record: T, /) -> None:
        self._edit()
        super().remove(record)

    def clear(self) -> None:
        self._edit()
        super().clear()

    def sort(self, *, key: Any = None, reverse: bool = False) -> None:
        self._edit()
        cast("list[Any]", super()).sort(key=key, reverse=reverse)

    def reverse(self) -> None:
        self._edit()
        super().reverse()

    @overload
    def __setitem__(self, index: SupportsIndex, value: T, /) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: Iterable[T], /) -> None: ...
    def __setitem__(self, index: Any, value: Any, /) -> None:
        records = list(value) if isinstance(index, slice) else [value]
        for record in records:
            self._check(record)
        self._edit()
        super().__setitem__(cast("Any", index), records if isinstance(index, slice) else value)

    def __delitem__(self, index: SupportsIndex | slice, /) -> None:
        self._edit()
        super().__delitem__(index)

    def __imul__(self, times: SupportsIndex, /) -> History[T]:  # type: ignore[override, misc]
        self._edit()
        super().__imul__(times)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (list, (list(self),))

    def _check(self, record: object) -> None:
        if not isinstance(record, self._accepts):
            wanted = self._accepts.__name__
            raise TypeError(f"this list holds {wanted} objects, not {type(record).__name__}")

    def _edit(self) -> None:
        keeper = self._keeper()
        if keeper is not None:
            keeper.before_edit(self)
