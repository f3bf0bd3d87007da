"""Going through a whole store in pages: its sessions by id, its documents by category, name and kind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from statestore.engine import DocumentQuery, Engine, SessionQuery
from statestore.names import SESSIONS, check_name, check_stored_category
from statestore.stored import Cursor, DocumentInfo, Problem, SessionSummary

PAGE: Final = 500
LISTED: Final = 10_000
"""How many documents are listed at once: of each it is little that is told, and in a directory all are looked at."""


async def session_pages(
    engine: Engine, *, user_id: str | None = None, after: str | None = None
) -> AsyncIterator[list[SessionSummary]]:
    """All sessions, or one user's, by id; or those after one."""
    while True:
        cursor = None if after is None else Cursor(0, after)
        page = await engine.list_sessions(SessionQuery(user_id=user_id, order="id", after=cursor, limit=PAGE))
        if page:
            yield page
        if len(page) < PAGE:
            return
        after = page[-1].id


async def document_pages(engine: Engine) -> AsyncIterator[list[DocumentInfo]]:
    """All documents; each page is of one category."""
    for category in await engine.list_categories():
        query = DocumentQuery(category, limit=LISTED)
        while listed := await engine.list_documents(query):
            for start in range(0, len(listed), PAGE):
                yield listed[start : start + PAGE]
            if len(listed) < LISTED:
                break
            query = DocumentQuery(category, after=(listed[-1].name, listed[-1].kind), limit=LISTED)


async def sessions_between(engine: Engine, after: str | None, last: str) -> list[SessionSummary]:
    """The sessions in a part of the listing by id."""
    found: list[SessionSummary] = []
    async for page in session_pages(engine, after=after):
        found += [summary for summary in page if summary.id <= last]
        if page[-1].id >= last:
            break
    return found


def session_in_question(problem: Problem) -> str | None:
    """The id of the session that a problem is about, if it may be about one: a file of that name, or a row."""
    kind, _, session_id = problem.where.partition(" ")
    if kind == "session":
        return session_id
    directory, _, name = problem.where.rpartition("/")
    return name.removesuffix(".json") if directory == SESSIONS else None


def document_place(info: DocumentInfo) -> str:
    """What a document is called in messages."""
    return f"document {info.category}/{info.name}.{info.kind}"


def check_place(info: DocumentInfo) -> None:
    """Raise `InvalidName` for a document that no store can have made."""
    check_stored_category(info.category)
    check_name(info.name)
