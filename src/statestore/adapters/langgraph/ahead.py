"""What is about to be stored, noted in a view ahead of time, so that it can be taken back if it was not stored."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from langchain_core.messages import BaseMessage

from statestore.adapters.langgraph.noted import Kept, KeptWrites, Key
from statestore.adapters.langgraph.view import Elements, View


class Ahead:
    """Notes for one commit."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._seqs = view.last_seq, view.next_seq
        self._steps: list[Callable[[], object]] = []

    def number(self, count: int) -> None:
        """So many records will be stored."""
        self.view.last_seq = self.view.next_seq + count - 1
        self.view.next_seq += count

    def checkpoint(self, kept: Kept) -> None:
        """A checkpoint will be stored."""
        view = self.view
        self._steps += [
            partial(view.by_seq.pop, kept.seq),
            partial(_put_back, view.checkpoints, kept.key, view.checkpoints.get(kept.key)),
            partial(_put_back, view.newest, kept.head.ns, view.newest.get(kept.head.ns)),
            partial(setattr, view, "highest", view.highest),
            partial(setattr, view, "ceiling", view.ceiling),
            partial(view.models.drop, kept.seq),
        ]
        view.keep(kept)

    def writes(self, key: Key, kept: KeptWrites) -> None:
        """Writes to a checkpoint will be stored."""
        view = self.view
        view.keep_writes(kept)
        self._steps += [
            partial(view.writes[key].remove, kept),
            partial(view.writes_by_seq.pop, kept.seq),
            partial(view.models.drop, kept.seq),
        ]

    def message(self, seq: int, message: BaseMessage) -> None:
        """A message will be stored, or is stored already and will be given its id."""
        view = self.view
        known = view.number_of.get(message.id or "")
        self._steps += [partial(view.drop, seq), partial(_put_back, view.number_of, message.id, known)]
        view.hold(seq, message)

    def nameless(self, seq: int, key: Key, message: BaseMessage) -> None:
        """A message will be stored that was written to a checkpoint without an id."""
        self._steps.append(partial(self.view.nameless.pop, seq, None))
        self.view.expect(seq, key, message)

    def used(self, seq: int) -> None:
        """Such a message will be part of a list, or be given an id."""
        view = self.view
        if (expected := view.nameless.pop(seq, None)) is not None:
            self._steps += [partial(view.expect, seq, *expected), partial(view.names.pop, seq, None)]

    def listed(self, seq: int, key: Key, message: BaseMessage) -> None:
        """A message without an id will be part of a list, in a checkpoint that follows this one."""
        self._steps.append(partial(self.view.listed.pop, seq, None))
        self.view.note_listed(seq, key, message)

    def elements(self, seq: int, channel: str, elements: Elements) -> None:
        """A list will be stored."""
        self._steps.append(partial(self.view.lists.pop, (seq, channel), None))
        self.view.remember_list(seq, channel, elements)

    def take_back(self) -> None:
        """It was not stored."""
        for step in reversed(self._steps):
            step()
        self._steps = []
        self.view.last_seq, self.view.next_seq = self._seqs


def _put_back(known: dict[Any, Any], key: Any, value: Any) -> None:
    """Have a dict hold what it held before."""
    if value is None:
        known.pop(key, None)
    else:
        known[key] = value
