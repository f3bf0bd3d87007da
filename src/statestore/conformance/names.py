"""Names at their limits: one rule for all engines, so that anything can move anywhere."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Coroutine
from typing import Any, Final

import pytest

from statestore.conformance.bench import Bench
from statestore.conformance.changes import ALICE, appended, created, event, everything_in, lines_of, session_of, user
from statestore.conformance.contract import Contract, case
from statestore.engine import ChangeSession, DeleteSession, DocumentQuery, PutDocument, SessionQuery
from statestore.errors import InvalidName, NameTaken
from statestore.session import Session

ODD_NAMES: Final = (
    "x" * 200,
    "é" * 100,
    "東" * 66,
    "\U0001f600" * 50,
    ".hidden.file",
    ".x",
    "x.",
    "x ",
    " x",
    "a b c",
    "-rf",
    "--",
    "~",
    "*",
    "?",
    "a:b",
    "a|b",
    "<a>",
    'quote"d',
    "it's",
    "%2e%2e",
    "%00",
    "$HOME",
    "a;b",
    "#a",
    "a&b=c",
    "{a}",
    "[a]",
    "CON",
    "nul",
    "a.json",
    "a.md",
    "a.tmp",
    "a.json.json",
    "sessions",
    "statestore",
    "0",
    "null",
    "Ⅷ",
    "\u200bzero width",
    "\u202eright to left",
    "ﬀ ligature",
    "👩‍👩‍👧‍👦",
)
"""Names that the rule allows."""

BAD_NAMES: Final = ("", ".", "..", "a/../b", "/abs", "a\\b", "a\0b", "a\nb", "\x7f", "\x85", "\ud800", "x" * 201)
"""Names that it does not."""


class NameCases(Contract):
    """Names at their limits."""

    @case
    async def test_odd_session_ids_are_ids_like_any_other(self, bench: Bench) -> None:
        """Every id that the rule allows names a session of its own, is listed, and can be deleted."""
        for name in ODD_NAMES:
            await bench.commit(created(name, user(name)))
        await bench.reopen()
        listed = [summary.id for summary in await bench.engine.list_sessions(SessionQuery(order="id"))]
        assert listed == sorted(ODD_NAMES)
        for name in ODD_NAMES:
            stored = await session_of(bench.engine, name)
            assert (stored.id, [line.said for line in await lines_of(bench.engine, name)]) == (name, [name])
        for name in ODD_NAMES[::2]:
            assert (await bench.commit(DeleteSession(name)))[0].deleted == 1
        listed = [summary.id for summary in await bench.engine.list_sessions(SessionQuery(order="id"))]
        assert listed == sorted(ODD_NAMES[1::2])

    @case
    async def test_odd_document_names_are_names_like_any_other(self, bench: Bench) -> None:
        """Every name that the rule allows names a document of its own."""
        for index, name in enumerate(ODD_NAMES):
            await bench.commit(PutDocument("notes", name, "md", str(index).encode()))
            await bench.commit(PutDocument("notes", name, "json", str(index).encode()))
        await bench.reopen()
        for index, name in enumerate(ODD_NAMES):
            document = await bench.engine.get_document("notes", name, "md")
            assert document is not None
            assert (document.name, document.body) == (name, str(index).encode())
        infos = await bench.engine.list_documents(DocumentQuery("notes"))
        assert [(info.name, info.kind) for info in infos] == [
            (name, kind) for name in sorted(ODD_NAMES) for kind in ("json", "md")
        ]

    @case
    async def test_categories_nest_to_500_bytes(self, bench: Bench) -> None:
        """A category may be several parts of up to 200 bytes, 500 in all."""
        deep = "/".join(["a" * 200, "é" * 100, "b" * 98])
        many = "/".join(["c"] * 250)
        categories = [deep, many, "a/b", "a", "a b/c.d", "sub/sessions", "sessions/sub"]
        for category in categories:
            await bench.commit(PutDocument(category, "n" * 200, "json", b"1"))
        await bench.reopen()
        assert await bench.engine.list_categories() == sorted(categories)
        for category in categories:
            infos = await bench.engine.list_documents(DocumentQuery(category))
            assert [info.name for info in infos] == ["n" * 200]

    @case
    async def test_names_that_look_alike_are_two_names(self, bench: Bench) -> None:
        """Upper and lower case, composed and decomposed: two names, or NameTaken and nothing lost."""
        composed, decomposed = (unicodedata.normalize(form, "Åé") for form in ("NFC", "NFD"))
        for first, second in (("Name", "name"), (composed, decomposed), ("ß", "ss"), ("İ", "i̇"), ("K", "\u212a")):
            assert first != second
            await _keep_apart(bench, first, second)

    @case
    async def test_a_document_may_be_called_like_a_category_or_a_session(self, bench: Bench) -> None:
        """Sessions, documents and categories have names of their own: none hides another."""
        await bench.commit(created("x", user("session")))
        for category, name in (("notes", "x"), ("notes/x", "x"), ("x", "x"), ("x", "sessions"), ("notes/x", "y")):
            for kind in ("json", "md", "bin"):
                await bench.commit(PutDocument(category, name, kind, f'"{category} {name} {kind}"'.encode()))
        for category, name in (("notes", "x"), ("notes/x", "x"), ("x", "x"), ("x", "sessions"), ("notes/x", "y")):
            for kind in ("json", "md", "bin"):
                document = await bench.engine.get_document(category, name, kind)
                assert document is not None
                assert document.body == f'"{category} {name} {kind}"'.encode()
        assert [line.said for line in await lines_of(bench.engine, "x")] == ["session"]

    @case
    async def test_users_keys_kinds_and_metadata_keys_reach_500_bytes(self, bench: Bench) -> None:
        """Labels of up to 500 bytes of any text but NUL are kept, compared exactly, and may be empty for a user."""
        longest = "é" * 250
        for index, label in enumerate((longest, longest[:-1] + "e", "", " ", "a\nb", "%", "_", "A", "a", "\U0001f600")):
            session_id = f"s{index}"
            await bench.commit(created(session_id, user_id=label, metadata={label: b'"value"'}))
            await bench.commit(
                ChangeSession(
                    session_id, created("s").updated, set_fields={"project_id": label, "active_seed_id": label}
                )
            )
            name = label or "kind"
            await bench.commit(appended(session_id, event(name, label, key=name)))
            stored = await session_of(bench.engine, session_id)
            assert (stored.fields.user_id, stored.fields.project_id) == (label, label)
            assert await lines_of(bench.engine, session_id) == [(1, name, label, name)]
            for query in (SessionQuery(user_id=label), SessionQuery(project_id=label)):
                assert [summary.id for summary in await bench.engine.list_sessions(query)] == [session_id]

    @case
    async def test_a_bad_name_touches_nothing(self, bench: Bench) -> None:
        """A name that breaks the rule raises InvalidName in every method, and nothing was touched."""
        store = bench.store
        await store.save_json("notes", "n", 1)
        await store.save_session(Session.with_id(ALICE, "s"))
        before = await everything_in(bench.engine)
        for bad in BAD_NAMES:
            calls: list[Callable[[str], Coroutine[Any, Any, object]]] = [
                lambda name: store.save_json("notes", name, 1),
                lambda name: store.save_bytes("notes", name, b""),
                lambda name: store.load_markdown("notes", name),
                lambda name: store.delete_file("notes", name),
                lambda name: store.load_session(name),
                lambda name: store.delete_session(name),
                lambda name: store.get_or_create_session(ALICE, name),
                lambda name: store.append(name),
                lambda name: store.rewind_session(name, to=0),
                lambda name: store.fork_session("s", new_id=name),
            ]
            for call in calls:
                with pytest.raises(InvalidName):
                    await call(bad)
        assert await everything_in(bench.engine) == before


async def _keep_apart(bench: Bench, first: str, second: str) -> None:
    """Two documents and two sessions; or one of each, and a refusal."""
    documents: dict[str, bytes] = {}
    sessions: list[str] = []
    for name, body in ((first, b"1"), (second, b"2")):
        try:
            await bench.commit(PutDocument("notes", name, "json", body))
            documents[name] = body
            await bench.commit(created(name, user(name)))
            sessions.append(name)
        except NameTaken:
            assert name == second
    for name, body in documents.items():
        document = await bench.engine.get_document("notes", name, "json")
        assert document is not None
        assert (document.name, document.body) == (name, body)
    for name in sessions:
        assert [line.said for line in await lines_of(bench.engine, name)] == [name]
