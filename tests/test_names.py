"""One naming rule, in every method that takes a name: what breaks it is refused before anything is touched."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from faces import Face
from snapshots import snapshot
from statestore import (
    AsyncStateStore,
    AsyncUserStore,
    Batch,
    InvalidName,
    Session,
    SessionId,
    StateStore,
    UserMessage,
    UserStore,
)

NAMED = ("category", "prefix", "name", "session_id", "new_id")
"""The parameters that are names, whatever the method."""

NOT_NAMES: dict[str, Callable[[], Any]] = {
    "content": lambda: "text",
    "data": lambda: b"bytes",
    "kind": lambda: "json",
    "change": lambda: lambda _: None,
    "records": lambda: UserMessage("m"),
    "to": lambda: 0,
    "type": lambda: dict,
    "user_id": lambda: "alice",
}
"""What to pass for every other required parameter. A new one must be added here, or to `NAMED`."""

GOOD = {"category": "notes", "prefix": "notes", "name": "n", "session_id": "s", "new_id": "fork"}

BAD: list[Any] = [
    ".",
    "..",
    "...",
    "a..b",
    "a/../b",
    "../x",
    "/abs",
    "a/",
    "a//b",
    "a\\b",
    "a\0b",
    "\0",
    "a\nb",
    "\x01",
    "\x1f",
    "\x7f",
    "\x80",
    "\x9f",
    "é\n",
    "\ud800",
    "a\udfffb",
    "a" * 201,
    "é" * 101,
    "🦀" * 51,
    ".statestore",
    ".StateStore",
    ".STATESTORE",
    b"bytes",
    7,
    Path("x"),
]
BAD_IN: dict[str, list[Any]] = {
    "category": [
        *("", None, "x.json", "x.md", "x.bin", "X.JSON", "a/x.md/b", "/", ".statestore/locks", "a/.statestore/b"),
        "/".join(["a" * 199] * 3),
    ],
    "prefix": ["x.json", "a/x.md/b", ".statestore/tmp"],
    "name": ["", None, "a/b"],
    "session_id": ["", "a/b"],
    "new_id": ["", "a/b"],
}


def named_parameters(cls: type) -> list[tuple[str, str]]:
    """Every public method of a class with every parameter of it that is a name."""
    found: list[tuple[str, str]] = []
    for method, function in inspect.getmembers(cls, inspect.isfunction):
        if not method.startswith("_"):
            found += [(method, name) for name in inspect.signature(function).parameters if name in NAMED]
    return found


@pytest.fixture
def filled(store: StateStore) -> StateStore:
    """A store with something to lose."""
    session = Session("alice", "s")
    session.add_user_message("m")
    store.save_session(session)
    store.save_json("notes", "n", 1)
    store.save_markdown("notes", "n", "text")
    store.save_bytes("notes", "n", b"bytes")
    store.list_sessions()
    return store


def contents(store: StateStore) -> object:
    """Everything that a store holds, for engines without a directory."""
    documents = [store.get_document("notes", "n", kind=kind) for kind in ("json", "md", "bin")]
    session = store.load_session("s")
    return documents, session and session.version, store.list_categories(), store.count_sessions()


def refuse_all(
    store: StateStore, directory: Path, call: Callable[[Any], Any], parameter: str, *, may_be_none: bool
) -> None:
    held = contents(store)
    before = snapshot(directory)
    for value in [*BAD, *BAD_IN[parameter]]:
        if value is None and may_be_none:
            continue
        with pytest.raises(InvalidName) as caught:
            call(value)
        assert str(caught.value), "the error says which rule"
        assert snapshot(directory) == before, f"{value!r} was refused, and something was touched"
    assert contents(store) == held


@pytest.mark.parametrize(("method", "parameter"), named_parameters(StateStore))
def test_the_store_refuses_bad_names_and_touches_nothing(
    filled: StateStore, directory: Path, method: str, parameter: str
) -> None:
    original = getattr(StateStore, method)
    default = inspect.signature(original).parameters[parameter].default

    def call(value: Any) -> Any:
        return call_bound(filled, original, method, parameter, value)

    refuse_all(filled, directory, call, parameter, may_be_none=default is None)


@pytest.mark.parametrize(("method", "parameter"), named_parameters(UserStore))
def test_a_users_store_refuses_bad_names_and_touches_nothing(
    filled: StateStore, directory: Path, method: str, parameter: str
) -> None:
    original = getattr(UserStore, method)
    default = inspect.signature(original).parameters[parameter].default
    alice = filled.for_user("alice")

    def call(value: Any) -> Any:
        return call_bound(alice, original, method, parameter, value)

    refuse_all(filled, directory, call, parameter, may_be_none=default is None)


@pytest.mark.parametrize(("method", "parameter"), named_parameters(Batch))
def test_a_batch_refuses_bad_names_and_touches_nothing(
    filled: StateStore, directory: Path, method: str, parameter: str
) -> None:
    def call(value: Any) -> Any:
        with filled.batch() as batch:
            batch.save_markdown("notes", "written-with-it", "text")
            call_bound(batch, getattr(Batch, method), method, parameter, value)

    refuse_all(filled, directory, call, parameter, may_be_none=False)


def call_bound(target: Any, original: Callable[..., Any], method: str, name: str, value: Any) -> Any:
    """Call a method with one name given and everything else in order; the signature is the plain face's."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for parameter in list(inspect.signature(original).parameters.values())[1:]:
        if parameter.name == name:
            given = value
        elif parameter.name in GOOD and parameter.default is parameter.empty:
            given = GOOD[parameter.name]
        elif parameter.default is parameter.empty:
            given = NOT_NAMES[parameter.name]()
        else:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY:
            kwargs[parameter.name] = given
        else:
            args.append(given)
    return getattr(target, method)(*args, **kwargs)


def test_the_methods_with_names_are_found() -> None:
    """The search above finds what is there: else the tests would pass by testing nothing."""
    found = set(named_parameters(StateStore))
    expected = {
        *(("load_session", "session_id"), ("delete_session", "session_id"), ("append", "session_id")),
        *(("fork_session", "session_id"), ("fork_session", "new_id"), ("rewind_session", "session_id")),
        *(("save_json", "category"), ("save_json", "name"), ("load_markdown", "name"), ("delete_category", "category")),
        *(
            ("list_categories", "prefix"),
            ("get_or_create_session", "session_id"),
            ("update_session_with", "session_id"),
        ),
    }
    assert expected <= found
    assert set(named_parameters(AsyncStateStore)) == found
    assert set(named_parameters(AsyncUserStore)) == set(named_parameters(UserStore))
    assert {("save_json", "category"), ("delete_session", "session_id")} <= set(named_parameters(Batch))


@pytest.mark.parametrize("value", [*BAD, *BAD_IN["session_id"]], ids=ascii)
def test_a_session_cannot_be_made_with_a_bad_id(value: Any) -> None:
    for make in (lambda: Session("alice", value), lambda: Session.with_id("alice", value)):
        with pytest.raises(InvalidName):
            make()


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("", "empty"),
        (".", "this directory"),
        ("a..b", "'..'"),
        ("a/b", "'/'"),
        ("a\\b", "'\\'"),
        ("a\x01", "control character"),
        ("é\x01", "control character"),
        ("\ud800", "surrogate"),
        ("a" * 201, "201 bytes"),
        (".statestore", "store's own"),
    ],
)
def test_the_error_says_which_rule_was_broken(name: str, rule: str) -> None:
    with pytest.raises(InvalidName, match=rule.replace("\\", "\\\\").replace(".", r"\.")) as caught:
        Session("alice", name)
    assert caught.value.args[0].isascii() or "é" in caught.value.args[0]


LIMITS = [
    "a",
    "a" * 200,
    "é" * 100,
    "🦀" * 50,
    "a b",
    ".hidden",
    "..."[:1] + "x",
    "a.b.c",
    "x.json",
    "x.md",
    "-",
    "~",
    "CON",
    "%2e%2e",
    "a:b",
    "日本語",
    "e\u0301",
    "\u00e9",
    "a'\"*?<>|",
    " lead and trail ",
    "trailing.",
    "statestore",
    "sessions",
]


@pytest.mark.parametrize("name", LIMITS, ids=ascii)
def test_good_names_work_everywhere(store: StateStore, name: str) -> None:
    session = store.get_or_create_session("alice", name)
    session.add_user_message("m")
    store.save_session(session)
    store.save_json("notes", name, 1)
    store.save_markdown("notes", name, "text")
    store.save_bytes("notes", name, b"bytes")
    assert store.list_category("notes") == [name]
    assert [summary.id for summary in store.list_sessions()] == [name]
    loaded = store.load_session(name)
    assert loaded is not None
    assert loaded.id == name
    assert store.load_json("sessions", name)["id"] == name
    assert store.check() == []
    assert store.delete_file("notes", name, kind="md")
    assert store.delete_session(name)


@pytest.mark.parametrize(
    "category",
    ["a", "a/b/c", "a" * 200, "/".join(["a" * 99] * 5), ".hidden/x", "日本/語", "x.jsonl", "json", "sessions/x"],
)
def test_good_categories_work_everywhere(store: StateStore, category: str) -> None:
    store.save_json(category, "n", 1)
    assert store.load_json(category, "n") == 1
    assert store.list_categories() == [category]
    assert store.list_categories(category) == [category]
    assert store.list_category(category) == ["n"]
    assert store.delete_category(category) == 1
    assert store.list_categories() == []


@pytest.mark.parametrize("category", ["/abs", "a/", "a//b"])
def test_the_error_tells_an_empty_part_from_an_empty_category(store: StateStore, category: str) -> None:
    with pytest.raises(InvalidName, match=f"invalid category '{category}': the part before or after a '/' is empty"):
        store.save_json(category, "n", 1)


def test_a_category_may_have_500_bytes_and_no_more(store: StateStore) -> None:
    longest = "/".join(["a" * 199, "b" * 199, "c" * 100])
    assert len(longest) == 500
    store.save_json(longest, "n", 1)
    assert store.list_categories() == [longest]
    with pytest.raises(InvalidName, match="500"):
        store.save_json(longest + "c", "n", 1)


def test_writing_documents_among_the_sessions_is_refused_and_names_the_way(store: StateStore, directory: Path) -> None:
    store.save_session(Session("alice", "s"))
    before = snapshot(directory)
    for write in (
        lambda: store.save_json("sessions", "s", {}),
        lambda: store.save_markdown("sessions", "s", ""),
        lambda: store.save_bytes("sessions", "s", b""),
        lambda: store.delete_file("sessions", "s"),
    ):
        with pytest.raises(InvalidName, match="save_session"):
            write()
    with pytest.raises(InvalidName, match="delete_session"):
        store.delete_category("sessions")
    assert snapshot(directory) == before
    assert store.session_exists("s")


class Text(str):
    """A text of a class of its own, as enumerations and frameworks have them."""

    __slots__ = ()


def test_names_of_a_class_of_their_own_are_as_good(store: StateStore) -> None:
    store.save_json(Text("notes"), Text("n"), 1)
    assert store.load_json("notes", "n") == 1
    session = Session(Text("alice"), Text("s"))
    store.save_session(session)
    store.append(SessionId("s"), UserMessage("m"))
    assert store.session_exists(SessionId("s"))
    with store.batch() as batch:
        batch.save_json(Text("notes"), Text("n"), 2)
        batch.save_markdown(Text("other"), Text("n"), Text("m"))
        batch.delete_session(SessionId("s"))
    assert store.load_json("notes", "n") == 2
    assert store.list_categories() == ["notes", "other"]


def test_an_unwritten_bad_name_is_not_created_by_another_face(face: Face, directory: Path) -> None:
    store = face.open(directory)
    with pytest.raises(InvalidName):
        store.save_json("notes", "../escape", 1)
    assert not (directory.parent / "escape.json").exists()
    assert not (directory / "notes").exists()
