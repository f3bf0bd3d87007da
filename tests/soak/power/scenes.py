"""Stories with one deed in them: done, or begun by a process that dies and done again by the next one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import count, product
from pathlib import Path

import msgspec

from processes import deeds
from processes.deeds import Deed
from soak.power.histories import Step
from soak.power.staging import visible
from soak.power.story import Story
from soak.power.views import stepped
from statestore import StateStore, UserMessage
from statestore.engine import ChangeSession, NewRecord
from statestore.engines.files.repairing import ASIDE

DAMAGED = {"sessions/cut.json": b'{"id": "cut", "user_id"', "notes/bad.json": b"{", "notes/latin.md": b"caf\xe9"}


def _edit(store: StateStore) -> Callable[[], object]:
    session = store.load_session("first")
    assert session is not None
    session.user_messages[0] = msgspec.structs.replace(session.user_messages[0], content="said otherwise" * 100)
    return lambda: store.save_session(session)


def _fork(store: StateStore) -> Callable[[], object]:
    return lambda: store.fork_session("first", at=2, new_id="fork")


def _large_document(store: StateStore) -> Callable[[], object]:
    return lambda: store.save_bytes("notes", "large", bytes(range(256)) * 20)


MORE = (Deed("an edit", _edit), Deed("a fork", _fork), Deed("a document of several sectors", _large_document))

REPEATED = (
    Step(
        "an append with a key",
        lambda store: store.append("first", UserMessage("x"), keys=["k"]),
        ("sessions/first.json",),
    ),
    Step("a session deleted", lambda store: store.delete_session("doomed"), ("sessions/doomed.json",)),
    Step("a document deleted", lambda store: store.delete_file("notes", "gone"), ("notes/gone.json",)),
    Step("a document replaced", lambda store: store.save_markdown("notes", "kept", "new"), ("notes/kept.md",)),
    Step("a document in a new category", lambda store: store.save_json("a/b", "new", 1), ("a/b/new.json",)),
    Step("a batch in a new category", lambda store: _batch(store), ("c/d/one.md", "notes/two.md")),
)
"""What may be done again by whoever does not know whether it was done."""


def _batch(store: StateStore) -> None:
    with store.batch() as batch:
        batch.save_markdown("c/d", "one", "one")
        batch.save_markdown("notes", "two", "two")


def change_with_a_fixed_moment(story: Story) -> Step:
    """A change that has no effect the second time, not even on the time of the last one."""
    record = NewRecord("user", b'{"content":"x","timestamp":"2030-01-01T00:00:00Z"}', 1893456000 * 10**9, key="k")
    change = ChangeSession(id="first", updated="2030-01-01T00:00:00Z", append=(record,))
    return Step("a change", lambda _: stepped(story.engine.commit([change])), ("sessions/first.json",))


def furnish(template: Path) -> None:
    """A store with something of everything in it, and all of it on the disk."""
    with StateStore.open(template, durability="relaxed") as store:
        deeds.furnish(store)


def begun(template: Path, place: Path) -> Story:
    """A story that begins with a copy of a store."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(template, place / "state")
    return Story(place)


def of_one_deed(deed: Deed, template: Path, place: Path) -> Story:
    """A store is opened, a deed is done, the store is closed."""
    story = begun(template, place)
    store = story.open()
    assert store is not None
    do = deed.prepared(store)
    story.do(store, Step(deed.name, lambda _: do()))
    story.close(store)
    return story


def of_two_lives(make_step: Callable[[Story], Step], dies_after: int, template: Path, place: Path) -> Story | None:
    """A process dies at one of its calls; the next one does the same again. ``None`` if the first came to its end."""
    story = begun(template, place)
    store = story.open()
    assert store is not None
    step = make_step(story)
    if story.do(store, step, dies_after=dies_after):
        return None
    story.first = len(story.periods)
    store = story.open()
    assert store is not None
    story.do(store, step)
    story.close(store)
    return story


def leave_a_batch_half_made(template: Path, place: Path) -> Path:
    """The directory of a process that died when its batch of several files had just been journalled."""
    for dies_after in count():
        story = begun(template, place)
        store = story.open()
        assert store is not None
        do = deeds.BATCH.prepared(store)
        assert not story.do(store, Step("a batch", lambda _, do=do: do()), dies_after=dies_after)
        if (story.root / ".statestore" / "journal").exists():
            break
    return place / "state"


def of_a_journal_that_could_come_back(template: Path, place: Path) -> Story:
    """What a batch removed or replaced is then written again, just as it was before."""
    story = begun(template, place)
    store = story.open()
    assert store is not None

    def remove(store: StateStore) -> None:
        with store.batch() as batch:
            batch.delete_file("notes", "kept", kind="md")
            batch.save_markdown("notes", "replaced", "new")

    story.do(store, Step("a batch", remove))
    story.do(store, Step("one written again", lambda store: store.save_markdown("notes", "kept", "as it was")))
    story.do(store, Step("another written again", lambda store: store.save_markdown("notes", "replaced", "old")))
    story.close(store)
    return story


def of_a_repair(template: Path, place: Path) -> Story:
    """Damaged files are moved aside, one after the other."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(template, place / "state")
    for path, body in DAMAGED.items():
        (place / "state" / path).write_bytes(body)
    story = Story(place)
    store = story.open()
    assert store is not None
    before = visible(story.root)
    story.do(store, Step("a repair", lambda store: store.check(repair=True)))
    story.close(store)
    # It is a promise for each file: where it was, or aside, or both until it is acknowledged.
    choices = [
        ({path: body}, {f"{ASIDE}/{path}": body}, {path: body, f"{ASIDE}/{path}": body})
        for path, body in DAMAGED.items()
    ]
    sound = {path: body for path, body in before.items() if path not in DAMAGED}
    possible = tuple(sound | one | two | three for one, two, three in product(*choices))
    story.periods[-2] = replace(story.periods[-2], possible=possible)
    return story
