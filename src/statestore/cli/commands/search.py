"""``statestore search``: where some words occur."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Annotated, Final

import typer

from statestore import CorruptData, SearchHit, SessionNotFound, StateStore
from statestore.cli.failures import WRONG_USAGE, CommandFailed, complain
from statestore.cli.moments import moment_before_now
from statestore.cli.naming import shown_ids
from statestore.cli.opening import searching
from statestore.cli.parameters import Json, Project, Since, User
from statestore.cli.printing import cut, is_terminal, print_json, print_line, styled, terminal_width, width_of
from statestore.visible import isolated, on_one_line

EXAMPLES: Final = (
    "statestore search ferry noon",
    "statestore search '\"two seats\" book*' --user alice --since 30d",
)
_PAGE: Final = 50


def search(
    ctx: typer.Context,
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="All of them must occur in one place.")],
    user: User = None,
    project: Project = None,
    since: Since = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="How many hits at most.")] = 20,
    as_json: Json = False,
) -> None:
    """Search messages, events and titles, best hits first.

    "Quoted words" follow each other, begin* finds what begins so. Case and accents make no difference. The first
    search in a large store takes a while: it makes an index of all words, and keeps it in the store.
    """
    query = " ".join(words)
    oldest = None if since is None else moment_before_now(since)
    with searching(ctx) as store:
        found = list(islice(_hits(store, query, user, project, oldest, limit), limit))
    ids = [hit.session_id for hit in found]
    for hit, session_id in zip(found, shown_ids(ids), strict=True):
        if as_json:
            print_json(hit)
        else:
            _print_hit(hit, session_id)
    if not found:
        if not any(character.isalnum() for character in query):
            raise CommandFailed(f"{query!r} has no words to search for", WRONG_USAGE)
        raise CommandFailed(f"nothing has {query!r} in it")


def _hits(
    store: StateStore, query: str, user: str | None, project: str | None, oldest: datetime | None, limit: int
) -> Iterator[SearchHit]:
    """All hits; with ``oldest``, those of records that are not older."""
    page = limit if oldest is None else max(limit, _PAGE)
    cursor = None
    while hits := store.search_sessions(query, user_id=user, project_id=project, limit=page, after=cursor):
        for hit in hits:
            if oldest is None or _is_since(store, hit, oldest):
                yield hit
        cursor = hits[-1].cursor


def _is_since(store: StateStore, hit: SearchHit, oldest: datetime) -> bool:
    """Whether it was said since then; of a title, whether the session was changed since then.

    What cannot be read tells no moment: it is left out, with a warning.
    """
    try:
        if hit.seq is not None and (entries := store.timeline(hit.session_id, before=hit.seq + 1, limit=1)):
            return entries[0].record.timestamp >= oldest
        session = store.load_session(hit.session_id, last=0)
    except (CorruptData, SessionNotFound) as error:  # damaged, or deleted just now
        complain(f"warning: session {hit.session_id} is left out: {error}")
        return False
    return session is not None and session.updated_at >= oldest


def _print_hit(hit: SearchHit, session_id: str) -> None:
    place = "" if hit.seq is None else f" #{hit.seq}"
    where = on_one_line(f"{session_id}{place} {hit.kind}  {hit.user_id}")
    title = on_one_line(hit.title or "-")
    if is_terminal():
        title = isolated(cut(title, max(terminal_width() - width_of(where) - 2, 20)))
    print_line(styled(title, "bold"), "  ", styled(where, "dim"))
    print_line("    ", _marked(hit))


def _marked(hit: SearchHit) -> str:
    """The snippet, its words underlined, or between quotes where nothing can be underlined."""
    parts: list[str] = []
    end = 0
    for start, stop in hit.marks:
        word = on_one_line(hit.snippet[start:stop])
        parts += on_one_line(hit.snippet[end:start]), styled(word, "mark") if is_terminal() else f"«{word}»"
        end = stop
    return "".join((*parts, on_one_line(hit.snippet[end:])))
