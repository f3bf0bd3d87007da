"""Checkpoints of the Agent Framework's workflows: where a workflow can go on from.

A checkpoint is a JSON document in the category ``agent-framework/checkpoints/<workflow>``. Its name begins with its
moment, so that the latest one is found without reading the others. A second, small document finds it by its id.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from logging import getLogger
from typing import Any, Final

from msgspec import Struct

from statestore.adapters.access import Access, ClosesItsStore, Target
from statestore.adapters.agent_framework_items import NAME
from statestore.adapters.identifiers import is_shortened, original_name, stored_category, stored_name
from statestore.adapters.requirements import check_version, unavailable
from statestore.errors import CorruptDocument, InvalidValue
from statestore.store.async_store import AsyncStateStore

try:
    from agent_framework import WorkflowCheckpoint, WorkflowCheckpointException
    from agent_framework._workflows._checkpoint_encoding import decode_checkpoint_value, encode_checkpoint_value
except ImportError as error:
    raise unavailable("agent-framework") from error
check_version("agent-framework")

__all__ = ["StateStoreCheckpointStorage"]

_BY_ID: Final = stored_category(NAME, "checkpoint-ids")


class _Place(Struct):
    """Where a checkpoint is."""

    category: str
    name: str


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
            known = await store.load_json(_BY_ID, named, type=_Place)
            async with store.batch() as batch:
                if known is not None and known != place:
                    batch.delete_file(known.category, known.name, kind="json")
                batch.save_json(place.category, place.name, encoded)
                batch.save_json(_BY_ID, named, place)

        await self._access.run(put)
        return checkpoint.checkpoint_id

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        """A checkpoint by its id. `WorkflowCheckpointException` if there is none, or it cannot be read."""

        async def find(store: AsyncStateStore) -> Any:
            place = await store.load_json(_BY_ID, stored_name(checkpoint_id), type=_Place)
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
        found: list[WorkflowCheckpoint] = []
        for name in await self._access.run(lambda store: store.list_category(category)):
            checkpoint = await self._readable(category, name)
            found += [] if checkpoint is None else [checkpoint]
        return found

    async def delete(self, checkpoint_id: str) -> bool:
        """Remove a checkpoint; whether there was one."""
        named = stored_name(checkpoint_id)

        async def remove(store: AsyncStateStore) -> bool:
            place = await store.load_json(_BY_ID, named, type=_Place)
            if place is None:
                return False
            gone = await store.delete_file(place.category, place.name, kind="json")
            await store.delete_file(_BY_ID, named, kind="json")
            return gone

        return await self._access.run(remove)

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        """The latest checkpoint of a workflow that can be read, or ``None``."""
        category = _category(workflow_name)
        for name in reversed(await self._access.run(lambda store: store.list_category(category))):
            checkpoint = await self._readable(category, name)
            if checkpoint is not None:
                return checkpoint
        return None

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[str]:
        """The ids of a workflow's checkpoints, oldest first."""
        category = _category(workflow_name)
        ids: list[str] = []
        for name in await self._access.run(lambda store: store.list_category(category)):
            if not is_shortened(name):
                ids.append(original_name(name).partition(" ")[2])
            elif (checkpoint := await self._readable(category, name)) is not None:
                ids.append(checkpoint.checkpoint_id)
        return ids

    async def _readable(self, category: str, name: str) -> WorkflowCheckpoint | None:
        try:
            encoded = await self._access.run(lambda store: store.load_json(category, name))
            return None if encoded is None else self._decoded(encoded)
        except (CorruptDocument, InvalidValue, WorkflowCheckpointException) as error:
            getLogger("statestore").warning(
                "checkpoint %s/%s cannot be read, and is left out: %s", category, name, error
            )
            return None

    def _decoded(self, encoded: Any) -> WorkflowCheckpoint:
        return WorkflowCheckpoint.from_dict(decode_checkpoint_value(encoded, allowed_types=self._allowed))


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
