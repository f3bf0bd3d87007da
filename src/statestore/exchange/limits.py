"""What a store takes of what it is given: an import has to keep the same limits as everybody who makes a session."""

from __future__ import annotations

from typing import Final

import msgspec

from statestore.errors import CorruptData, InvalidValue
from statestore.jsontext import MAX_DEPTH, check_label, json_text, members
from statestore.records import Event, Record, decoded_value
from statestore.stored import StoredSession

_ADVICE: Final = "change it in the file, or copy the store that it is from (statestore copy), which keeps it as it is"
_decode = msgspec.json.Decoder().decode
_pack = msgspec.msgpack.Encoder().encode


def beyond_limits(stored: StoredSession) -> str | None:
    """What of a session no store takes, and what to do; another program may have written it nevertheless."""
    try:
        _check_head(stored)
        _check_records(stored)
    except (InvalidValue, CorruptData) as error:
        return f"{error}: {_ADVICE}"
    return None


def _check_head(stored: StoredSession) -> None:
    check_label(stored.fields.user_id, "the user id")
    if stored.fields.project_id is not None:
        check_label(stored.fields.project_id, "project_id")
    for key, text in members(stored.metadata).items():
        check_label(key, f"the metadata key {key[:40]!r}")
        _check_value(text, f"metadata[{key!r}]")
    for name, text in members(stored.layout or b"{}").items():
        _check_value(text, f"the field {name!r}")


def _check_records(stored: StoredSession) -> None:
    columns = zip(stored.records.numbering.columns, stored.records.decoded(), strict=True)
    for seqs, records in columns:
        for seq, record in zip(seqs, records, strict=True):
            try:
                _check_record(record)
            except (InvalidValue, CorruptData) as error:
                raise InvalidValue(f"record {seq}: {error}") from error


def _check_record(record: Record) -> None:
    """Look at what may be any value: an event's data, and fields beyond our own."""
    text = getattr(record, "body", None) or getattr(record, "data_json", None)
    if text is None or _is_surely_within(bytes(text)):
        return
    if isinstance(record, Event):
        json_text(record.data, "an event's data")
    json_text(record.extra, "extra")


def _check_value(text: bytes, where: str) -> None:
    if not _is_surely_within(text):
        json_text(decoded_value(text), where)


def _is_surely_within(text: bytes) -> bool:
    """Whether a value needs no closer look, which would take long for each: few brackets, no number too large."""
    if text.count(b"[") + text.count(b"{") > MAX_DEPTH:
        return False
    try:
        _pack(_decode(text))  # raises beyond 64 bits, as JSON's own encoder does not
    except (msgspec.DecodeError, UnicodeDecodeError, OverflowError):
        return False
    return True
