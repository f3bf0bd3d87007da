"""What can be wrong with what is stored, whatever the storage: for the checks of engines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Struct

from statestore.engines.columns import age_of, kind_of_column
from statestore.engines.versions import is_given_out
from statestore.errors import InvalidName, InvalidValue
from statestore.jsontext import check_object
from statestore.names import check_name, check_session_id, check_stored_category
from statestore.records import decode_body
from statestore.stored import Problem
from statestore.timestamps import nanoseconds

KEPT: Final = "it is kept as it is; export what can be read, and mend it by hand"

_UNREADABLE: Final = (msgspec.DecodeError, InvalidValue, UnicodeDecodeError, RecursionError, TypeError, AttributeError)
"""What decoding raises; the last two where a column holds what is not even text."""


def faults_of_id(session_id: str) -> Iterator[str]:
    """What is wrong with a session's id."""
    try:
        check_session_id(session_id)
    except InvalidName as error:
        yield f"its id breaks the naming rule: {error}"


def faults_of_moments(created: str, updated: str, *, is_listed_right: Callable[[int], bool]) -> Iterator[str]:
    """What is wrong with the moments of a session, and with the place that the last one gives it in listings."""
    try:
        nanoseconds(created)
        if not is_listed_right(nanoseconds(updated)):
            yield f"it is listed in a place that is not that of {updated}"
    except InvalidValue as error:
        yield str(error)


def faults_of_metadata(metadata: bytes) -> Iterator[str]:
    """What is wrong with a session's metadata."""
    try:
        check_object(metadata)
    except _UNREADABLE as error:
        yield f"its metadata are not a JSON object: {error}"


def faults_of_layout(layout: bytes | None) -> Iterator[str]:
    """What is wrong with a session's layout, if it has one."""
    try:
        if layout is not None:
            check_object(layout)
    except _UNREADABLE as error:
        yield f"its layout is not a JSON object: {error}"


def faults_of_record(kind: str, body: bytes) -> Iterator[str]:
    """What is wrong with a record."""
    try:
        decode_body(kind, body)
    except _UNREADABLE as error:
        yield f"it is not a record: {error}"


def faults_of_document(category: str, name: str, kind: str, body: bytes) -> Iterator[str]:
    """What is wrong with a document."""
    yield from faults_of_name(category, name)
    yield from faults_of_content(kind, body)


def faults_of_name(category: str, name: str) -> Iterator[str]:
    """What is wrong with where a document is kept."""
    try:
        check_stored_category(category)
        check_name(name)
    except InvalidName as error:
        yield f"its name breaks the naming rule: {error}"


def faults_of_content(kind: str, body: bytes) -> Iterator[str]:
    """What is wrong with what a document holds: one thing at most."""
    try:
        if kind == "json":
            msgspec.json.decode(body)
        if kind != "bin":
            body.decode()
    except _UNREADABLE as error:
        yield f"it is not {'JSON' if kind == 'json' else 'UTF-8'}: {error}"


class Counted(Struct):
    """What was counted among a session's records."""

    kinds: list[int]
    """How many messages, responses and events there are."""
    bytes: int = 0
    last: int = 0
    """The number of the last one."""


class Row(Struct):
    """What a row engine keeps of a session beside its records."""

    session_id: str
    version: str
    created: str
    updated: str
    age: tuple[int, int]
    next_seq: int
    counts: list[int]
    size: int
    metadata: bytes
    layout: bytes | None


def faults_of_row(row: Row, found: Counted) -> Iterator[str]:
    """What is wrong with the row of a session that has these records."""
    if found.kinds != row.counts:
        counted = "{} messages, {} responses and {} events"
        yield f"it has {counted.format(*found.kinds)}, and its header says {counted.format(*row.counts)}"
    if not is_given_out(row.version):
        yield f"its version is {row.version!r}, which we never give out"
    if found.last >= row.next_seq:
        yield f"it has a record {found.last}, and {row.next_seq} is the next number to be given out"
    if row.size != found.bytes + len(row.metadata):
        yield f"its header says {row.size} bytes, which it does not have"
    yield from faults_of_id(row.session_id)
    yield from faults_of_moments(row.created, row.updated, is_listed_right=lambda moment: age_of(moment) == row.age)
    yield from faults_of_metadata(row.metadata)
    yield from faults_of_layout(row.layout)


def faults_of_column(column: int, body: bytes) -> Iterator[str]:
    """What is wrong with a record in a column of a row engine."""
    if column not in (0, 1, 2):
        yield f"it is of the kind {column}, which is none"
    else:
        yield from faults_of_record(kind_of_column(column), body)


def told(where: str, faults: Iterable[str]) -> Iterator[Problem]:
    """Faults, as a check tells them."""
    for what in faults:
        yield Problem(where, what, KEPT)
