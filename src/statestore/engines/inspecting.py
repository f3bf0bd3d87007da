"""What can be wrong with what is stored, whatever the storage: for the checks of engines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from statestore.errors import InvalidName, InvalidValue
from statestore.jsontext import members
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
        members(metadata)
    except _UNREADABLE as error:
        yield f"its metadata are not a JSON object: {error}"


def faults_of_record(kind: str, body: bytes) -> Iterator[str]:
    """What is wrong with a record."""
    try:
        decode_body(kind, body)
    except _UNREADABLE as error:
        yield f"it is not a record: {error}"


def faults_of_document(category: str, name: str, kind: str, body: bytes) -> Iterator[str]:
    """What is wrong with a document."""
    try:
        check_stored_category(category)
        check_name(name)
    except InvalidName as error:
        yield f"its name breaks the naming rule: {error}"
    try:
        if kind == "json":
            msgspec.json.decode(body)
        if kind != "bin":
            body.decode()
    except _UNREADABLE as error:
        yield f"it is not {'JSON' if kind == 'json' else 'UTF-8'}: {error}"


def told(where: str, faults: Iterable[str]) -> Iterator[Problem]:
    """Faults, as a check tells them."""
    for what in faults:
        yield Problem(where, what, KEPT)
