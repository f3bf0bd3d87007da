"""docs/api.md is true: it names everything that is public, with the parameters that it has."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import statestore
from statestore import AgentResponse, Batch, Event, PruneConfig, Session, StateStore, UserMessage, exchange

PAGE = (Path(__file__).parent.parent / "docs" / "api.md").read_text(encoding="utf-8")
CODE = set(re.findall(r"`([^`]+)`", PAGE))
NAMES = {name for code in CODE for name in re.findall(r"\w+", code)}


def as_written(name: str, function: Any) -> str:
    """A call with all its parameters, as the page writes it."""
    signature = inspect.signature(function)
    bare = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in signature.parameters.values()
        if parameter.name != "self"
    ]
    text = (
        str(inspect.Signature(bare))
        .replace("typing.Any", "Any")
        .replace("<built-in function monotonic>", "time.monotonic")
    )
    return f"{name}{text}"


def public(cls: type) -> dict[str, Any]:
    return {name: getattr(cls, name) for name in dir(cls) if not name.startswith("_")}


@pytest.mark.parametrize("cls", [StateStore, Session])
def test_every_method_is_on_the_page_with_all_its_parameters(cls: type) -> None:
    methods = {as_written(name, member) for name, member in public(cls).items() if callable(member)}
    assert methods - CODE == set()
    assert set(public(cls)) - NAMES == set()


def test_a_users_store_has_what_the_page_says() -> None:
    (table,) = re.findall(r"^## Sessions\n(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)
    listed = set(re.findall(r"^\| `(\w+)\(", table, re.MULTILINE))
    methods = {name for name, member in public(statestore.UserStore).items() if callable(member)}
    assert methods == listed - {"for_user", "erase_user"}


def test_what_a_batch_writes_is_on_the_page() -> None:
    methods = {as_written(name, member) for name, member in public(Batch).items() if name in public(StateStore)}
    assert len(methods) == 8
    assert methods - CODE == set()


def test_functions_are_on_the_page_with_all_their_parameters() -> None:
    functions = (statestore.copy_store, statestore.async_copy_store, statestore.PruneThrottle, PruneConfig)
    assert {as_written(function.__name__, function) for function in functions} - CODE == set()


def test_exports_and_imports_are_on_the_page_with_all_their_parameters() -> None:
    functions = {name for name in exchange.__all__ if inspect.isfunction(getattr(exchange, name))}
    names = functions - {
        "check_beginning",
        "check_directory",
        "check_is_elsewhere",
        "unlisted_sessions",
    }  # which the command line needs
    assert {as_written(f"exchange.{name}", getattr(exchange, name)) for name in names} - CODE == set()


def test_records_take_what_the_page_says() -> None:
    moment = statestore.SessionSummary("s", "u", 0, "2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z").created_at
    for called in (UserMessage, AgentResponse, Event):
        (written,) = (code for code in CODE if code.startswith(f"{called.__name__}("))
        names = re.findall(r"(\w+)=None", written)
        given: dict[str, Any] = dict.fromkeys(names) | {"timestamp": moment, "extra": {"ours": 1}}
        record = called("text", **given)
        assert (record.timestamp, record.extra) == (moment, {"ours": 1})


def test_every_public_name_is_on_the_page() -> None:
    assert set(statestore.__all__) - NAMES == set()


def test_the_page_names_nothing_that_is_not_there() -> None:
    stored = public(StateStore) | public(Session) | public(statestore.PruneThrottle) | vars(statestore)
    called = {match[1] for code in CODE if (match := re.match(r"(\w+)\(", code))}
    assert called - set(stored) - {"change", "help"} == set()
