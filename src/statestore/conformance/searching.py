"""Searching: everything that was acknowledged is found by its words, and nothing that is gone."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import pytest
from hypothesis import strategies as st

from statestore.conformance.bench import Bench
from statestore.conformance.changes import (
    ALICE,
    BOB,
    agent,
    appended,
    created,
    event,
    moment,
    session_of,
    truncated,
    user,
)
from statestore.conformance.contract import Contract, offered
from statestore.conformance.sampling import samples_of
from statestore.engine import ChangeSession, DeleteSession, SearchQuery
from statestore.errors import InvalidCursor
from statestore.pruning import PruneConfig
from statestore.records import AgentResponse, Event, UserMessage
from statestore.session import Session
from statestore.store.async_store import AsyncStateStore
from statestore.stored import Cursor, SearchHit
from statestore.terms import Term

Place = tuple[str, int]
"""A session's id, and a record's number, or 0 for the title."""

ODD_QUERIES: Final = (
    *(
        "",
        " ",
        "\0",
        '"',
        '""',
        '"""',
        "*",
        "**",
        '"*',
        '"a',
        'a"b',
        "a*b",
        "-a",
        "+a",
        "^a",
        "a:b",
        "text:a",
        "{a b}: c",
    ),
    *("AND", "OR", "NOT", "NEAR", "a AND", "NOT a", "(a", "a)", "()", "NEAR(a b, 3)", "a NEAR/2 b", "rank", "words"),
    *("'", "''", "a';--", ";", "%", "_", "\\", "\\\\", "[", "]", "?", "?1", ":a", "@a", "$a", "#", "\x7f", "\ufeff"),
    *(
        "\ud800",
        "a\udfff",
        "\U0010ffff",
        "\u202e",
        "e\u0301",
        "\u0301",
        "東",
        "\U0001f600",
        "ß",
        "İ",
        "ﬁ",
        "\u0661",
        "a\0b",
    ),
    *("x" * 5000, "a " * 3000, '"a ' * 500, "word\n" * 50),
)
ODD_CHARACTERS: Final = "aB1é東ก\u0301\"*'()-+^:{}.,;%_\\\0\n\t \ud800\udfff\U0001f600“„"
NO_CURSORS: Final = (
    "",
    " ",
    "nonsense",
    "0",
    "00",
    "zz",
    "é",
    "\0",
    "\ud800",
    "-1",
    "ff" * 50,
    b"0:0".hex(),
    b"x:y".hex(),
)


class SearchCases(Contract):
    """Words are found."""

    @offered("search")
    async def test_words_are_found_wherever_they_are(self, bench: Bench) -> None:
        """A word is found in messages, responses, events' data however deep, and titles; nowhere else."""
        await bench.commit(
            created(
                "s1", user("the apple fell"), agent("an apple?"), event("tool", {"a": [1, {"b": "red apple pie"}]})
            ),
            created("s2", user("a pear"), event("apple", "of that kind"), event("tool", ["no fruit", 5, None, True])),
            created("apple", user("only by its id"), user_id="apple", fields={"project_id": "apple"}),
        )
        titled = Session.with_id(ALICE, "s3")
        titled.add_user_message("nothing of the sort")
        titled.set_metadata("title", "My apple tree")
        titled.set_metadata("other", "apple")
        await bench.store.save_session(titled)
        assert await _places(bench.store, "apple") == [("s1", 1), ("s1", 2), ("s1", 3), ("s3", 0)]
        assert await _places(bench.store, "pear") == [("s2", 1)]
        assert await _places(bench.store, "fruit") == [("s2", 3)]
        assert await _places(bench.store, "absent") == []
        await bench.reopen()
        assert await _places(bench.store, "apple") == [("s1", 1), ("s1", 2), ("s1", 3), ("s3", 0)]

    @offered("search")
    async def test_all_words_must_occur(self, bench: Bench) -> None:
        """All words must be in one record, in any order; quoted words follow each other; a star finds beginnings."""
        await bench.commit(
            created("s", user("one two three"), user("three two one"), user("one"), user("two"), agent("twofold one")),
        )
        expected: dict[str, list[int]] = {
            "one two": [1, 2],
            "two one": [1, 2],
            "one two one": [1, 2],
            "one four": [],
            '"one two"': [1],
            '"two one"': [2],
            '"one three"': [],
            '"one two" three': [1],
            "two*": [1, 2, 4, 5],
            "tw* one": [1, 2, 5],
            '"one tw"*': [1],
            "two": [1, 2, 4],
            "one-two": [1],
            "one, two!": [1, 2],
            "wo": [],
            '"one two': [1, 2],
        }
        for query, seqs in expected.items():
            assert await _places(bench.store, query) == [("s", seq) for seq in seqs], query

    @offered("search")
    async def test_case_and_accents_make_no_difference(self, bench: Bench) -> None:
        """A word is found in any case, with and without accents, composed or not; letters that differ, differ."""
        texts = ["Café au lait", "CAFE\u0301", "Straße", "ΣΊΣΥΦΟΣ", "naïve", "Ёлка", "ﬁne"]
        await bench.commit(created("s", *map(user, texts)))
        expected: dict[str, list[int]] = {
            "cafe": [1, 2],
            "CAFÉ": [1, 2],
            "cafe\u0301": [1, 2],
            "STRASSE": [3],
            "strasse": [3],
            "σίσυφος": [4],
            "σισυφοσ": [4],
            "naive": [5],
            "елка": [6],
            "fine": [7],
            "caff": [],
        }
        for query, seqs in expected.items():
            assert await _places(bench.store, query) == [("s", seq) for seq in seqs], query

    @offered("search")
    async def test_text_without_spaces_is_found_in_any_part(self, bench: Bench) -> None:
        """Any part of Japanese, Chinese, Thai or Korean text is found, and what only looks similar is not."""
        texts = [
            "私は東京都に住んでいます。",
            "京東商城",
            "ฉันชอบภาษาไทยมาก",
            "서울에서 만나요",
            "東 京",
            "Tokyo東京2020",
        ]
        await bench.commit(created("s", *map(user, texts)))
        expected: dict[str, list[int]] = {
            "東京": [1, 6],
            "京都": [1],
            "東京都": [1],
            "住んで": [1],
            "京": [1, 2, 5, 6],
            "京東": [2],
            "都京": [],
            "ภาษา": [3],
            "ไทย": [3],
            "ภาษาอ": [],
            "서울": [4],
            "에서": [4],
            "tokyo": [6],
            "東京 住んで": [1],
        }
        for query, seqs in expected.items():
            assert await _places(bench.store, query) == [("s", seq) for seq in seqs], query

    @offered("search")
    async def test_what_was_acknowledged_is_found_at_once(self, bench: Bench) -> None:
        """Whatever wrote a record, also another engine on the same storage, the next search finds it."""
        store, other = bench.store, await bench.another()
        session = Session.with_id(ALICE, "s")
        session.add_user_message("zebra saved")
        await store.save_session(session)
        expected = [("s", 1)]
        assert await _places(store, "zebra") == expected
        await store.append("s", AgentResponse("zebra appended"), Event("tool", "a zebra event"))
        expected += [("s", 2), ("s", 3)]
        assert await _places(store, "zebra") == expected
        await other.store.append("s", UserMessage("zebra from elsewhere"))
        expected += [("s", 4)]
        assert await _places(store, "zebra") == expected
        assert await _places(other.store, "zebra") == expected
        session.add_event("tool", "zebra merged")
        await store.save_session(session)
        expected += [("s", 5)]
        assert await _places(store, "zebra") == expected
        await other.store.fork_session("s", at=2, new_id="fork")
        expected = [("fork", 1), ("fork", 2), *expected]
        assert await _places(store, "zebra") == expected
        assert await _places(other.store, "zebra saved") == [("fork", 1), ("s", 1)]
        batched = Session.with_id(BOB, "batched")
        batched.add_user_message("zebra batched")
        async with other.store.batch() as batch:
            batch.save_session(batched)
        await other.engine.commit([created("created", user("zebra"), agent("zebra"))])
        expected = [("batched", 1), ("created", 1), ("created", 2), *expected]
        assert await _places(store, "zebra") == expected
        await bench.crash()
        await bench.store.append("s", UserMessage("the last zebra"))
        assert await _places(bench.store, "zebra") == [*expected, ("s", 6)]

    @offered("search")
    async def test_what_is_gone_is_not_found(self, bench: Bench) -> None:
        """Rewound, replaced, deleted, pruned: what is no longer there is no longer found, by anybody."""
        other = await bench.another()
        await bench.commit(created("s", user("zebra one"), agent("zebra two"), user("zebra three"), user("zebra four")))
        await bench.commit(created("t", user("zebra"), at=1), created("u", user("zebra"), at=2))
        assert len(await _places(bench.store, "zebra")) == 6
        await other.store.rewind_session("s", to=2)
        assert await _places(bench.store, "zebra") == [("s", 1), ("s", 2), ("t", 1), ("u", 1)]
        assert await _places(bench.store, "four") == []
        session = await bench.store.load_session("s")
        assert session is not None
        session.agent_responses[0] = AgentResponse("a horse")
        await bench.store.save_session(session)
        assert await _places(other.store, "zebra") == [("s", 1), ("t", 1), ("u", 1)]
        assert [place[0] for place in await _places(other.store, "horse")] == ["s"]
        await bench.commit(truncated("s", 0, user("a new zebra", seq=None)))
        (stored,) = (await session_of(bench.engine, "s")).records.in_order()
        assert await _places(bench.store, "zebra") == [("s", stored.seq), ("t", 1), ("u", 1)]
        assert await _places(bench.store, "horse") == await _places(bench.store, "one") == []
        await bench.store.delete_session("s")
        assert await _places(other.store, "zebra") == [("t", 1), ("u", 1)]
        assert await other.store.prune_sessions(PruneConfig(max_sessions=1, ttl_hours=0)) == 1
        assert await _places(bench.store, "zebra") == [("u", 1)]

    @offered("search")
    async def test_an_id_used_anew_finds_only_the_new(self, bench: Bench) -> None:
        """A session deleted and created again with its id is found by the new words alone, also between searches."""
        for number in range(4):
            words = [f"zebra round{number}"] * (4 - number)
            await bench.commit(created("s", *map(user, words), at=number))
            if number != 1:
                expected = [("s", seq + 1) for seq in range(4 - number)]
                assert await _places(bench.store, "zebra") == expected
                assert await _places(bench.store, f"round{number}") == expected
            await bench.commit(DeleteSession("s"))
        assert await _places(bench.store, "zebra") == []
        await bench.commit(created("s", agent("a horse"), user_id=BOB))
        assert await _places(bench.store, "zebra") == []
        assert await _places(bench.store, "horse", user_id=BOB) == [("s", 1)]
        assert await _places(bench.store, "horse", user_id=ALICE) == []

    @offered("search")
    async def test_a_title_is_followed(self, bench: Bench) -> None:
        """A title is found as it is now; what begins a first message is found there, and not as a title."""
        session = Session.with_id(ALICE, "s")
        session.add_user_message("hello zebra")
        await bench.store.save_session(session)
        assert await _places(bench.store, "zebra") == [("s", 1)]
        steps: list[tuple[Any, dict[str, list[int]]]] = [
            ("Of horses", {"horses": [0], "zebra": [1]}),
            ("Of zebras and a zebra", {"horses": [], "zebra": [0, 1]}),
            ("", {"of": [], "zebra": [1]}),
            ("Of cats", {"cats": [0], "of": [0]}),
            (5, {"cats": [], "5": []}),
            ("Of cats", {"cats": [0]}),
            (None, {"cats": []}),
        ]
        for title, expected in steps:
            if title is None:
                del session.metadata["title"]
            else:
                session.set_metadata("title", title)
            await bench.store.save_session(session)
            for query, seqs in expected.items():
                assert await _places(bench.store, query) == [("s", seq) for seq in seqs], (title, query)

    @offered("search")
    async def test_filters_of_a_search(self, bench: Bench) -> None:
        """user_id and project_id select exactly, alone and together, and follow what a session becomes."""
        for number in range(12):
            fields: dict[str, str | None] = {"project_id": ("p", "q", "")[number % 3]} if number % 4 else {}
            user_id = (ALICE, BOB, "Alice")[number % 5 % 3]
            await bench.commit(created(f"s{number:02}", user(f"zebra {number}"), user_id=user_id, fields=fields))
        summaries = await bench.store.list_sessions(order="id")
        for user_id in (None, ALICE, BOB, "Alice", "nobody", ""):
            for project_id in (None, "p", "q", "", "none"):
                expected = [
                    (summary.id, 1)
                    for summary in summaries
                    if user_id in (None, summary.user_id) and project_id in (None, summary.project_id)
                ]
                assert await _places(bench.store, "zebra", user_id=user_id, project_id=project_id) == expected
        session = await bench.store.load_session("s00")
        assert session is not None
        for key, project in (("project_ids", "m,n"), ("project_id", "l")):
            session.set_metadata(key, project)
            await bench.store.save_session(session)
            assert await _places(bench.store, "zebra", project_id=project[0]) == [("s00", 1)]
        assert await _places(bench.store, "zebra", project_id="m") == []

    @offered("search")
    async def test_a_users_store_finds_that_users_words_alone(self, bench: Bench) -> None:
        """To a user's store, others' words are not there: not as hits, not in pages, not by asking for them."""
        await bench.commit(
            created("a", *(user(f"zebra {n}") for n in range(5)), event("tool", "hers alone")),
            created("b", user("zebra"), agent("zebra, his"), user_id=BOB),
        )
        titled = Session.with_id(ALICE, "t")
        titled.set_metadata("title", "zebra")
        await bench.store.save_session(titled)
        bobs = bench.store.for_user(BOB)
        assert await _places(bobs, "zebra") == await _places(bobs, "zebra", user_id=BOB) == [("b", 1), ("b", 2)]
        assert await _places(bobs, "zebra", user_id=ALICE) == await _places(bobs, "alone") == []
        hits = await bobs.search_sessions("zebra", limit=1)
        hits += await bobs.search_sessions("zebra", after=hits[0].cursor)
        assert sorted(_place(hit) for hit in hits) == [("b", 1), ("b", 2)]
        assert len(await _places(bench.store.for_user(ALICE), "zebra")) == 6

    @offered("search")
    async def test_pages_of_hits_make_the_whole(self, bench: Bench) -> None:
        """While nobody writes, limit and after go through all hits, each once, in the order of the whole."""
        for number in range(4):
            texts = ["zebra " * (1 + seq % 3) + "horse " * (seq % 5) for seq in range(6)]
            await bench.commit(created(f"s{number}", *map(user, texts), user_id=(ALICE, BOB)[number % 2]))
        whole = await bench.store.search_sessions("zebra")
        assert sorted(map(_place, whole)) == [(f"s{number}", seq) for number in range(4) for seq in range(1, 7)]
        assert len({hit.cursor for hit in whole}) == 24
        for size in (1, 2, 5, 7, 23, 24, 25, 2**40):
            assert await _paged(bench.store, "zebra", size) == list(map(_place, whole)), size
        await bench.reopen()
        assert await _paged(bench.store, "zebra", 10) == list(map(_place, whole))
        assert sorted(await _paged(bench.store.for_user(BOB), "zebra", 5)) == [
            (f"s{number}", seq) for number in (1, 3) for seq in range(1, 7)
        ]
        assert await bench.store.search_sessions("zebra", after=whole[-1].cursor) == []
        assert len(await bench.store.search_sessions("zebra", limit=3)) == 3

    @offered("search")
    async def test_pages_miss_nothing_that_nobody_touched(self, bench: Bench) -> None:
        """Who goes through the hits page by page finds each of them once, whatever others say meanwhile."""
        texts = ["zebra" + " word" * (number * 7 % 13) for number in range(30)]
        await bench.commit(created("s", *(user(text) for text in texts)))
        await bench.commit(created("t"))
        found: list[int | None] = []
        after = None
        while page := await bench.store.search_sessions("zebra", limit=5, after=after):
            found += [hit.seq for hit in page]
            after = page[-1].cursor
            await bench.commit(appended("t", *(user(f"something else {number}") for number in range(10))))
        assert sorted(seq for seq in found if seq is not None) == list(range(1, 31))

    @offered("search")
    async def test_a_hit_tells_where_and_shows_the_words(self, bench: Bench) -> None:
        """A hit has the session, its user and title, the record's number and kind, and a snippet with marks."""
        long = "x y z " * 200 + "the striped Zébra grazes\n\nhere " + "x y z " * 200
        await bench.commit(created("s", user("hello there"), agent("A zebra, ZEBRA!"), event("tool.call", [long])))
        session = Session.with_id(BOB, "t")
        session.set_metadata("title", "On zebras: the zebra")
        await bench.store.save_session(session)
        hits = {_place(hit): hit for hit in await bench.store.search_sessions("zebra")}
        assert sorted(hits) == [("s", 2), ("s", 3), ("t", 0)]
        told = {place: (hit.seq, hit.kind, hit.user_id, hit.title) for place, hit in hits.items()}
        assert told == {
            ("s", 2): (2, "agent", ALICE, "hello there"),
            ("s", 3): (3, "tool.call", ALICE, "hello there"),
            ("t", 0): (None, "title", BOB, "On zebras: the zebra"),
        }
        assert {place: _marked(hit) for place, hit in hits.items()} == {
            ("s", 2): ["zebra", "ZEBRA"],
            ("s", 3): ["Zébra"],
            ("t", 0): ["zebra"],
        }
        assert hits["s", 2].snippet == "A zebra, ZEBRA!"
        assert len(hits["s", 3].snippet) < 300
        assert "striped Zébra grazes here" in hits["s", 3].snippet
        (hit,) = await bench.store.search_sessions('"zebra grazes" strip*')
        assert "".join(_marked(hit)).replace(" ", "") == "stripedZébragrazes"
        (hit,) = await bench.store.search_sessions("hello")
        assert (hit.seq, hit.kind, hit.snippet, hit.marks) == (1, "user", "hello there", ((0, 5),))

    @offered("search")
    async def test_any_text_is_a_query(self, bench: Bench) -> None:
        """Whatever is searched for, the answer is a list of hits whose marks are in their snippets."""
        await bench.commit(created("s", user("a b AND word é 東京 ก1"), user('NOT "near" a*b'), agent("x" * 5000)))
        queries = [*ODD_QUERIES, *samples_of(st.text(st.sampled_from(ODD_CHARACTERS)), 60), *samples_of(st.text(), 40)]
        for query in queries:
            for hit in await bench.store.search_sessions(query):
                assert hit.session_id == "s", ascii(query)
                assert hit.marks, ascii(query)
                assert all(0 <= start < end <= len(hit.snippet) for start, end in hit.marks), ascii(query)
        assert await _places(bench.store, "word") == [("s", 1)]
        assert await _places(bench.store, "near") == [("s", 2)]
        assert await _places(bench.store, "x" * 5000) == [("s", 3)]

    @offered("search")
    async def test_any_text_that_is_stored_is_found_by_itself(self, bench: Bench) -> None:
        """A message is found by its own text, whatever it is, if there is any word in it."""
        texts = [text for text in samples_of(st.text(st.characters(codec="utf-8")), 60) if any(map(str.isalpha, text))]
        texts += [
            "東京 Tokyo ก",
            "ǅ ǆ",
            "İstanbul",
            "a\u0301\u0302\u0303b",
            "don't",
            "x" * 300,
            "e.g. C++ and C#",
            "½ ⅓",
        ]
        await bench.commit(created("s", *map(user, texts)))
        for number, text in enumerate(texts):
            query = text.replace('"', " ").replace("*", " ")
            places = await _places(bench.store, query, limit=1000)
            assert ("s", number + 1) in places or not places, ascii(text)
            if text[0].isascii() and text.isalnum():
                assert ("s", number + 1) in places, ascii(text)

    @offered("search")
    async def test_the_best_comes_first(self, bench: Bench) -> None:
        """A short text with the word, or one that has it often, comes before a long one that has it once."""
        filler = " ".join(f"filler{number}" for number in range(300))
        await bench.commit(
            created("once", user(f"{filler} zebra {filler}")),
            created("short", user("zebra")),
            created("often", user(f"zebra zebra zebra {filler} zebra zebra {filler} zebra zebra")),
            *(created(f"other{number}", user(filler)) for number in range(10)),
        )
        found = [hit.session_id for hit in await bench.store.search_sessions("zebra")]
        assert sorted(found) == ["often", "once", "short"]
        assert found[-1] == "once"
        assert [hit.session_id for hit in await bench.store.search_sessions("zebra", limit=1)] == found[:1]

    @offered("search")
    async def test_nothing_to_look_for_finds_nothing(self, bench: Bench) -> None:
        """A query without words, or a limit of 0, gives no hits."""
        await bench.commit(created("s", user('hello * ! "" AND'), user("")))
        for query in ("", " ", "*", '""', '"', "!?", "\n\t", "-", "*** ---"):
            assert await bench.store.search_sessions(query) == [], query
        assert await bench.store.search_sessions("hello", limit=0) == []
        assert await _places(bench.store, "hello") == [("s", 1)]

    @offered("search")
    async def test_what_is_no_cursor_of_a_hit_is_refused(self, bench: Bench) -> None:
        """A cursor that no hit had raises InvalidCursor."""
        await bench.commit(created("s", user("hello"), user("hello")))
        hit = (await bench.store.search_sessions("hello"))[0]
        (summary,) = await bench.store.list_sessions()
        wrong: list[Any] = [
            *NO_CURSORS,
            summary.cursor,
            Cursor(5, "é").text,
            f"{hit.cursor} ",
            hit.cursor[:-1],
            5,
            b"x",
        ]
        for cursor in wrong:
            with pytest.raises(InvalidCursor):
                await bench.store.search_sessions("hello", after=cursor)
        for cursor in NO_CURSORS:
            with pytest.raises(InvalidCursor):
                await bench.searching.search_sessions(SearchQuery((Term(("hello",)),), after=cursor))
        assert len(await bench.store.search_sessions("hello", after=hit.cursor)) == 1

    @offered("search")
    async def test_an_erased_user_leaves_nothing_to_find(self, bench: Bench) -> None:
        """After erase_user nothing of that user is found, by anybody, and everything of others is."""
        other = await bench.another()
        await bench.commit(created("a", user("zebra"), agent("secret")), created("b", user("zebra"), user_id=BOB))
        titled = Session.with_id(ALICE, "t")
        titled.set_metadata("title", "secret zebra")
        await bench.store.save_session(titled)
        assert len(await _places(other.store, "zebra")) == 3
        assert await bench.store.erase_user(ALICE) == 2
        for store in (bench.store, other.store, bench.store.for_user(ALICE)):
            assert await _places(store, "secret") == await _places(store, "zebra", user_id=ALICE) == []
        assert await _places(bench.store, "zebra") == [("b", 1)]
        await bench.reopen()
        assert await _places(bench.store, "secret") == []

    @offered("search")
    async def test_bringing_the_index_up_to_date_is_always_safe(self, bench: Bench) -> None:
        """update_search_index can be called at any time, again and again, and changes no hit."""
        await bench.searching.update_search_index()
        await bench.commit(created("s", user("zebra"), user("horse")))
        for _ in range(2):
            await bench.searching.update_search_index()
            assert await _places(bench.store, "zebra") == [("s", 1)]
        await bench.commit(truncated("s", 0, user("horse")))
        await bench.searching.update_search_index()
        await bench.searching.update_search_index()
        assert await _places(bench.store, "zebra") == []
        assert await _places(bench.store, "horse") == [("s", 3)]

    @offered("search")
    async def test_however_much_changed_since_the_last_search(self, bench: Bench) -> None:
        """Thousands of records, new or in place of others, and hundreds of sessions are found by the next search."""
        await bench.commit(created("s", *(user(f"zebra{n}") for n in range(2300))))
        assert await _places(bench.store, "zebra2299") == [("s", 2300)]
        await bench.commit(truncated("s", 5, *(user(f"horse{n} herd") for n in range(2300))))
        await bench.commit(*(created(f"t{n:03}", user(f"horse{n}")) for n in range(300)))
        assert await _places(bench.store, "horse2299") == [("s", 4600)]
        assert await _places(bench.store, "zebra2299") == []
        assert await _places(bench.store, "horse299") == [("s", 2600), ("t299", 1)]
        assert len(await bench.store.search_sessions("herd", limit=5000)) == 2300
        assert await bench.store.prune_sessions(PruneConfig(max_sessions=1, ttl_hours=0)) == 300
        assert len(await _places(bench.store, "horse299")) == 1

    @offered("search")
    async def test_many_who_write_and_search_find_their_own(self, bench: Bench) -> None:
        """Writers that search right after they wrote find what they wrote, once, whoever else is writing."""
        await bench.commit(created("s"))
        stores = [bench.store, (await bench.another()).store]

        async def write(writer: int) -> None:
            store = stores[writer % 2]
            for number in range(4):
                word = f"w{writer}n{number}"
                (seq,) = await store.append("s", UserMessage(f"the word {word}"))
                assert await _places(store, word) == [("s", seq)]

        await bench.together(*(partial(write, writer) for writer in range(4)))
        assert len(await _places(bench.store, '"the word"')) == 16

    @offered("search")
    async def test_a_search_changes_nothing(self, bench: Bench) -> None:
        """Searching is reading: versions and moments stay, and check finds nothing wrong."""
        await bench.commit(created("s", user("zebra"), at=1))
        await bench.commit(appended("s", user("zebra")))
        await bench.commit(ChangeSession("s", moment(2), set_metadata={"n": b"1"}))
        before = (await session_of(bench.engine, "s")).version
        assert len(await bench.store.search_sessions("zebra")) == 2
        assert (await session_of(bench.engine, "s")).version == before
        assert await bench.engine.check() == []


def _place(hit: SearchHit) -> Place:
    return hit.session_id, hit.seq or 0


async def _places(store: AsyncStateStore | Any, query: str, **options: Any) -> list[Place]:
    """Where something is found, in the order of ids and numbers; each place once."""
    places = sorted(_place(hit) for hit in await store.search_sessions(query, **options))
    assert len(places) == len(set(places)), f"{query!r} is found twice in one place"
    return places


async def _paged(store: AsyncStateStore | Any, query: str, size: int) -> list[Place]:
    """Where something is found, best first, read in pages."""
    places: list[Place] = []
    after: str | None = None
    while page := await store.search_sessions(query, limit=size, after=after):
        assert len(page) <= size
        assert len(places) < 1000, "the pages never end"
        places += map(_place, page)
        after = page[-1].cursor
    return places


def _marked(hit: SearchHit) -> list[str]:
    return [hit.snippet[start:end] for start, end in hit.marks]
