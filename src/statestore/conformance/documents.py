"""Documents: bytes by category, name and kind, kept as they are."""

from __future__ import annotations

from typing import Final

from statestore.conformance.bench import Bench
from statestore.conformance.changes import created, document_of, everything_in, put
from statestore.conformance.contract import Contract, case
from statestore.engine import DeleteCategory, DeleteDocument, DeleteSession, DocumentQuery, Outcome, PutDocument
from statestore.stored import DOCUMENT_KINDS, Document, DocumentInfo, DocumentKind

BIG: Final = 5_000_000

MARKDOWN: Final = (
    b"",
    b"\n",
    b"no newline at the end",
    b"one\r\ntwo\rthree\n\n",
    b"\xef\xbb\xbfa byte order mark",
    b"NUL \x00 in the middle",
    b"trailing space \t \n ",
    "Grüße, 東京, \U0001f600, e\u0301, \u2028".encode(),
)

JSON: Final = (
    b"null",
    b"{}",
    b'{"b": 1, "a": 2}',
    b'{\n\t"a" :\r\n 1 }\n',
    b'{"a":1,"a":2}',
    b"[1e16,-0.0,1E5,0.10,1e400,18446744073709551615,-9223372036854775808,123456789012345678901234567890]",
    b'"\\u00e9 \\/ \\ud83d\\ude00 \\u0000 \\u001f"',
    '"é 東京 \U0001f600"'.encode(),
)


class DocumentCases(Contract):
    """Documents are kept."""

    @case
    async def test_a_document_comes_back_as_it_was_put(self, bench: Bench) -> None:
        """A document has the place, kind, bytes and version that it was written with."""
        (outcome,) = await bench.commit(put("n", b'{"a": 1}'))
        assert outcome == Outcome(None, outcome.version)
        assert await document_of(bench.engine, "n") == Document("notes", "n", "json", b'{"a": 1}', str(outcome.version))
        assert type((await document_of(bench.engine, "n")).body) is bytes

    @case
    async def test_the_last_put_wins(self, bench: Bench) -> None:
        """Writing a document again replaces it whole, and tells which version was replaced."""
        (first,) = await bench.commit(put("n", b'"a long first value"'))
        (second,) = await bench.commit(put("n", b"2"))
        assert str(second.before) == str(first.version)
        assert (await document_of(bench.engine, "n")).body == b"2"

    @case
    async def test_three_kinds_share_a_name(self, bench: Bench) -> None:
        """A JSON, a markdown and a binary document of one name are three documents."""
        bodies = {"json": b"1", "md": b"# one", "bin": b"\x01"}
        for kind in DOCUMENT_KINDS:
            await bench.commit(put("n", bodies[kind], kind=kind))
        for kind in DOCUMENT_KINDS:
            assert (await document_of(bench.engine, "n", kind)).body == bodies[kind]
        await bench.commit(DeleteDocument("notes", "n", "md"))
        assert await bench.engine.get_document("notes", "n", "md") is None
        assert (await document_of(bench.engine, "n", "json")).body == b"1"
        assert (await document_of(bench.engine, "n", "bin")).body == b"\x01"

    @case
    async def test_markdown_keeps_every_byte(self, bench: Bench) -> None:
        """Texts keep their line ends, NULs, marks and spaces, and an empty one is a document."""
        for index, body in enumerate(MARKDOWN):
            await bench.commit(put(f"n{index}", body, kind="md"))
        await bench.reopen()
        for index, body in enumerate(MARKDOWN):
            assert (await document_of(bench.engine, f"n{index}", "md")).body == body

    @case
    async def test_json_keeps_every_byte(self, bench: Bench) -> None:
        """A JSON document keeps its white space, its numbers, its escapes and the order of its keys."""
        for index, body in enumerate(JSON):
            await bench.commit(put(f"n{index}", body))
        await bench.reopen()
        for index, body in enumerate(JSON):
            assert (await document_of(bench.engine, f"n{index}")).body == body

    @case
    async def test_bytes_keep_every_byte(self, bench: Bench) -> None:
        """A binary document holds any bytes, or none."""
        for name, body in (("all", bytes(range(256)) * 3), ("none", b""), ("nul", b"\0")):
            await bench.commit(put(name, body, kind="bin"))
        await bench.reopen()
        assert (await document_of(bench.engine, "all", "bin")).body == bytes(range(256)) * 3
        assert (await document_of(bench.engine, "none", "bin")).body == b""
        assert (await document_of(bench.engine, "nul", "bin")).body == b"\0"

    @case
    async def test_five_megabytes_are_a_document(self, bench: Bench) -> None:
        """Large documents come back whole, and are listed with their size."""
        body = bytes(range(251)) * (BIG // 251)
        await bench.commit(put("big", body, kind="bin"))
        assert (await document_of(bench.engine, "big", "bin")).body == body
        assert await bench.engine.list_documents(DocumentQuery("notes")) == [
            DocumentInfo("notes", "big", "bin", len(body))
        ]

    @case
    async def test_a_stored_null_is_not_nothing(self, bench: Bench) -> None:
        """JSON null is a value that is there; what was never stored is not."""
        await bench.store.save_json("notes", "null", None)
        missing = object()
        assert await bench.store.load_json("notes", "null", default=missing) is None
        assert await bench.store.load_json("notes", "other", default=missing) is missing
        assert await bench.store.get_document("notes", "null") is not None
        assert await bench.store.get_document("notes", "other") is None

    @case
    async def test_deleting_what_is_not_there_is_no_error(self, bench: Bench) -> None:
        """Deleting an absent document, category or session does nothing and says so."""
        for absent in (DeleteDocument("notes", "n", "json"), DeleteCategory("notes"), DeleteSession("s")):
            assert await bench.commit(absent) == [Outcome(None)]
        await bench.commit(put("n"))
        assert await bench.commit(DeleteDocument("notes", "n", "md")) == [Outcome(None)]
        assert (await document_of(bench.engine, "n")).body == b"1"

    @case
    async def test_a_deleted_document_is_gone(self, bench: Bench) -> None:
        """A deleted document is neither read nor listed; the outcome tells what was deleted."""
        (stored,) = await bench.commit(put("n"))
        (outcome,) = await bench.commit(DeleteDocument("notes", "n", "json"))
        assert (str(outcome.before), outcome.version, outcome.deleted) == (str(stored.version), None, 1)
        assert await bench.engine.get_document("notes", "n", "json") is None
        assert await bench.engine.list_documents(DocumentQuery("notes")) == []
        assert await bench.engine.list_categories() == []

    @case
    async def test_deleting_a_category_leaves_those_below_and_beside(self, bench: Bench) -> None:
        """Deleting a category removes its own documents, of all kinds, and nothing else."""
        kept = ("notes/sub", "notes2", "note", "Notes", "other")
        for category in ("notes", *kept):
            for kind in DOCUMENT_KINDS:
                await bench.commit(PutDocument(category, "n", kind, b"1"))
        await bench.commit(created("notes"))
        before = await everything_in(bench.engine)
        assert (await bench.commit(DeleteCategory("notes")))[0].deleted == 3
        gone = {f"document notes/n.{kind}" for kind in DOCUMENT_KINDS}
        assert await everything_in(bench.engine) == {item: held for item, held in before.items() if item not in gone}

    @case
    async def test_a_listing_is_by_name_then_kind(self, bench: Bench) -> None:
        """A category lists each of its documents once, by name in code point order, then by kind, with its size."""
        names = ["b", "a", "B", "a b", "a.b", "ä", "\uff5e", "\U0001f600", "10", "9"]
        for name in names:
            await bench.commit(put(name, b"12", kind="md"))
        for kind in DOCUMENT_KINDS:
            await bench.commit(put("a", b"123", kind=kind))
        await bench.commit(PutDocument("notes/sub", "c", "md", b""))
        expected = [
            DocumentInfo("notes", name, kind, 3 if name == "a" else 2)
            for name in sorted(names)
            for kind in (("bin", "json", "md") if name == "a" else ("md",))
        ]
        assert await bench.engine.list_documents(DocumentQuery("notes")) == expected

    @case
    async def test_pages_of_documents_make_the_whole(self, bench: Bench) -> None:
        """However large the pages, together they are the listing: each document once, in code point order."""
        names = ["b", "a", "B", "a b", "a.b", "a.", "ä", "\uff5e", "\U0001f600", "10", "9", "a\u0301"]
        for name in names:
            for kind in DOCUMENT_KINDS if name in ("a", "9", "\U0001f600") else DOCUMENT_KINDS[:1]:
                await bench.commit(put(name, b"12", kind=kind))
        await bench.commit(PutDocument("notes/sub", "a", "md", b""))
        await bench.commit(PutDocument("note", "z", "md", b""))
        whole = await bench.engine.list_documents(DocumentQuery("notes"))
        assert len(whole) == len(names) + 6
        for size in (1, 2, 5, len(whole) - 1, len(whole), len(whole) + 1, 2**80):
            paged: list[DocumentInfo] = []
            page = await bench.engine.list_documents(DocumentQuery("notes", limit=size))
            while page:
                assert len(page) <= size
                paged += page
                after = (page[-1].name, page[-1].kind)
                page = await bench.engine.list_documents(DocumentQuery("notes", after=after, limit=size))
            assert paged == whole, f"{size=}"
        assert await bench.engine.list_documents(DocumentQuery("notes", limit=0)) == []

    @case
    async def test_a_page_of_documents_goes_on_after_one_that_is_gone(self, bench: Bench) -> None:
        """A listing goes on after a document that was deleted, or never was, and without a limit to its end."""
        for name in ("a", "b", "c"):
            for kind in DOCUMENT_KINDS:
                await bench.commit(put(name, kind=kind))
        await bench.commit(DeleteDocument("notes", "b", "json"))
        places: tuple[tuple[tuple[str, DocumentKind], str], ...] = (
            (("b", "json"), "b.md c.bin c.json c.md"),
            (("b", "bin"), "b.md c.bin c.json c.md"),
            (("a ", "md"), "b.bin b.md c.bin c.json c.md"),
            (("A", "md"), "a.bin a.json a.md b.bin b.md c.bin c.json c.md"),
            (("c", "md"), ""),
            (("z", "bin"), ""),
        )
        for after, expected in places:
            found = await bench.engine.list_documents(DocumentQuery("notes", after=after))
            assert [f"{info.name}.{info.kind}" for info in found] == expected.split()
            first = await bench.engine.list_documents(DocumentQuery("notes", after=after, limit=1))
            assert first == found[:1]

    @case
    async def test_categories_are_those_that_hold_documents(self, bench: Bench) -> None:
        """All categories, or one and those below it, sorted; an emptied one is gone, and sessions is none."""
        for category in ("b", "a/x/y", "a", "a-b", "ab", "a/x z", "B"):
            await bench.commit(PutDocument(category, "n", "json", b"1"))
        await bench.commit(created("s"))
        assert await bench.engine.list_categories() == sorted(["b", "a/x/y", "a", "a-b", "ab", "a/x z", "B"])
        assert await bench.engine.list_categories("a") == ["a", "a/x z", "a/x/y"]
        assert await bench.engine.list_categories("a/x") == ["a/x/y"]
        assert await bench.engine.list_categories("c") == []
        assert await bench.engine.list_categories("sessions") == []
        await bench.commit(DeleteDocument("a", "n", "json"))
        assert await bench.engine.list_categories("a") == ["a/x z", "a/x/y"]

    @case
    async def test_sessions_read_like_a_category(self, bench: Bench) -> None:
        """list_category("sessions") lists ids, and load_json gives a session as JSON."""
        await bench.commit(created("s1", at=5))
        await bench.commit(created("s2", at=6))
        assert await bench.store.list_category("sessions") == ["s1", "s2"]
        loaded = await bench.store.load_json("sessions", "s1")
        assert (loaded["id"], loaded["user_id"], loaded["user_messages"]) == ("s1", "alice", [])
        assert await bench.store.load_json("sessions", "s3") is None
        assert await bench.engine.list_categories() == []
