"""Opening the store that a command works on. Those that only look never create one, and write nothing."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from statestore import StateStore, StoreNotFound, StoreUnavailable
from statestore.cli.failures import UNUSABLE, WRONG_USAGE, CommandFailed

if TYPE_CHECKING:
    import typer

    from statestore.cli.chosen import Chosen


@contextmanager
def reading(ctx: typer.Context, *, relaxed: bool = False) -> Generator[StateStore]:
    """The chosen store, for a command that looks."""
    with _opened(ctx.obj, create=False, read_only=True, relaxed=relaxed) as store:
        yield store


@contextmanager
def searching(ctx: typer.Context) -> Generator[StateStore]:
    """The chosen store, for a command that searches: the index of words is kept, where it may be written.

    Without it, every search would have to read everything anew.
    """
    with ExitStack() as opened:
        store = opened.enter_context(reading(ctx))  # which refuses what only a writer would bring up to date
        with suppress(StoreUnavailable):
            store = opened.enter_context(writing(ctx))
        yield store


@contextmanager
def writing(ctx: typer.Context, *, create: bool = False, relaxed: bool = False) -> Generator[StateStore]:
    """The chosen store, for a command that writes; with ``create``, one that is not there is made."""
    with _opened(ctx.obj, create=create, read_only=False, relaxed=relaxed) as store:
        yield store


def check_lasts(target: str) -> None:
    """Refuse a store that is gone when the command ends: what is put there is lost, and there is nothing to see."""
    if target.lower().startswith("memory:"):
        raise CommandFailed("memory: is gone when the command ends: name a store that lasts", WRONG_USAGE)


@contextmanager
def _opened(chosen: Chosen, *, create: bool, read_only: bool, relaxed: bool) -> Generator[StateStore]:
    check_lasts(chosen.target)
    durability = "relaxed" if relaxed else "full"
    try:
        store = StateStore.open(chosen.target, create=create, read_only=read_only, durability=durability)
    except StoreNotFound as error:
        raise CommandFailed(f"there is no store at {error.place}: {_way_on(chosen)}", UNUSABLE) from error
    with store:
        yield store


def _way_on(chosen: Chosen) -> str:
    if chosen.is_default:
        return "name one with --store or STATESTORE_URL, or make one here with statestore new"
    return "check the name, or make one there with statestore --store … new"
