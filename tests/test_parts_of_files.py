"""Parts of a session file: each has the records that it should have, and costs no more than they do."""

from __future__ import annotations

import json
from heapq import merge
from itertools import cycle
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from faces import Face
from statestore import AgentResponse, Event, Session, StateStore, UserMessage
from statestore.seedform import newest, order, text
from statestore.seedform.text import SessionText
from statestore.stored import StoredRecord
from statestore.timestamps import nanoseconds

bounds = st.none() | st.integers(-1, 70)
kinds = st.lists(st.tuples(st.sampled_from("uae"), st.integers(1, 9), st.booleans()), max_size=20)


def moment(number: int) -> str:
    return f"2026-01-01T00:00:{number % 60:02}Z"


def session_text(records: list[tuple[str, int, bool]], gap: str) -> SessionText:
    """A file whose records have these kinds, steps between their numbers, and keys; and are laid out in this way."""
    lists: dict[str, list[str]] = {"u": [], "a": [], "e": []}
    seqs: dict[str, list[int]] = {"u": [], "a": [], "e": []}
    keys: dict[str, Any] = {}
    seq = 0
    for letter, step, is_keyed in records:
        seq += step
        record = {"kind": "t", "data": " ,[]{}"} if letter == "e" else {"content": f"{seq} ,[]{{}}"}
        if is_keyed:
            keys[f"k{seq}"] = (letter, len(lists[letter]), moment(seq))
        lists[letter].append(json.dumps(record | {"timestamp": moment(seq)}))
        seqs[letter].append(seq)
    users, agents, events = (f"[{gap}{f'{gap},{gap}'.join(some)}{gap}]" for some in lists.values())
    notes = f'{{"next": {seq + 1}, "seqs": {json.dumps(list(seqs.values()))}, "keys": {json.dumps(keys)}, '
    head = f'{{"id": "s", "user_id": "u", "created_at": "{moment(0)}", "updated_at": "{moment(0)}"'
    metadata = f'{{"statestore": {notes}"events": {events}}}}}'
    body = f'{head}, "user_messages": {users}, "agent_responses": {agents}, "metadata": {metadata}}}'
    return SessionText(body.encode())


def between(whole: list[StoredRecord], after: int | None, before: int | None, last: int | None) -> list[StoredRecord]:
    found = [r for r in whole if (after is None or r.seq > after) and (before is None or r.seq < before)]
    return found if last is None else found[len(found) - min(last, len(found)) :]


@given(kinds, st.sampled_from(["", " ", "\n    ", " \t\r\n"]), bounds, bounds, st.none() | st.integers(0, 30))
def test_a_part_has_the_records_between_two_numbers(
    records: list[tuple[str, int, bool]], gap: str, after: int | None, before: int | None, last: int | None
) -> None:
    file = session_text(records, gap)
    whole = file.records.in_order()
    assert len(whole) == len(records)
    assert file.window(after, before, last).in_order() == between(whole, after, before, last)
    assert list(file.ordered().one_by_one(0)) == whole


@pytest.mark.parametrize("size", [1, 100, 1 << 20])
@pytest.mark.parametrize("count", [1, 2, 100])
def test_records_come_one_by_one_whatever_the_size_of_parts(
    size: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(order, "BYTES_A_PART", size)
    monkeypatch.setattr(order, "RECORDS_A_PART", count)
    file = session_text([("u", 1, False), ("a", 3, True), ("e", 1, True), ("u", 40, False), ("u", 1, True)], " ")
    whole = file.records.in_order()
    assert list(file.ordered().one_by_one(0)) == whole
    assert list(file.ordered().one_by_one(4, 46)) == whole[2:4]


forms = ["00:01Z", "00:01.5Z", "00:01.50Z", "00:01.500001z", "00:02.000000001Z", "00:03Z", "00:02+00:01"]
spoken = st.lists(st.tuples(st.sampled_from("uuuae"), st.sampled_from(forms)), max_size=20)
gaps = st.sampled_from([("",), ("\n    ",), ("\n    ", ""), ("\n    ", "\n    ", "")])


def unnumbered_text(records: list[tuple[str, str]], gaps: tuple[str, ...] | None) -> SessionText:
    """A file that leaves it to these moments how its records are numbered; without gaps, as we would write it."""
    lists: dict[str, list[dict[str, Any]]] = {"u": [], "a": [], "e": []}
    for number, (letter, second) in enumerate(records):
        data = {"kind": "t", "data": [{"kind": "},{"}, {}]} if letter == "e" else {"content": f"{number}\n    {{"}
        lists[letter].append(data | {"timestamp": f"2026-01-01T00:{second}"})
    if gaps is None:
        users, agents, events = (json.dumps(some, indent=2).replace("\n", "\n  ") for some in lists.values())
    else:
        users, agents, events = (laid_out(some, gaps) for some in lists.values())
    head = f'"id": "s",\n  "user_id": "u",\n  "user_messages": {users},\n  "agent_responses": {agents}'
    times = f'"created_at": "{moment(0)}",\n  "updated_at": "{moment(0)}"'
    metadata = f'{{"statestore": {{"events": {events}}}}}'
    return SessionText(f'{{\n  {head},\n  {times},\n  "metadata": {metadata}\n}}'.encode())


def laid_out(records: list[dict[str, Any]], gaps: tuple[str, ...]) -> str:
    """A JSON array with gaps of its own before its records, and an end as usual."""
    pairs = zip(cycle(gaps), map(json.dumps, records), strict=False)
    return f"[{','.join(gap + record for gap, record in pairs)}\n  ]" if records else "[]"


@given(spoken, st.none() | gaps, bounds, bounds, st.none() | st.integers(0, 9))
@example([("u", "00:03Z"), ("a", "00:01Z"), ("u", "00:01Z"), ("a", "00:02Z"), ("a", "00:03Z")], None, None, None, 2)
@example(
    [("u", "00:60.5Z"), *(("a", f"01:0{second}Z") for second in ("0.1", "0.3", "2", "3", "4"))], None, None, None, 4
)
@example([("u", f"00:0{number}Z") for number in range(8)], ("\n    ", "\n    ", ""), None, None, 3)
def test_the_newest_records_are_the_same_whether_all_are_put_in_order_or_not(
    records: list[tuple[str, str]],
    gaps: tuple[str, ...] | None,
    after: int | None,
    before: int | None,
    last: int | None,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "RECORDS_A_PART", 3)
        file = unnumbered_text(records, gaps)
        whole = file.records.in_order()
        for _ in range(2):
            assert file.window(after, before, last).in_order() == between(whole, after, before, last)
            assert file.window(None, None, 2).in_order() == whole[-2:]
        assert list(file.ordered().one_by_one(0)) == whole


@given(spoken)
def test_the_list_with_the_earliest_head_is_next(records: list[tuple[str, str]]) -> None:
    file = unnumbered_text(records, None)
    lists = [list(map(nanoseconds, map(attrgetter("timestamp_text"), column))) for column in file.records.decoded()]
    heads = merge(*([(moment, index) for moment in column] for index, column in enumerate(lists)))
    expected: list[list[int]] = [[], [], []]
    for seq, (_, index) in enumerate(heads, 1):
        expected[index].append(seq)
    assert [list(column) for column in file.records.numbering.columns] == expected


def test_the_newest_records_of_a_long_session_are_put_in_order_without_the_rest(
    files_store: StateStore, face: Face, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(files_store, 2000)
    files_store.append("s", *(Event("tool", [{"kind": number}]) for number in range(20)))
    numbered = Numbered(monkeypatch)
    other = face.open(directory)
    assert [entry.seq for entry in other.timeline("s", limit=3)] == [2018, 2019, 2020]
    assert numbered.take() == [order.RECORDS_A_PART]
    other.append("s", AgentResponse("one more"))
    assert [entry.seq for entry in other.timeline("s", limit=3)] == [2019, 2020, 2021]
    assert numbered.take() == [1]
    assert [entry.seq for entry in other.timeline("s", before=2000, limit=2)] == [1998, 1999]
    assert [entry.seq for entry in other.timeline("s", after=2018)] == [2019, 2020, 2021]
    assert numbered.take() == []
    assert [entry.seq for entry in other.timeline("s", before=3, limit=2)] == [1, 2]
    assert numbered.take() == [2021]


def test_a_session_that_is_read_in_parts_is_put_in_order_once(
    files_store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(files_store, 50)
    numbered = Numbered(monkeypatch)
    before, found = None, []
    while page := files_store.timeline("s", before=before, limit=10):
        found[:0] = [entry.seq for entry in page]
        before = page[0].seq
    assert found == list(range(1, 51))
    assert numbered.take() == [50]


def test_what_is_appended_is_put_in_order_without_the_rest(
    files_store: StateStore, face: Face, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(files_store, 50)
    files_store.load_session("s", last=1)
    numbered = Numbered(monkeypatch)
    for number in range(10):
        files_store.append("s", UserMessage(f"question {number}"))
        files_store.append("s", AgentResponse(f"answer {number}"))
        last = files_store.timeline("s", limit=3)
        assert [entry.seq for entry in last] == list(range(50 + 2 * number, 53 + 2 * number))
    assert numbered.take() == [2] * 10
    assert files_store.timeline("s", before=1000) == face.open(directory).timeline("s")


def test_an_event_in_between_is_put_in_order(files_store: StateStore, face: Face, directory: Path) -> None:
    fill(files_store, 5)
    for number in range(5):
        assert [entry.seq for entry in files_store.timeline("s", limit=2)] == [4 + 2 * number, 5 + 2 * number]
        files_store.append("s", Event("tool", number))
        files_store.append("s", AgentResponse(str(number)), keys=[f"k{number}"])
    assert files_store.timeline("s", before=1000) == face.open(directory).timeline("s")


def fill(store: StateStore, count: int) -> None:
    store.save_session(Session("alice", "s"))
    store.append("s", *(UserMessage(str(number)) for number in range(count)))


class Numbered:
    """How many records were numbered at a time, since the last look."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._counts: list[int] = []
        numbering_of = text.numbering_of

        def counted(notes: Any, columns: Any) -> Any:
            self._counts.append(sum(map(len, columns)))
            return numbering_of(notes, columns)

        for module in (text, newest):
            monkeypatch.setattr(module, "numbering_of", counted)

    def take(self) -> list[int]:
        counts, self._counts = self._counts, []
        return counts
