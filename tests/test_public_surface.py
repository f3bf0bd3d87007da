"""What users may rely on: the names, the signatures, the docstrings, and what an import costs."""

from __future__ import annotations

import inspect
import pydoc
import re
import subprocess
import sys
import typing
from pathlib import Path
from typing import Any

import pytest

import statestore
from statestore import (
    AsyncStateStore,
    AsyncUserStore,
    Batch,
    Event,
    Session,
    StateStore,
    UserMessage,
    UserStore,
    errors,
)

NAMES = [
    "AgentResponse",
    "AsyncStateStore",
    "AsyncUserStore",
    "Batch",
    "CopyIncomplete",
    "CopyProgress",
    "CopyRefused",
    "CopyReport",
    "CorruptData",
    "CorruptDocument",
    "CorruptSession",
    "CursorExpired",
    "Document",
    "DocumentConflict",
    "DocumentInfo",
    "DocumentKind",
    "Doomed",
    "Durability",
    "Engine",
    "Event",
    "History",
    "InvalidCursor",
    "InvalidName",
    "InvalidValue",
    "NameTaken",
    "NotSupported",
    "Notice",
    "Problem",
    "PruneConfig",
    "PruneThrottle",
    "ReadOnlyStore",
    "Record",
    "SearchHit",
    "Session",
    "SessionConflict",
    "SessionId",
    "SessionNotFound",
    "SessionSummary",
    "StateStore",
    "StateStoreError",
    "StoreClosed",
    "StoreNotFound",
    "StoreUnavailable",
    "TimelineEntry",
    "Trashed",
    "UserMessage",
    "UserStore",
    "WrongUser",
    "async_copy_store",
    "copy_store",
]


def test_the_names_are_these() -> None:
    assert statestore.__all__ == NAMES
    public = {
        name for name, value in vars(statestore).items() if not name.startswith("_") and not inspect.ismodule(value)
    }
    assert public == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_belongs_to_the_package_and_is_described(name: str) -> None:
    thing = getattr(statestore, name)
    if isinstance(thing, type):
        assert thing.__module__ == "statestore"
        assert thing.__doc__


@pytest.mark.parametrize("name", NAMES)
def test_help_and_type_hints_work_on_every_name(name: str) -> None:
    thing = getattr(statestore, name)
    assert pydoc.render_doc(thing)
    if isinstance(thing, type):
        typing.get_type_hints(thing)


def public_members(cls: type) -> dict[str, Any]:
    return {name: member for name, member in inspect.getmembers(cls) if not name.startswith("_")}


@pytest.mark.parametrize(("plain", "asynchronous"), [(StateStore, AsyncStateStore), (UserStore, AsyncUserStore)])
def test_the_two_faces_are_the_same(plain: type, asynchronous: type) -> None:
    assert set(public_members(plain)) == set(public_members(asynchronous))
    own_return_types = {"open": ("Self", "Opening[Self]"), "batch": ("BatchBlock", "AsyncBatchBlock")}
    own_return_types["for_user"] = ("UserStore", "AsyncUserStore")
    own_return_types["watch"] = ("Generator[Notice]", "AsyncGenerator[Notice]")
    for name, member in public_members(plain).items():
        original = getattr(asynchronous, name)
        if isinstance(member, property):
            assert isinstance(original, property)
            continue
        mine, theirs = inspect.signature(member), inspect.signature(original)
        assert list(mine.parameters.values()) == list(theirs.parameters.values()), name
        returns = own_return_types.get(name, (theirs.return_annotation,) * 2)
        assert (mine.return_annotation, theirs.return_annotation) == returns, name
        assert not inspect.iscoroutinefunction(member), name
        assert inspect.iscoroutinefunction(original) is (name not in own_return_types), name


def test_help_shows_what_a_record_is_made_with() -> None:
    assert list(inspect.signature(UserMessage).parameters) == ["content", "timestamp", "extra"]
    assert list(inspect.signature(Event).parameters) == ["kind", "data", "timestamp", "extra"]


@pytest.mark.parametrize("cls", [StateStore, AsyncStateStore, UserStore, AsyncUserStore, Batch, Session])
def test_every_public_method_is_described(cls: type) -> None:
    undocumented = [
        name
        for name, member in public_members(cls).items()
        if (callable(member) or isinstance(member, property)) and not member.__doc__
    ]
    assert undocumented == []


def test_the_methods_are_those_that_were_promised() -> None:
    promised = """
        open close save_markdown load_markdown save_json load_json save_bytes load_bytes list_category list_categories
        delete_file delete_category get_document batch save_session save_session_with_prune load_session list_sessions
        count_sessions session_exists delete_session get_or_create_session update_session update_session_with append
        timeline prune_sessions fork_session rewind_session for_user erase_user check
    """
    assert set(promised.split()) <= set(public_members(StateStore))


def test_the_seeds_names_of_a_session_are_there() -> None:
    seeds = """
        new with_id add_user_message add_agent_response set_active_seed set_active_persona set_metadata get_metadata
        exchange_count is_empty id user_id user_messages agent_responses active_seed_id active_persona_id created_at
        updated_at metadata add_event timeline project_id parent_session_id
    """
    assert set(seeds.split()) <= set(public_members(Session))


UNWANTED = [
    "asyncio",
    "sqlite3",
    "typer",
    "rich",
    "pytest",
    "hypothesis",
    "importlib.metadata",
    "statestore.conformance",
]


def loaded_after(code: str) -> set[str]:
    """The modules that a fresh interpreter has after some code."""
    program = f"import sys\n{code}\nprint('\\n'.join(sys.modules))"
    source = str(Path(statestore.__file__).parent.parent)
    result = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {source!r})\n{program}"],
        check=True,
        capture_output=True,
        text=True,
    )
    return set(result.stdout.split())


def test_importing_loads_nothing_that_is_not_needed() -> None:
    modules = loaded_after("import statestore")
    assert "statestore.store.plain" in modules
    assert modules.isdisjoint(UNWANTED)
    assert not [name for name in modules if name.startswith("statestore.engines.")]


def test_the_plain_face_needs_no_event_loop() -> None:
    modules = loaded_after("import statestore; statestore.StateStore.open('memory:').save_json('a', 'b', 1)")
    assert "asyncio" not in modules


def test_the_tree_of_errors_is_the_one_that_is_drawn() -> None:
    assert errors.__doc__ is not None
    drawn: dict[str, str] = {}
    builtins: dict[str, str] = {}
    parents: list[tuple[int, str]] = []
    for line in errors.__doc__.splitlines():
        match = re.match(r"([ │├└─]*)(\w+)(?: {2,}.*?)?(?:\((\w+)\))?$", line)
        if match is None or not hasattr(errors, match[2]):
            continue
        depth, name = len(match[1]), match[2]
        while parents and parents[-1][0] >= depth:
            parents.pop()
        drawn[name] = parents[-1][1] if parents else "Exception"
        parents.append((depth, name))
        if match[3]:
            builtins[name] = match[3]
    classes = {name: cls for name, cls in vars(errors).items() if isinstance(cls, type)}
    assert set(drawn) == set(classes) == {name for name in NAMES if name in drawn}
    for name, cls in classes.items():
        bases = [base.__name__ for base in cls.__bases__]
        assert bases == [drawn[name], *([builtins[name]] if name in builtins else [])], name


def test_every_error_is_a_state_store_error() -> None:
    for name in NAMES:
        thing = getattr(statestore, name)
        if isinstance(thing, type) and issubclass(thing, Exception):
            assert issubclass(thing, statestore.StateStoreError)
