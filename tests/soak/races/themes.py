"""What workers mostly do in a history: some of everything, or much of what is hard to do at the same time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Literal

from soak.races import session_deeds as one
from soak.races import shared_deeds as many
from soak.races.history import Answer
from soak.races.worker import Worker

Deed = Callable[[Worker, str], Awaitable[Answer]]
About = Literal["two sessions", "sessions", "papers", "user", "all"]

WHERE: Final[dict[Deed, About]] = {
    one.append: "two sessions",
    one.load: "two sessions",
    one.save: "two sessions",
    one.rewrite: "two sessions",
    one.count_up: "two sessions",
    one.rewind: "two sessions",
    one.timeline: "two sessions",
    one.fork: "two sessions",
    one.exists: "sessions",
    one.create: "sessions",
    one.get_or_create: "sessions",
    one.delete: "sessions",
    one.trash: "sessions",
    one.restore: "sessions",
    many.put: "papers",
    many.swap: "papers",
    many.get: "papers",
    many.drop: "papers",
    many.clear: "all",
    many.names: "all",
    many.listing: "user",
    many.page: "user",
    many.count: "user",
    many.prune: "user",
    many.batch: "two sessions",
}
SPANNING: Final = (
    one.trash,
    one.restore,
    many.clear,
    many.names,
    many.listing,
    many.page,
    many.count,
    many.prune,
    many.batch,
)
"""What a store can only do whose batches span several items."""

THEMES: Final[dict[str, dict[Deed, int]]] = {
    "everything": dict.fromkeys(WHERE, 2),
    "talk": {one.append: 4, one.load: 2, one.save: 5, one.rewrite: 4, one.count_up: 3, one.rewind: 2, one.timeline: 1},
    "lives": {
        one.append: 2,
        one.save: 2,
        one.count_up: 1,
        one.create: 3,
        one.get_or_create: 3,
        one.delete: 3,
        one.fork: 3,
        one.load: 1,
    },
    "papers": {many.put: 4, many.swap: 5, many.get: 4, many.drop: 2, many.clear: 3, many.names: 3},
    "trash": {one.trash: 4, one.restore: 4, one.create: 2, one.save: 2, one.append: 2, one.delete: 1, one.load: 1},
    "crowds": {
        many.listing: 3,
        many.count: 2,
        many.page: 2,
        many.prune: 3,
        one.create: 4,
        one.append: 2,
        one.delete: 2,
        one.fork: 1,
    },
    "batches": {many.batch: 6, many.get: 2, one.load: 3, one.create: 3, many.swap: 1, one.append: 1},
    "views": {many.batch: 4, many.clear: 3, many.names: 5, many.listing: 5, one.load: 1, one.create: 3, many.prune: 1},
}


async def play(worker: Worker, count: int) -> None:
    """Do so many things, as chance and the theme have it."""
    scene = worker.scene
    weights = {
        deed: weight
        for deed, weight in THEMES[scene.theme].items()
        if (scene.spans or deed not in SPANNING) and (scene.is_whole or deed not in (many.page, many.count))
    }
    missing: str | None = None
    for _ in range(count):
        if missing is not None and worker.chance.random() < 0.7:
            await one.get_or_create(worker, missing)
            missing = None
            continue
        deed = worker.chance.choices(list(weights), list(weights.values()))[0]
        item = worker.chance.choice(_items(worker, WHERE[deed]))
        if (await deed(worker, item)).refused == "missing":
            missing = item


def _items(worker: Worker, about: About) -> tuple[str, ...]:
    scene = worker.scene
    match about:
        case "two sessions":
            return scene.sessions[:2]
        case "sessions":
            return scene.sessions
        case "papers":
            return scene.papers
        case "user":
            return scene.users[:1]
        case _:
            return ("",)


async def look_at_everything(worker: Worker) -> None:
    """Read all there is, when everybody is done."""
    for session_id in worker.scene.sessions:
        await one.load(worker, session_id)
    for name in worker.scene.papers:
        await many.get(worker, name)
    if worker.scene.spans:
        await many.listing(worker, worker.scene.users[0])
        await many.names(worker, "")
