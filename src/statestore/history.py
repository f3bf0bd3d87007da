"""The list type that a session keeps its messages in: a list that knows what was done to it.

An append is noted, so that a save costs what is new. Anything else (an insert, a removal, a sort) is a
rewrite of history, which is told of beforehand, so that what was stored can be remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, SupportsIndex, TypeVar, cast, overload

T = TypeVar("T")


class History(list[T]):
    """A list of frozen records. Append to it freely; anything else is a rewrite, which a save may refuse."""

    __slots__ = ("_accepts", "_add", "_before_edit")

    def __init__(
        self, records: Iterable[T], accepts: type[T], add: Callable[[list[T], T], None], before_edit: Callable[[], None]
    ) -> None:
        """``add`` puts a record at the end and takes note of it; ``before_edit`` is told of anything else."""
        super().__init__(records)
        self._accepts = accepts
        self._add = add
        self._before_edit = before_edit

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

    def insert(self, index: SupportsIndex, record: T, /) -> None:
        self._check(record)
        self._before_edit()
        super().insert(index, record)

    def pop(self, index: SupportsIndex = -1, /) -> T:
        self._before_edit()
        return super().pop(index)

    def remove(self, record: T, /) -> None:
        self._before_edit()
        super().remove(record)

    def clear(self) -> None:
        self._before_edit()
        super().clear()

    def sort(self, *, key: Any = None, reverse: bool = False) -> None:
        self._before_edit()
        cast("list[Any]", super()).sort(key=key, reverse=reverse)

    def reverse(self) -> None:
        self._before_edit()
        super().reverse()

    @overload
    def __setitem__(self, index: SupportsIndex, value: T, /) -> None: ...
    @overload
    def __setitem__(self, index: slice, value: Iterable[T], /) -> None: ...
    def __setitem__(self, index: Any, value: Any, /) -> None:
        records = list(value) if isinstance(index, slice) else [value]
        for record in records:
            self._check(record)
        self._before_edit()
        super().__setitem__(cast("Any", index), records if isinstance(index, slice) else value)

    def __delitem__(self, index: SupportsIndex | slice, /) -> None:
        self._before_edit()
        super().__delitem__(index)

    def __imul__(self, times: SupportsIndex, /) -> History[T]:  # type: ignore[override, misc]
        self._before_edit()
        super().__imul__(times)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (list, (list(self),))

    def _check(self, record: object) -> None:
        if not isinstance(record, self._accepts):
            wanted = self._accepts.__name__
            raise TypeError(f"this list holds {wanted} objects, not {type(record).__name__}")
