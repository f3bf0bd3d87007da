"""A worker: who does things to items that others use at the same time, and notes all of it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from soak.races.history import Answer, Notes
from statestore import AsyncStateStore, Session


@dataclass(frozen=True)
class Scene:
    """One history: the items that its workers fight for."""

    number: int
    theme: str
    """What they mostly do."""
    is_whole: bool
    """Whether a listing shows one moment."""
    spans: bool
    """Whether a batch may be about several items."""

    @property
    def users(self) -> tuple[str, str]:
        return f"ann{self.number}", f"bob{self.number}"

    @property
    def category(self) -> str:
        return f"c{self.number}"

    @property
    def sessions(self) -> tuple[str, ...]:
        return tuple(f"{self.number}-{name}" for name in "abc")

    @property
    def papers(self) -> tuple[str, ...]:
        return tuple(f"{self.number}-{name}" for name in "xy")


@dataclass
class Worker:
    """Who does it. What it was told, it uses later: sessions that it loaded, versions that it read."""

    store: AsyncStateStore
    notes: Notes
    scene: Scene
    chance: random.Random
    number: int
    gives_up: float = 0.0
    """How often it does not wait for an answer, which only tasks can."""
    loaded: dict[str, Session] = field(default_factory=dict[str, Session])
    versions: dict[str, str] = field(default_factory=dict[str, str])
    said: int = 0

    def new_words(self) -> str:
        """Something that nobody else says."""
        self.said += 1
        return f"w{self.number}.{self.said}"

    def new_number(self) -> int:
        """A number that nobody else uses."""
        self.said += 1
        return self.number * 1000 + self.said

    def some_user(self) -> str:
        """Mostly the same one."""
        return self.scene.users[self.chance.random() < 0.1]

    def some_owner(self) -> str | None:
        """For whom to act: mostly for nobody in particular."""
        return self.some_user() if self.chance.random() < 0.2 else None

    def acting_for(self, owner: str | None) -> Any:
        """The store as somebody sees it."""
        return self.store if owner is None else self.store.for_user(owner)

    async def note(self, name: str, do: Callable[[], Awaitable[Any]], /, **about: Any) -> Answer:
        """Do something, and note it; what came of it."""
        if self.chance.random() < self.gives_up:
            do = _given_up(do, self.chance.random() * 0.003)
        return await self.notes.take(self.scene.number, name, about, do)

    def keep_or_forget(self, session_id: str, answer: Answer) -> Answer:
        """Forget an object that could not be saved, and others now and then."""
        if answer.refused is not None or self.chance.random() < 0.3:
            self.loaded.pop(session_id, None)
        return answer


def _given_up(do: Callable[[], Awaitable[Any]], seconds: float) -> Callable[[], Awaitable[Any]]:
    async def do_for_a_while() -> Any:
        async with asyncio.timeout(seconds):
            return await do()

    return do_for_a_while
