"""Hostile URLs and options of a store, and hostile arguments of the program, which runs here in the same process."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, Final

from soak.hostile.mutation import TEXTS, mutated_text
from soak.hostile.names_values import OBEYED
from soak.hostile.trying import Tries, bounded
from soak.hostile.using import OTHERS, VICTIM, furnish
from soak.proof import Proof, Round
from statestore import Session, StateStore, StateStoreError
from statestore.cli.main import main
from statestore.opening import engine_for

URLS_A_ROUND: Final = 2000
RUNS_A_ROUND: Final = 50
URLS: Final = (
    *(
        "memory:",
        "file:state",
        "file:///var/lib/agent",
        "sqlite:state.db?timeout=5&journal=rollback",
        "state.db",
        "state",
    ),
    *(
        "postgresql://user:secret@host:5432,other/db?schema=mine&timeout=5&connections=3&sslmode=disable",
        "postgres:///db",
    ),
    *(
        "valkey://user:secret@host:6379/2?prefix=p&ttl=60",
        "rediss://host?ca=x",
        "valkey:///run/v.sock",
        "redis://[::1]:1",
    ),
)
COMMANDS: Final = (
    *(
        "ls --user U --project U --since U --limit U",
        "ls --json --all",
        "show ID --last U",
        "show ID --raw",
        "show ID --json",
    ),
    *(
        "search U U --user U --since U",
        "search ferry --json",
        "stats --top U --user U",
        "docs U",
        "docs",
        "cat U",
        "cat U --json",
    ),
    *("new U --user U --title U --project U", "say ID U --key U", "reply ID U --phase U --seed U", "event ID U U"),
    *(
        "fork ID --at U --id U",
        "put U U --if-version U",
        "rm U",
        "trash --json",
        "trash",
        "restore U",
        "check",
        "check --json",
    ),
    *(
        "export ID --format U",
        "export ID -f html",
        "export ID -f markdown",
        "export ID -f openai",
        "export U",
        "import FILE",
    ),
    *(
        "prune --keep U --dry-run",
        "prune --older-than U --per-user U --dry-run",
        "backup FILE",
        "repair --json",
        "U U",
        "--U",
    ),
)
"""``U`` is anything, ``ID`` a session with hostile texts, ``FILE`` a path of any name in an empty directory."""


def _round(this: Round) -> Mapping[str, int]:
    def use(tries: Tries) -> None:
        chance = this.random("openings")
        for _ in range(URLS_A_ROUND):
            _choose(tries, chance)
        place = this.ground.directory / "place"
        place.mkdir()
        os.chdir(place)
        with StateStore.open(this.ground.target, durability="relaxed") as store:
            furnish(store)
            _furnish_badly(chance, store)
            before = [store.load_json("sessions", name) for name in OTHERS]
        for _ in range(RUNS_A_ROUND):
            _run(tries, chance, this.ground.target, place)
        with StateStore.open(this.ground.target) as store:
            assert [store.load_json("sessions", name) for name in OTHERS] == before

    return bounded(use)


def _choose(tries: Tries, chance: Random) -> None:
    """A URL and options; nothing is opened, so nobody is asked."""
    url = mutated_text(chance, chance.choice(URLS))
    options: dict[str, Any] = {}
    if chance.random() < 0.3:
        name = chance.choice(("create", "read_only", "durability"))
        options[name] = chance.choice(TEXTS) if name == "durability" else bool(chance.randrange(2))
    tries.take((url, options))
    shown = tries.attempt(lambda: engine_for(url, **options).url)
    if shown is not None and url.startswith(("postgresql://user:secret@host", "valkey://user:secret@host")):
        assert "secret" not in shown, url


def _furnish_badly(chance: Random, store: StateStore) -> None:
    """Put into the victim, and into documents, whatever may be stored and is bad to show."""
    session = store.load_session(VICTIM)
    assert session is not None
    for text in chance.sample(TEXTS, 20):
        for put in (
            lambda text=text: session.add_user_message(text),
            lambda text=text: session.add_event(text, {text: text}),
            lambda text=text: session.set_metadata("title", text),
            lambda text=text: store.save_markdown(text, text, text),
            lambda text=text: store.save_session(Session(text, f"{text} {VICTIM}")),
        ):
            try:
                put()
            except StateStoreError:
                continue
    store.save_session(session)


def _run(tries: Tries, chance: Random, target: str, place: Path) -> None:
    """One run of the program: it ends with a code of ours, without calling it a mistake of its own."""
    words = {
        "U": lambda: _anything(chance),
        "ID": lambda: VICTIM,
        "FILE": lambda: str(place / (_anything(chance) or "x")),
    }
    arguments = [words.get(word, lambda word=word: word)() for word in chance.choice(COMMANDS).split()]
    arguments = ["--store", target, *arguments]
    tries.take(arguments)
    with open(place.parent / "printed", "w+b") as printed:
        kept = [os.dup(fd) for fd in (0, 1, 2)]
        nothing = os.open(os.devnull, os.O_RDONLY)
        for fd, other in zip((0, 1, 2), (nothing, printed.fileno(), printed.fileno()), strict=True):
            os.dup2(other, fd)
        try:
            code = tries.attempt(lambda: main(arguments), (SystemExit,))  # type: ignore[arg-type]
            sys.stdout.flush()
        finally:
            for fd, other in enumerate(kept):
                os.dup2(other, fd)
                os.close(other)
            os.close(nothing)
        printed.seek(0)
        shown = printed.read().decode(errors="replace")
    assert code in (None, 0, 1, 2, 3), (code, arguments)
    assert "mistake in statestore" not in shown, (shown[-500:], arguments)
    is_content = {"cat", "export"} & {*arguments}  # as it is stored, for another program
    assert is_content or not {*shown} & OBEYED - {"\n", "\t"}, ({*shown} & OBEYED, arguments)


def _anything(chance: Random) -> str:
    """An argument as a shell may pass it: any bytes but NUL."""
    text = (
        chance.choice(TEXTS)
        if chance.random() < 0.5
        else mutated_text(chance, chance.choice(("5", "2d", "notes/x.md")))
    )
    return os.fsdecode(text.replace("\0", "").encode("utf-8", "surrogatepass"))[:2000]


FUZZ_OPENINGS_COMMANDS = Proof(
    name="fuzz-openings-commands",
    promise="any URL, option or argument is understood or refused; what the program prints moves no cursor",
    engines=("files", "sqlite"),
    round=_round,
    goal={"inputs": 100_000},
)
