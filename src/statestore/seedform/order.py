"""Where each record of a session file stands: its number, and its place in the bytes.

Whoever knows that reads a part of a long session at the price of that part. It holds as long as the bytes do, and
takes sixteen bytes a record.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import Final, NamedTuple

from statestore.records import RecordArrays, raw_items
from statestore.stored import Numbering, Records, StoredRecord

RECORDS_A_PART: Final = 500
BYTES_A_PART: Final = 1 << 18
"""How much is split and copied at once, if the records are asked for one by one."""

_LAST: Final = 2**63 - 1
_GAP: Final = b", \t\r\n"
"""What stands between two records of a JSON array, which are objects."""


class Column(NamedTuple):
    """One of the three lists: the numbers of its records, which ascend, where each begins, and where the last ends."""

    numbers: Sequence[int]
    places: Sequence[int]

    def tail(self, text: memoryview) -> memoryview:
        """The JSON array of the records that were added since, in a list that grew at its end."""
        end = self.places[-1]
        return memoryview(b"[" + bytes(text[end:]).lstrip(_GAP)) if end > len(b"[") else text

    def grown(self, numbers: Sequence[int], text: memoryview) -> Column:
        """The column with those that were added since, and the numbers that they have."""
        all_numbers, places = array("q", self.numbers), array("q", self.places)
        all_numbers.extend(numbers)
        end = places.pop()
        added = bytes(text[end:])
        items = raw_items(self.tail(text))
        if len(items) != len(numbers):
            raise ValueError(f"{len(items)} records cannot have {len(numbers)} numbers")
        place = 0
        for length in map(len, items):
            place = added.index(b"{", place)
            places.append(end + place)
            place += length
        places.append(end + place)
        return Column(all_numbers, places)

    def run(self, after: int, before: int) -> range:
        """Which of its records are numbered above ``after`` and below ``before``."""
        return range(bisect_right(self.numbers, after), bisect_left(self.numbers, before))

    def lengths(self, after: int, before: int) -> Iterator[tuple[int, int]]:
        """The same records' numbers, and how many bytes each takes."""
        for at in self.run(after, before):
            yield self.numbers[at], self.places[at + 1] - self.places[at]

    def cut(self, run: range, text: memoryview) -> memoryview:
        """A JSON array of some of its records."""
        some = bytes(text[self.places[run.start] : self.places[run.stop]]) if run else b""
        return memoryview(b"[%b]" % some.rstrip(_GAP))


class Order(NamedTuple):
    """The places of a session's records, all or the newest, and the keys that some of them carry."""

    columns: tuple[Column, Column, Column]
    keys: dict[int, str]
    left_out: tuple[int, int, int] = (0, 0, 0)
    """How many records of each list come before these, and before all of the others, too."""

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many records there are in each list, with those that are left out."""
        users, agents, events = (
            out + len(column.numbers) for out, column in zip(self.left_out, self.columns, strict=True)
        )
        return users, agents, events

    def tails(self, arrays: RecordArrays) -> RecordArrays:
        """The records that were added since, in lists that grew at their ends."""
        return RecordArrays(*(column.tail(text) for column, text in zip(self.columns, arrays, strict=True)))

    def grown(self, arrays: RecordArrays, added: Numbering) -> Order:
        """The order of all records, with those that were added since."""
        users, agents, events = (
            column.grown(numbers, text)
            for column, numbers, text in zip(self.columns, added.columns, arrays, strict=True)
        )
        return Order((users, agents, events), self.keys | added.keys, self.left_out)


_NOTHING: Final = Column((), array("q", [len(b"[")]))
NOTHING: Final = Order((_NOTHING, _NOTHING, _NOTHING), {})
"""The order of no records."""


class OrderedRecords(NamedTuple):
    """The records of a session file, read a part at a time."""

    arrays: RecordArrays
    order: Order

    @property
    def total(self) -> int:
        """How many there are."""
        return sum(self.order.counts)

    def count_below(self, seq: int) -> int:
        """How many come before a number."""
        return sum(bisect_left(column.numbers, seq) for column in self.order.columns)

    def holds(self, after: int | None, before: int | None, last: int | None) -> bool:
        """Whether a window has none of those that are left out."""
        if not any(self.order.left_out):
            return True
        if after is not None and after >= min(column.numbers[0] for column in self.order.columns if column.numbers) - 1:
            return True
        runs = [column.run(after or 0, _LAST if before is None else before) for column in self.order.columns]
        return last is not None and sum(map(len, runs)) >= last

    def window(self, after: int | None, before: int | None, last: int | None) -> Records:
        """Those that are numbered above ``after`` and below ``before``, at most the ``last`` ones."""
        after = 0 if after is None else after
        before = _LAST if before is None else before
        if last is not None:
            after = max(after, self._first_of_last(last, after, before) - 1)
        return self._between(after, before)

    def one_by_one(self, after: int, before: int = _LAST) -> Iterator[StoredRecord]:
        """Those that are numbered above ``after`` and below ``before``, in order."""
        while (end := self._end_of_part(after, before)) is not None:
            yield from self._between(after, end + 1).in_order()
            after = end

    def _between(self, after: int, before: int) -> Records:
        columns = self.order.columns
        runs = [column.run(after, before) for column in columns]
        numbers = [column.numbers[run.start : run.stop] for column, run in zip(columns, runs, strict=True)]
        texts = [column.cut(run, text) for column, run, text in zip(columns, runs, self.arrays, strict=True)]
        keys = self.order.keys
        carried = {seq: keys[seq] for some in numbers for seq in some if seq in keys} if keys else {}
        return Records(RecordArrays(*texts), Numbering(*(list(some) for some in numbers), keys=carried))

    def _first_of_last(self, count: int, after: int, before: int) -> int:
        """The number of the first of the last records between two numbers; one beyond all if there are none."""
        found: list[int] = []
        for column in self.order.columns:
            run = column.run(after, before)
            found += column.numbers[max(run.start, run.stop - count) : run.stop]
        return min(sorted(found)[-count:], default=_LAST)

    def _end_of_part(self, after: int, before: int) -> int | None:
        """The last number of the part that begins after a number; ``None`` if nothing is there."""
        end, size = None, 0
        lengths = (column.lengths(after, before) for column in self.order.columns)
        for end, length in islice(merge(*lengths), RECORDS_A_PART):  # noqa: B007 - the last one is what is asked for
            size += length
            if size >= BYTES_A_PART:
                break
        return end
