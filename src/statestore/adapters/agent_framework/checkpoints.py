"""Checkpoints of the Agent Framework's workflows: where a workflow can go on from.

A checkpoint is a JSON document in the category ``agent-framework/checkpoints/<workflow>``. Its name begins with its
moment, so that the latest one is found without reading the others. A second, small document finds it by its id.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from logging import getLogger
from typing import Any, Final

from agent_framework import WorkflowCheckpoint, WorkflowCheckpointException
from agent_framework._workflows._checkpoint_encoding import decode_checkpoint_value, encode_checkpoint_value
from msgspec import Struct

from statestore.adapters.access import Access, ClosesItsStore, Target
from statestore.adapters.committing import committed
from statestore.adapters.dialects.agent_framework import NAME
from statestore.adapters.identifiers import is_shortened, original_name, stored_category, stored_name
from statestore.adapters.several import for_each
from statestore.engine import Change, DeleteDocument, Requires
from statestore.errors import CorruptDocument, DocumentConflict, InvalidValue
from statestore.store.async_store import AsyncStateStore
from statestore.store.beneath import engine_of
from statestore.store.writing import MAX_ATTEMPTS

_BY_ID: Final = stored_category(NAME, "checkpoint-ids")


class _Place(Struct):
    """Where a checkpoint is."""

    category: str
    name: str


class _Found(Struct):
    """Where a checkpoint was found to be, and the version of the document that says so, ``""`` if there is none."""

    place: _Place | None
    version: str


class StateStoreCheckpointStorage(ClosesItsStore):
    """A `CheckpointStorage`: checkpoints of workflows, by their ids.

    ``store`` is an open `AsyncStateStore` (or a `StateStore`, which is used in threads), or a URL or path: then it is
    opened on first use, and `close` closes it.

    What is no JSON in a checkpoint is encoded as the framework's own file storage does it, with pickle: open only
    stores that you trust. Types of your own are read back if ``allowed_checkpoint_types`` names them, as
    ``"module:qualname"``.
    """

    def __init__(self, store: Target, *, allowed_checkpoint_types: Iterable[str] = ()) -> None:
        self._access = Access(store, opens="async")
        self._allowed = frozenset(allowed_checkpoint_types)

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        """Store a checkpoint; its id. One that has the same id is replaced."""
        encoded = encode_checkpoint_value(checkpoint.to_dict())
        category, named = _category(checkpoint.workflow_name), stored_name(checkpoint.checkpoint_id)
        place = _Place(category, stored_name(f"{_moment(checkpoint.timestamp)} {checkpoint.checkpoint_id}"))

        async def put(store: AsyncStateStore) -> None:
            for _ in range(MAX_ATTEMPTS):
                found = await _found(store, named)
                with suppress(DocumentConflict):  # somebody saved or removed it meanwhile: theirs is replaced
                    async with store.batch() as batch:
                        if found.place is not None and found.place != place:
                            batch.delete_file(found.place.category, found.place.name, kind="json")
                        batch.save_json(place.category, place.name, encoded)
                        batch.save_json(_BY_ID, named, place, if_version=found.version)
                    return
            raise _changed_too_often(checkpoint.checkpoint_id)

        await self._access.run(put)
        return checkpoint.checkpoint_id

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        """A checkpoint by its id. `WorkflowCheckpointException` if there is none, or it cannot be read."""

        async def find(store: AsyncStateStore) -> Any:
            place = (await _found(store, stored_name(checkpoint_id))).place
            return None if place is None else await store.load_json(place.category, place.name)

        try:
            encoded = await self._access.run(find)
        except (CorruptDocument, InvalidValue) as error:
            raise WorkflowCheckpointException(f"Checkpoint {checkpoint_id} cannot be read: {error}") from error
        if encoded is None:
            raise WorkflowCheckpointException(f"No checkpoint found with ID {checkpoint_id}")
        return self._decoded(encoded)

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        """The checkpoints of a workflow, oldest first. One that cannot be read is left out, with a warning."""
        category = _category(workflow_name)

        async def find(store: AsyncStateStore) -> list[WorkflowCheckpoint | None]:
            names = await store.list_category(category)
            return await for_each(store, names, lambda name: self._readable(store, category, name))

        return [checkpoint for checkpoint in await self._access.run(find) if checkpoint is not None]

    async def delete(self, checkpoint_id: str) -> bool:
        """Remove a checkpoint; whether there was one."""
        named = stored_name(checkpoint_id)

        async def remove(store: AsyncStateStore) -> bool:
            for _ in range(MAX_ATTEMPTS):
                found = await _found(store, named)
                if found.place is None:
                    return False
                as_found = Requires(version=found.version)
                is_gone = await _removed(
                    store,
                    DeleteDocument(found.place.category, found.place.name, "json"),
                    DeleteDocument(_BY_ID, named, "json", as_found),
                )
                if is_gone is not None:
                    return is_gone
            raise _changed_too_often(checkpoint_id)

        return await self._access.run(remove)

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        """The latest checkpoint of a workflow that can be read, or ``None``."""
        category = _category(workflow_name)

        async def find(store: AsyncStateStore) -> WorkflowCheckpoint | None:
            for name in reversed(await store.list_category(category)):
                checkpoint = await self._readable(store, category, name)
                if checkpoint is not None:
                    return checkpoint
            return None

        return await self._access.run(find)

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[str]:
        """The ids of a workflow's checkpoints, oldest first."""
        category = _category(workflow_name)

        async def find(store: AsyncStateStore) -> list[str]:
            names = await store.list_category(category)
            shortened = [name for name in names if is_shortened(name)]
            read = await for_each(store, shortened, lambda name: self._readable(store, category, name))
            ids = {name: original_name(name).partition(" ")[2] for name in names if not is_shortened(name)}
            ids |= {name: one.checkpoint_id for name, one in zip(shortened, read, strict=True) if one is not None}
            return [ids[name] for name in names if name in ids]

        return await self._access.run(find)

    async def _readable(self, store: AsyncStateStore, category: str, name: str) -> WorkflowCheckpoint | None:
        try:
            encoded = await store.load_json(category, name)
            return None if encoded is None else self._decoded(encoded)
        except (CorruptDocument, InvalidValue, WorkflowCheckpointException) as error:
            getLogger("statestore").warning(
                "checkpoint %s/%s cannot be read, and is left out: %s", category, name, error
            )
            return None

    def _decoded(self, encoded: Any) -> WorkflowCheckpoint:
        return WorkflowCheckpoint.from_dict(decode_checkpoint_value(encoded, allowed_types=self._allowed))


async def _found(store: AsyncStateStore, named: str) -> _Found:
    document = await store.get_document(_BY_ID, named, kind="json")
    return _Found(None, "") if document is None else _Found(document.decoded(_Place), document.version)


async def _removed(store: AsyncStateStore, checkpoint: Change, finder: Change) -> bool | None:
    """Remove a checkpoint, and what finds it; whether it was there. ``None`` if it is to be found elsewhere by now."""
    if engine_of(store).atomic_scope == "store":
        outcomes = await committed(store, [checkpoint, finder])
        return None if outcomes is None else bool(outcomes[0].deleted)
    outcomes = await committed(store, [checkpoint])  # first, as nobody finds it without the other
    return None if outcomes is None or await committed(store, [finder]) is None else bool(outcomes[0].deleted)


def _changed_too_often(checkpoint_id: str) -> DocumentConflict:
    return DocumentConflict(f"checkpoint {checkpoint_id} changed {MAX_ATTEMPTS} times while it was being written")


def _category(workflow_name: str) -> str:
    return stored_category(NAME, "checkpoints", workflow_name)


def _moment(timestamp: str) -> str:
    """A moment as a text that sorts: ``20260501T090000.123456``, in UTC. One that is none comes before all."""
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        return "0"
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC)
    return f"{moment:%Y%m%dT%H%M%S.%f}"
