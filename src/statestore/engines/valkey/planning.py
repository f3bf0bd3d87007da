"""A batch as one call of a script: everything that can be worked out beforehand is, the rest is up to the server."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from statestore.engine import (
    NOTHING,
    Batch,
    Change,
    ChangeSession,
    DeleteCategory,
    DeleteDocument,
    DeleteSession,
    Failure,
    Outcome,
    PreconditionFailed,
    PutDocument,
    Requires,
)
from statestore.engines.valkey.keys import Keys, place_in_listing
from statestore.engines.valkey.pool import Command
from statestore.engines.versions import new_version
from statestore.errors import CorruptData, CorruptSession, InvalidValue, NotSupported
from statestore.jsontext import json_string
from statestore.records import column_of
from statestore.stored import Version
from statestore.timestamps import nanoseconds

MAX_SEQ: Final = 2**53 - 1
"""Scripts count in floating point."""
TOKEN_LIFE: Final = 3_600_000
"""Milliseconds for which the outcome of a batch is kept."""

_COLUMNS: Final = "uae"
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(list[Any]).decode


class Plan(NamedTuple):
    """What a script is called with: keys that tell where, and its arguments.

    The token's key is one of them, which is not there at first: so a cluster that moves the slot makes no batch in it
    until the slot has arrived, and whoever asks again asks where the outcome is.
    """

    keys: Sequence[str]
    arguments: list[bytes]
    token: str
    """The key under which the outcome is kept, for whoever has to ask again."""


class Listed(NamedTuple):
    """Where a session was listed before a change, and where it is to be now."""

    id: str
    user_id: str
    before: str | None
    now: str | None


def entries_to_add(keys: Keys, listed: Listed) -> list[Command]:
    """The commands that list a session where it is to be."""
    if listed.now is None or listed.before == listed.now:
        return []
    entry = f"{listed.now}{listed.id}"
    commands: list[Command] = [("ZADD", index, 0, entry) for index in (keys.newest, keys.newest_of(listed.user_id))]
    return commands if listed.before is not None else [*commands, ("ZADD", keys.ids, 0, listed.id)]


def entries_to_remove(keys: Keys, listed: Listed) -> list[Command]:
    """The commands that remove a session from where it was."""
    if listed.before is None or listed.before == listed.now:
        return []
    entry = f"{listed.before}{listed.id}"
    commands: list[Command] = [("ZREM", index, entry) for index in (keys.newest, keys.newest_of(listed.user_id))]
    return commands if listed.now is not None else [*commands, ("ZREM", keys.ids, listed.id)]


class Planner:
    """Makes plans for one store."""

    def __init__(self, keys: Keys, *, ttl: int, changes_kept: int, has_indexes: bool) -> None:
        self._keys = keys
        self._ttl = ttl
        self._changes_kept = changes_kept
        self._has_indexes = has_indexes

    def plan(self, batch: Batch) -> Plan:
        """The call that makes a batch, once, however often it is repeated."""
        blobs: list[bytes] = []
        changes = [self._planned(change, blobs) for change in batch]
        item = changes[0][1] if len(batch) == 1 else self._keys.prefix
        token = self._keys.token(item, os.urandom(12).hex())
        head = (self._keys.prefix, token, TOKEN_LIFE, self._ttl, self._changes_kept, self._has_indexes, changes)
        return Plan((*self._keys_of(batch, item), token), [_pack(head), *blobs], token)

    def _keys_of(self, batch: Batch, item: str) -> Sequence[str]:
        """The keys of the one item of a batch; of several, any key will do, since a cluster makes no such batch."""
        match batch:
            case [ChangeSession() | DeleteSession()]:
                return self._keys.parts_of(item)
            case [PutDocument(category, name, kind) | DeleteDocument(category, name, kind)]:
                return item, self._keys.document(category, name, kind)
            case _:
                return (item,)

    def _planned(self, change: Change, blobs: list[bytes]) -> tuple[Any, ...]:
        if isinstance(change, ChangeSession):
            return self._session_change(change, blobs)
        match change:
            case DeleteSession(session_id, requires):
                return (2, self._keys.session(session_id), session_id, _conditions(requires))
            case PutDocument(category, name, kind, body, requires):
                blobs.append(body)
                version = new_version()
                return (3, self._keys.category(category), name, kind, _conditions(requires), version, category)
            case DeleteDocument(category, name, kind, requires):
                return (4, self._keys.category(category), name, kind, _conditions(requires), category)
            case DeleteCategory(category):
                return (5, self._keys.category(category), category)

    def _session_change(self, change: ChangeSession, blobs: list[bytes]) -> tuple[Any, ...]:
        create = change.create
        if create is not None:
            _check_number(create.next_seq)
        born: Any = create and (create.user_id, create.created, create.layout is not None, create.next_seq)
        records = [
            (
                _COLUMNS[column_of(record.kind)],
                False if record.seq is None else max(_check_number(record.seq), 0),
                False if record.key is None else record.key,
                False if record.opening is None else record.opening,
            )
            for record in change.append
        ]
        cut = change.truncate_after
        planned = (
            1,
            self._keys.session(change.id),
            change.id,
            _conditions(change.requires),
            born or False,
            place_in_listing(nanoseconds(change.updated)),
            change.updated,
            new_version(),
            False if cut is None else min(max(cut, 0), MAX_SEQ),
            records,
            [part for name, value in change.set_fields.items() for part in (name, False if value is None else value)],
            [json_string(name, "a metadata key").decode() for name in change.set_metadata],
            [json_string(name, "a metadata key").decode() for name in change.unset_metadata],
        )
        if create is not None and create.layout is not None:
            blobs.append(create.layout)
        blobs += [record.body for record in change.append]
        blobs += change.set_metadata.values()
        return planned


def _conditions(requires: Requires) -> Any:
    """What must hold, as the script has it; false if that is nothing."""
    if requires is NOTHING:
        return False
    return (
        requires.absent,
        requires.present,
        False if requires.version is None else _version_text(requires.version),
        False if requires.owner is None else requires.owner,
        False if requires.created is None else requires.created,
    )


def _version_text(version: Version) -> str:
    """A version as the script has it. What cannot be one of ours becomes a text that is none, either."""
    return version if isinstance(version, str) and version.isascii() else f"none of ours: {version!r}"


def _check_number(seq: int) -> int:
    if seq > MAX_SEQ:
        raise NotSupported(f"a session in Valkey has sequence numbers up to {MAX_SEQ}, and {seq} is beyond")
    return seq


def outcomes_of(batch: Batch, reply: bytes) -> list[Outcome]:
    """What became of a batch; raises if it was not made."""
    results: list[Any]
    kind, *results = _unpack(reply)
    if kind == 0:
        raise PreconditionFailed(
            [Failure(index, reason) for index, reason in zip(results[::2], results[1::2], strict=True)]
        )
    if kind == 2:
        index, number, last = map(int, results)
        session_id = getattr(batch[index], "id", "")
        if number > MAX_SEQ:
            raise NotSupported(f"session {session_id} has no numbers left: {MAX_SEQ} is the last one")
        raise InvalidValue(
            f"session {session_id} cannot give a record the number {number}: it is at {last}, and numbers rise"
        )
    if kind == 3:
        key, found = results
        raise CorruptData(
            f"the key {key!r} holds a {found} that somebody else wrote, so nothing was written: remove it, or use "
            "another prefix, and see what check() tells"
        )
    if kind == 4:
        place, field = int(results[0]), str(results[1])
        raise CorruptSession(
            f"session {getattr(batch[place], 'id', '')}: the field {field!r} of its header is missing or none of ours, "
            "so nothing was written: check() tells more, and deleting the session works"
        )
    return [
        Outcome(before or None, version or None, tuple(seqs), deleted) for before, version, seqs, deleted, *_ in results
    ]


def listed_in(reply: bytes) -> list[Listed]:
    """Where the sessions of a batch that was made are to be listed, for indexes that are not in the script's reach."""
    listed = [result[4] for result in _unpack(reply)[1:] if result[4]]
    return [Listed(session_id, user_id, before or None, now or None) for session_id, user_id, before, now in listed]
