"""What is wrong with one session or one document, going by what is stored of it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from statestore.engines.inspecting import faults_of_id, faults_of_layout, faults_of_moments, faults_of_record
from statestore.engines.valkey.keys import place_in_listing
from statestore.engines.valkey.reading import HEAD, metadata_text
from statestore.jsontext import check_object
from statestore.records import AGENT, USER

_KINDS = {b"u": USER, b"a": AGENT, b"e": "event"}
_COUNTS = (b"u", "users"), (b"a", "agents"), (b"e", "events")


def inspect_session(
    session_id: str, header: dict[str, bytes], records: list[bytes], metadata: list[bytes], seq_of_key: list[bytes]
) -> Iterator[str]:
    """All that is wrong with a session."""
    yield from _inspect_header(session_id, header)
    seqs: list[int] = []
    for record in records:
        yield from _inspect_record(record, seqs)
    for letter, name in _COUNTS:
        found = sum(record[:1] == letter for record in records)
        if header.get(name) != b"%d" % found:
            yield f"it has {found} records of the {name}, and its header says {_shown(header.get(name))}"
    if seqs and not _is_above(header.get("next"), max(seqs)):
        yield f"it has a record {max(seqs)}, and {_shown(header.get('next'))} is the next number to be given out"
    try:
        text = metadata_text(metadata)
        check_object(text)
    except (ValueError, msgspec.DecodeError) as error:
        yield f"its metadata are not a JSON object: {error}"
    else:
        size = len(text) + sum(len(record) - HEAD for record in records)
        if header.get("size") != b"%d" % size:
            yield f"its header says {_shown(header.get('size'))} bytes, and it has {size}"
    known = set(seqs)
    for key, seq in zip(seq_of_key[::2], seq_of_key[1::2], strict=True):
        if not is_utf8(key):
            yield f"the key {_shown(key)!r} is not UTF-8"
        if not seq.isdigit() or int(seq) not in known:
            yield f"the key {_shown(key)!r} is of record {_shown(seq)}, which is not there"


def is_utf8(value: bytes) -> bool:
    """Whether it is a text, as all of ours are."""
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _shown(value: bytes | None) -> str:
    return "nothing" if value is None else value.decode(errors="replace")


def _is_above(text: bytes | None, number: int) -> bool:
    return text is not None and text.isdigit() and int(text) > number


def _inspect_header(session_id: str, header: dict[str, bytes]) -> Iterator[str]:
    yield from faults_of_id(session_id)
    for name, value in header.items():
        if not is_utf8(value):
            yield f"the field {name} of its header is not UTF-8: {_shown(value)[:40]!r}"
    missing = [name for name in ("id", "user", "created", "updated", "place", "version", "born") if name not in header]
    if missing:
        yield f"its header lacks {', '.join(missing)}"
        return
    yield from faults_of_moments(
        _shown(header["created"]),
        _shown(header["updated"]),
        is_listed_right=lambda moment: place_in_listing(moment) == _shown(header["place"]),
    )
    yield from faults_of_layout(header.get("layout"))
    if header["id"] != session_id.encode():
        yield f"its header says that it is {_shown(header['id'])!r}"


def _inspect_record(record: bytes, seqs: list[int]) -> Iterator[str]:
    """What is wrong with a record; its number is added to those before it."""
    letter, number = record[:1], record[1:HEAD]
    if letter not in _KINDS or not number.isdigit():
        yield f"it has a record that begins with {record[:HEAD]!r}, which we never write"
        return
    seq = int(number)
    if seqs and seq <= seqs[-1]:
        yield f"its record {seq} comes after {seqs[-1]}"
    seqs.append(seq)
    for fault in faults_of_record(_KINDS[letter], record[HEAD:]):
        yield f"record {seq}: {fault}"
