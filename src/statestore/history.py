"""The list type that a session keeps its messages in: a list that knows what was done to it.

An append is noted, so that a save costs what is new. Anything else (an insert, a removal, a sort) is a
rewrite of history: the list then remembers what it was, for the save to compare with.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, SupportsIndex, TypeVar, cast, overload

T = TypeVar("T")


class History(list[T]):
    """A list of frozen records that notes appends and remembers its stored part once it is edited."""

    __slots__ = ("_accepts", "_add", "stored", "stored_count")

    def __init__(self, records: Iterable[T], accepts: type[T], add: Callable[[list[T], T], None]) -> None:
        """``add`` puts a record at the end of the list, and takes note of it."""
        super().__init__(records)
        self._accepts = accepts
        self._add = add
        self.stored_count = len(self)
        """How many of the records, from the first, the store has."""
        self.stored: list[T] | None = None
        """Those records, once the list was edited; until then they are simply the first ones."""

    def append(self, record: T, /) -> None:
        """Add a record at the end."""
        self._check(record)
        self._add(self, record)

    def extend(self, records: Iterable[T], /) -> None:
        """Add records at the end."""
        for record in list(records):
            self.append(record)

    def __iadd__(self, records: Iterable[T], /) -> History[T]:  # type: ignore[override, misc]
        self.extend(records)
        return self

    def become(self, records: Iterable[T]) -> None:
        """Hold these records instead; the list itself, as after ``+=``, changes nothing."""
        if records is not self:
            self[:] = records

    def stored_part(self) -> list[T]:
        """The records that the store has, as they were when they were loaded or saved."""
        return self[: self.stored_count] if self.stored is None else self.stored

    def note_appended(self, records: list[T]) -> None:
        """The store has these too now, after what it had."""
        self.stored_count += len(records)
        if self.stored is not None:
            self.stored += records

    def note_stored(self, snapshot: list[T]) -> None:
        """The store has exactly this now, which is what the list was a moment ago."""
        self.stored_count = len(snapshot)
        unchanged = len(self) >= len(snapshot) and all(map(operator.is_, self, snapshot))
        self.stored = None if unchanged else snapshot

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
        if self.stored is None:
            self.stored = self[: self.stored_count]
