"""Hostile names and values: ids, categories, users, keys, kinds, metadata, and objects of any kind in their places."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from random import Random
from typing import Any, Final

from soak.hostile.mutation import mutated_text
from soak.hostile.objects import Evil, hostile_object
from soak.hostile.trying import Tries, bounded
from soak.hostile.using import OTHERS, VICTIM, furnish
from soak.proof import Proof, Round
from statestore import AgentResponse, Event, PruneConfig, Session, StateStore, StateStoreError, UserMessage
from statestore.errors import InvalidName, InvalidValue
from statestore.jsontext import check_label, json_text
from statestore.names import MAX_PART_BYTES, check_category, check_name, check_session_id
from statestore.timestamps import datetime_of, nanoseconds, text_of
from statestore.visible import in_json, isolated, on_its_lines, on_one_line

CHECKS_A_ROUND: Final = 3000
CALLS_A_ROUND: Final = 40
ALLOWED: Final = (StateStoreError, TypeError, ValueError, Evil, RecursionError)
"""An object of the wrong kind is a TypeError or a ValueError of Python's own; what showing an object raises is its."""
OBEYED: Final = {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), 0x2066, 0x2067)}
"""The characters that a terminal acts on, or that turn the direction of what stands beside them."""
_NAMES: Final = ("session-1", "notes", "projects/alpha", "été", "x" * 190, "\U0001f600" * 49)


def _round(this: Round) -> Mapping[str, int]:
    def use(tries: Tries) -> None:
        chance = this.random("names")
        for _ in range(CHECKS_A_ROUND):
            _check(tries, chance)
        with StateStore.open(this.ground.target, durability="relaxed") as store:
            furnish(store)
            before = _held(store)
            for _ in range(CALLS_A_ROUND):
                _call(tries, chance, store)
            assert _held(store) == before

    return bounded(use)


def _held(store: StateStore) -> list[Any]:
    return [store.load_json("sessions", name) for name in (VICTIM, *OTHERS)] + [store.load_json("notes", "other")]


def _check(tries: Tries, chance: Random) -> None:
    """The rules alone."""
    given = mutated_text(chance, chance.choice(_NAMES)) if chance.random() < 0.6 else hostile_object(chance)
    tries.take(given if type(given) is str else type(given))
    for rule in (check_session_id, check_name):
        name = tries.attempt(lambda rule=rule: rule(given), (InvalidName,))
        if name is not None:
            assert type(name) is str
            assert 0 < len(name.encode()) <= MAX_PART_BYTES
            assert not {"/", "\\", "\0", "\x1b", "\x9b"} & {*name}
            assert ".." not in name
            assert name != "."
    tries.attempt(lambda: check_category(given), (InvalidName,))
    tries.attempt(lambda: check_label(given, "the label"), (InvalidValue,))
    text = tries.attempt(lambda: json_text(given, "the value"), (InvalidValue, Evil))
    if text is not None:
        text.decode()
    tries.attempt(lambda: text_of(given), (InvalidValue,))
    if type(given) is str:
        _check_text(tries, given)


def _check_text(tries: Tries, given: str) -> None:
    ns = tries.attempt(lambda: nanoseconds(given), (InvalidValue,))
    assert ns is None or isinstance(datetime_of(given), datetime)
    quoted = in_json(json.dumps(given, ensure_ascii=False))
    assert json.loads(quoted) == given
    for shown in (on_one_line(given), isolated(on_one_line(given)), quoted):
        assert not {*shown} & OBEYED, given
    assert not {*on_its_lines(given)} & OBEYED - {"\n", "\t"}, given


def _call(tries: Tries, chance: Random, store: StateStore) -> None:
    """One way to use a store, with hostile arguments; what may be stored is stored under a name of its own."""
    one, two, three = (hostile_object(chance) for _ in range(3))
    name = mutated_text(chance, "mine")
    session = Session("alice", "mine")
    calls: list[Callable[[], object]] = [
        lambda: store.get_or_create_session(one, f"mine-{name}"),
        lambda: store.save_session(Session(one, two)) if two not in (VICTIM, *OTHERS) else None,
        lambda: store.load_session(one, last=two),
        lambda: store.timeline(one, before=two, limit=three),
        lambda: store.append("mine", UserMessage(one), keys=[two]),
        lambda: store.append("mine", one),
        lambda: store.append("mine", Event(one, two, three)),
        lambda: store.append("mine", AgentResponse(one, two, three)),
        lambda: session.set_metadata(one, two),
        lambda: session.add_event(one, two),
        lambda: session.user_messages.append(one),
        lambda: store.save_session(session),
        lambda: store.save_json("mine", name, one),
        lambda: store.save_markdown(name, "mine", one),
        lambda: store.save_bytes("mine", one, two),
        lambda: store.load_json(one, two),
        lambda: store.list_documents(one),
        lambda: store.list_categories(one),
        lambda: store.list_sessions(user_id=one, project_id=two, limit=three),
        lambda: store.list_sessions(order=one, after=two),
        lambda: store.list_sessions(updated_since=one, parent_session_id=two),
        lambda: store.search_sessions(one, limit=two, after=three),
        lambda: store.for_user(one).list_sessions(),
        lambda: store.fork_session("mine", at=one),
        lambda: store.rewind_session("mine", to=one),
        lambda: store.delete_session(f"mine-{name}", trash_hours=one),
        lambda: store.restore_session(one),
        lambda: PruneConfig(max_sessions=one, ttl_hours=two, trash_hours=three),
        lambda: store.save_json("mine", "mine", 1, if_version=one),
    ]
    tries.take((type(one), type(two), type(three), name))
    chance.shuffle(calls)
    for call in calls:
        tries.attempt(call, ALLOWED)


FUZZ_NAMES_VALUES = Proof(
    name="fuzz-names-values",
    promise="any object in the place of a name or a value is stored as what it is, or refused; what is shown is safe",
    engines=("memory", "files", "sqlite"),
    round=_round,
    goal={"inputs": 200_000},
)
