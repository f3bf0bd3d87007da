"""The Rust program and we write the same sessions at once: what is lost, and by whom, to the last message.

The kernel tells in which order files took their names. Each process notes what was in the file that it put in place,
and the Rust program, besides, what it had read. So the whole history of every session is known, state by state, and
each step of it can be judged:

- A step of theirs is what they had read, which was a whole state, and their message. Whatever came in between, they
  overwrite, and fields that they do not know, they drop: that is their nature.
- A step of ours loses nothing of the state before it. The exception is a state of theirs that took its name after we
  had looked, right before our rename: this is the window that the README tells of, and it is counted.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from children import together_each
from compat.renames import IS_POSSIBLE, Renames
from processes import rust_program
from soak.proof import Proof, Round
from statestore import Event, StateStore, UserMessage

SESSIONS: Final = ("shared", "other")
UNKNOWN: Final = "trajectory_steps"
"""A top-level field of a newer release of the Rust program, which the older one drops."""
TURNS: Final = 40
OURS: Final = "we"
THEIRS: Final = "seed"
_SUFFIX: Final = ".json"


class Put(NamedTuple):
    """A file that was put in place: by whom, what was in it, what it was made from, and when."""

    is_ours: bool
    content: tuple[str, ...]
    read: tuple[str, ...]
    """What the Rust program had read; of us, nothing."""
    looked: int
    """When we began our last look at the file that was there, with ours ready; 0 if we did not look."""
    ended: int
    """When the rename was over."""


Puts = dict[str, Put]
"""By the name of the temporary file."""


def content_of(body: bytes) -> tuple[str, ...]:
    """Everything in a session file that can be lost: messages, events, a field that only newer programs know."""
    session = json.loads(body)
    said = [message["content"] for message in session["user_messages"]]
    said += [event["data"] for event in session["metadata"].get("statestore", {}).get("events", [])]
    return (*said, *([UNKNOWN] if UNKNOWN in session else []))


# -- the two programs, each in processes of its own


def write_as_the_seed(root: str, writer: str, seed: int) -> Puts:
    """Load, add, save: whole files, no lock."""
    chance = random.Random(f"{seed} {writer}")
    puts: Puts = {}
    read: tuple[str, ...] = ()
    replace = os.replace

    def replace_and_note(temporary: Path, path: Path) -> None:
        content = content_of(temporary.read_bytes())
        replace(temporary, path)
        puts[temporary.name] = Put(False, content, read, 0, time.monotonic_ns())

    os.replace = replace_and_note
    for turn in range(TURNS):
        session_id = chance.choice(SESSIONS)
        session = rust_program.load(Path(root), session_id)
        read = content_of(json.dumps(session).encode())
        _dawdle(chance.random())
        rust_program.push(session, f"{writer}:{turn}")
        rust_program.save(Path(root), session)
        _dawdle(chance.random())
    return puts


def _dawdle(share: float) -> None:
    """Do something else for a while, of a length that comes from the seed: the work that a program has besides."""
    for _ in range(int(share * 20_000)):
        pass


def write_as_we_do(root: str, writer: str, seed: int) -> tuple[Puts, list[str]]:
    """Append, save, write batches; what was put in place, and what was acknowledged."""
    chance = random.Random(f"{seed} {writer}")
    puts: Puts = {}
    looked: dict[str, int] = {}
    prepared: dict[str, tuple[tuple[str, ...], int]] = {}
    rename, stat, utime = os.rename, os.stat, os.utime

    def utime_and_note(fd: int, *, ns: tuple[int, int]) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{fd}"))  # a file that is written, and not yet in place
        body = path.read_bytes()
        is_journal = body.startswith(b'{"steps":')
        prepared[path.name] = () if is_journal else content_of(body), time.monotonic_ns()
        utime(fd, ns=ns)

    def stat_and_note(name: Any, *args: Any, **options: Any) -> os.stat_result:
        looked[str(name)] = time.monotonic_ns()
        return stat(name, *args, **options)

    def rename_and_note(temporary: str, name: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        rename(temporary, name, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
        ended = time.monotonic_ns()
        content, since = prepared.pop(temporary)
        look = looked.get(name, 0)
        puts[temporary] = Put(True, content, (), look if look > since else 0, ended)

    os.rename, os.stat, os.utime = rename_and_note, stat_and_note, utime_and_note
    acknowledged: list[str] = []
    with StateStore.open(root) as store:
        for turn in range(TURNS):
            said = f"{writer}:{turn}"
            names = chance.choice(WAYS)(store, chance.choice(SESSIONS), said)
            acknowledged += names
            _dawdle(chance.random())
    return puts, acknowledged


def _append(store: StateStore, session_id: str, said: str) -> list[str]:
    store.append(session_id, UserMessage(said))
    return [said]


def _append_event(store: StateStore, session_id: str, said: str) -> list[str]:
    store.append(session_id, Event("tool", said), keys=[said])
    return [said]


def _save(store: StateStore, session_id: str, said: str) -> list[str]:
    session = store.load_session(session_id)
    assert session is not None
    session.add_user_message(said)
    store.save_session(session)
    return [said]


def _batch(store: StateStore, _: str, said: str) -> list[str]:
    words = [f"{said} in {session_id}" for session_id in SESSIONS]
    with store.batch() as batch:
        for session_id, word in zip(SESSIONS, words, strict=True):
            session = store.load_session(session_id)
            assert session is not None
            session.add_user_message(word)
            batch.save_session(session)
    return words


WAYS: Final[tuple[Callable[[StateStore, str, str], list[str]], ...]] = (_append, _append_event, _save, _batch)


# -- the judgement


def judged(history: list[Put]) -> Counter[str]:
    """What happened to one session, step by step, from the state that it began with."""
    counts: Counter[str] = Counter()
    for place, put in enumerate(history):
        assert len(set(put.content)) == len(put.content), "something is there twice"
        if place == 0:
            continue
        gone = set(history[place - 1].content) - set(put.content)
        if put.is_ours:
            counts["our writes"] += 1
            counts["lost in the window"] += len(gone)
            assert not gone or _is_explained(history, place), f"we lost {sorted(gone)}"
        else:
            counts["their writes"] += 1
            counts["overwritten by them"] += len(gone - {UNKNOWN})
            counts["of these ours"] += sum(word.startswith(OURS) for word in gone)
            was_read = {frozenset(state.content) - {UNKNOWN} for state in history[:place]}
            assert frozenset(put.read) in was_read, "they read what never was"
            assert set(put.read) < set(put.content)
            assert len(put.content) == len(put.read) + 1, "they add one message"
    return counts


def _is_explained(history: list[Put], place: int) -> bool:
    """Whether what we overwrote took its name after our last look, and only they were that fast."""
    ours = history[place]
    while place > 0:
        place -= 1
        before = history[place]
        if set(before.content) <= set(ours.content):
            return True  # this is the state that we had looked at
        if before.is_ours or not ours.looked or before.ended < ours.looked:
            return False
    return False


def try_once(round: Round) -> Mapping[str, int]:
    """Two processes on each side, two sessions."""
    root = Path(round.ground.target.removeprefix("file:"))
    with StateStore.open(root) as store:
        for session_id in SESSIONS:
            store.get_or_create_session("alice", session_id)
            path = rust_program.session_path(root, session_id)
            path.write_text(json.dumps(json.loads(path.read_bytes()) | {UNKNOWN: [1]}, indent=2))
    first = {session_id: rust_program.session_path(root, session_id).read_bytes() for session_id in SESSIONS}
    renames = Renames([root / "sessions", root / ".statestore" / "tmp"])
    theirs = [(write_as_the_seed, (str(root), f"{THEIRS} {number}", round.seed)) for number in range(2)]
    ours = [(write_as_we_do, (str(root), f"{OURS} {number}", round.seed)) for number in range(2)]
    results = together_each("fork", [*theirs, *ours])
    puts: Puts = {name: put for found in results[:2] for name, put in found.items()}
    acknowledged: list[str] = []
    for found, words in results[2:]:
        puts |= found
        acknowledged += words
    counts: Counter[str] = Counter()
    everything: set[str] = set()
    moves = renames.in_order()
    for session_id in SESSIONS:
        begun = Put(True, content_of(first[session_id]), (), 0, 0)
        history = [begun, *(puts[move.before] for move in moves if move.name == session_id + _SUFFIX)]
        counts += judged(history)
        everything.update(*(put.content for put in history))
        now = content_of(rust_program.session_path(root, session_id).read_bytes())
        assert now == history[-1].content, "the last state is the one that is there"
    assert everything >= set(acknowledged), "what was acknowledged was put in place"
    with StateStore.open(root, read_only=True) as store:
        assert store.check() == []
    return counts


PROOF = Proof(
    name="beside-the-seed",
    promise="Beside a program that knows no lock, we lose nothing but what it wrote between our last look and our "
    "rename; what else is lost, it overwrote itself.",
    engines=("files",) if IS_POSSIBLE else (),
    round=try_once,
    goal={"our writes": 20_000},
)
