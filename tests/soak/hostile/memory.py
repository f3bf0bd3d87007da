"""Files that are large, or grow when they are read: what reading takes is bounded by a small multiple of their size."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from soak.hostile.trying import Tries, bounded
from soak.hostile.using import OTHERS, VICTIM, furnish
from soak.proof import Proof, Round
from statestore import StateStore

SIZES: Final = (500_000, 20_000_000, 200_000_000)
"""Bytes of a file: all kinds of small ones in a short round, else one large one; the largest in one round of ten."""
TIMES: Final = 12
"""How many times its size a file may take. A session is held twice while it is read, and again as objects."""
DENSE: Final = {"an array": 60, "arrays in an array": 60, "many keys": 60}
"""Where every value has two or three bytes in the file: Python's objects take twenty times that."""
PATIENCE: Final = 600.0
SPARE: Final = 200
"""Megabytes besides, for everything else."""
_MOMENT: Final = '"2026-01-01T00:00:00Z"'


def _session(metadata: bytes = b"{}", messages: bytes = b"") -> bytes:
    head = f'{{"id": "{VICTIM}", "user_id": "alice", "created_at": {_MOMENT}, "updated_at": {_MOMENT}, "metadata": '
    return b"".join((head.encode(), metadata, b', "user_messages": [', messages, b"]}"))


def _message(content: str) -> bytes:
    return b'{"content": %b, "timestamp": %b}' % (json.dumps(content).encode(), _MOMENT.encode())


BODIES: Final[dict[str, Callable[[int], bytes]]] = {
    "one text": lambda size: _session(messages=_message("x" * size)),
    "one text of escapes": lambda size: _session(messages=_message("\u20ac" * (size // 6))),
    "one text of controls": lambda size: _session(messages=_message("\1" * (size // 6))),
    "an array": lambda size: _session(b'{"numbers": [%b0]}' % (b"0," * (size // 2))),
    "arrays in an array": lambda size: _session(b'{"empty": [%b[]]}' % (b"[]," * (size // 3))),
    "many keys": lambda size: _session(b"{%b}" % b",".join(b'"%x":0' % key for key in range(size // 9))),
    "nested, closed": lambda size: _session(b'{"deep": %b%b}' % (b"[" * (size // 2), b"]" * (size // 2))),
    "nested, not closed": lambda size: _session(b'{"deep": %b' % (b'{"a":' * (size // 5))),
    "one number": lambda size: _session(b'{"number": %b}' % (b"9" * size)),
    "large exponents": lambda size: _session(b'{"numbers": [%b0]}' % (b"1e300," * (size // 600))),  # 50 us each
    "many messages": lambda size: _session(messages=b",".join([_message("x")] * (size // 57))),
    "spaces": lambda size: _session() + b" " * size,
    "zeros": lambda size: b"\0" * size,
}


def _round(this: Round) -> Mapping[str, int]:
    chance = this.random("sizes")
    size = SIZES[-1] if this.seed % 10 == 9 else SIZES[0] if this.seconds <= 1 else chance.choice(SIZES[:2])
    root = this.ground.directory / "state"
    with StateStore.open(this.ground.target, durability="relaxed") as store:
        furnish(store)
    (root / "sessions" / f"{VICTIM}.json").write_bytes(b"")

    chosen = [*BODIES] if size == SIZES[0] else [chance.choice([*BODIES])]
    if size == SIZES[-1]:
        chosen = [chance.choice([what for what in BODIES if what not in DENSE])]

    def use(tries: Tries) -> None:
        for what in chosen:
            _read(tries, what, root, size)

    times = max(DENSE.get(what, TIMES) for what in chosen)
    return bounded(use, seconds=PATIENCE, megabytes=SPARE + times * size // 1_000_000)


def _read(tries: Tries, what: str, root: Path, size: int) -> None:
    _put(root / "sessions" / f"{VICTIM}.json", what, size)
    _put(root / "notes" / f"{VICTIM}.json", what, size)
    tries.take((what, size))
    with StateStore.open(f"file:{root}", read_only=True) as store:
        tries.attempt(lambda: store.load_session(VICTIM) and None)
        tries.attempt(lambda: store.load_json("notes", VICTIM) and None)
        listed = {summary.id for summary in store.list_sessions()}
        assert listed >= {*OTHERS}
        assert store.load_session(OTHERS[0]) is not None
    tries.counts["bytes"] += 2 * size


def _put(path: Path, what: str, size: int) -> None:
    with open(path, "wb") as file:
        file.write(BODIES[what](size))


LARGE_FILES = Proof(
    name="large-files",
    promise="a file of any size and nesting is read with a small multiple of its size in memory, or refused",
    engines=("files",),
    round=_round,
    goal={"inputs": 100},
    share=0.5,
)
