"""What is typed is found: checked against FTS5 itself, with the tokenizer that leaves all decisions to us."""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import closing

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from statestore.records import AGENT, USER
from statestore.searching import (
    MAX_QUERY,
    MAX_WORD,
    Snippet,
    index_text,
    match_expression,
    parse_query,
    snippet_of,
    text_in,
    tokens_of,
)
from statestore.terms import Term


def fresh_index() -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE t USING fts5(text, tokenize='ascii', content='')")
    return database


INDEX = fresh_index()


def hits_of_terms(indexed: Iterable[str], terms: Sequence[Term]) -> list[int]:
    """Which of these texts, given as they go into the index, FTS5 finds."""
    try:
        INDEX.executemany("INSERT INTO t(rowid, text) VALUES (?, ?)", enumerate(indexed))
        rows = INDEX.execute("SELECT rowid FROM t WHERE t MATCH ? ORDER BY rowid", (match_expression(terms),))
        return [row[0] for row in rows]
    finally:
        INDEX.rollback()


def hits(texts: Iterable[str], query: str) -> list[int]:
    return hits_of_terms(map(index_text, texts), parse_query(query))


def is_found(text: str, query: str) -> bool:
    return hits([text], query) == [0]


def marked(snippet: Snippet) -> list[str]:
    return [snippet.text[start:end] for start, end in snippet.marks]


UNSPACED = "東京都に住んでいますカタカナー々ภาษาไทยกรุงພາສາລາວភាសាខ្មែរမြန်မာ한국어"
TRICKY = (
    "aAzZ09 _-'\"*^:().,\t\n\0\x1f\x7f\x85\xa0\u3000éÉßİıŒfiﬁＡｂ½²ſǅΣσςйЙёअहिन्दीதமிழ்مَعَ\u0301\u0338\u3099ｶﾞﾊﾟ"
    "\u200b\u200d\ufe0f\u00ad“”„«»😀👍🏽❤€→│\ud800\udfff\ue000"
) + UNSPACED
texts = st.text(st.sampled_from(TRICKY) | st.characters(), max_size=40) | st.text(st.sampled_from(TRICKY), max_size=12)
ascii_texts = st.text(st.sampled_from('aB9 _-"*') | st.characters(max_codepoint=127), max_size=40)
long_words = st.integers(MAX_WORD - 2, MAX_WORD + 2).map(lambda length: "x" * length)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("The quick brown fox", "fox"),
        ("The quick brown fox", "FOX the"),
        ("The quick brown fox", '"quick brown"'),
        ("The quick brown fox", "“quick brown”"),
        ("The quick brown fox", "qui*"),
        ("The quick brown fox", '"quick bro"*'),
        ("The quick brown fox", '"quick'),  # a quote that is not closed
        ("I don't know foo_bar and a.b.c", "don't foo_bar a.b.c"),
        ("CAFÉ crème", "cafe CREME"),
        ("cafe\u0301", "café"),
        ("cafe", "café"),
        ("Straße", "STRASSE"),
        ("İstanbul", "istanbul"),
        ("ﬁne Ｆｕｌｌ", "fine full"),
        ("H₂O ①", "h2o 1"),
        ("私は東京都に住んでいます", "東京"),
        ("私は東京都に住んでいます", "京"),
        ("私は東京都に住んでいます", "す"),
        ("私は東京都に住んでいます", "東京*"),
        ("私は東京都に住んでいます", "私は東京都に住んでいます"),
        ("がぎぐ", "か\u3099"),
        ("ｶﾞﾗｽ", "ガラス"),
        ("ภาษาไทย", "ภาษา"),
        ("ภาษาไทย", "ไทย"),
        ("한국어를 배웁니다", "국어"),
        ("हिन्दी में", "हिन्दी"),
        ("हिन्दी में", "हिन*"),
        ("தமிழ் மொழி", "தமிழ்"),
        ("مُحَمَّد", "محمد"),
        ("می\u200cخواهم", "میخواهم"),
        ("hello 👍🏽 there", "👍"),
        ("hello 👍🏽 there", "👍🏽"),
        ("I ❤\ufe0f it", "❤"),
        ("the 東京tower is", "東京tower"),
        ("the 東京tower is", "京tower"),
        ("the 東京tower is", "tower"),
        ("the 東京 tower is", '"東京 tower"'),
        ("the 東京 tower is", '"京 tow"*'),
        ("visit tower東京都", "tower東京"),
        ("visit tower 東京都", '"visit tower 東"'),
        ("visit tower 東京都 now", '"tower 東京都 now"'),
        ("在2024年3月", "2024年"),
        ("nul\0byte and \x1funit", "nul byte unit"),
        ("lone \ud800 surrogate é", "\ud800 lone surrogate"),
    ],
)
def test_it_is_found(text: str, query: str) -> None:
    assert is_found(text, query)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("The quick brown fox", "fo"),
        ("The quick brown fox", '"brown quick"'),
        ("The quick brown fox", "“brown quick”"),
        ("The quick brown fox", "«brown quick»"),
        ("The quick brown fox", '"qui brown"*'),
        ("The quick brown fox", "fox wolf"),
        ("foobar", "foo-*"),  # what goes on is another word
        ("foo and bar", "foo_bar"),
        ("がぎぐ", "か"),
        ("東京 都", "東京都"),
        ("東京大阪", "京大阪東"),
        ("東都", "東京都"),
        ("東京 京都", "東京都"),
        ("東京都tower", "東京tower"),
        ("हिन्दी", "हिन"),
        ("word", ""),
        ("word", '"" * ... \0 \ud800 _'),
    ],
)
def test_it_is_not_found(text: str, query: str) -> None:
    assert not is_found(text, query)


def test_the_tokens_of_text_without_spaces_are_pairs_and_the_last_character() -> None:
    assert tokens_of("東京都tower 京 a") == ["東京", "京都", "都", "tower", "京", "a"]
    assert parse_query("東京都") == (Term(("東京", "京都")),)
    assert parse_query("京") == (Term(("京",), is_prefix=True),)
    assert parse_query('東京tower "a 京都"') == (Term(("東京", "京", "tower")), Term(("a", "京都")))


@pytest.mark.parametrize("query", ["a AND b", "a or NOT a", "NEAR(a b)", "^a:b", "(a) -b", "'; DROP TABLE t; --"])
def test_operators_are_words_and_punctuation(query: str) -> None:
    words = [token for term in parse_query(query) for token in term.tokens]
    assert words == list(dict.fromkeys(re.findall("[a-z]+", query.lower())))


def test_the_same_term_counts_once() -> None:
    assert parse_query('Fox fox "FOX" fox* fox*') == (Term(("fox",)), Term(("fox",), is_prefix=True))
    assert parse_query("fox " * MAX_QUERY + "wolf") == (Term(("fox",)), Term(("wolf",)))


def test_marks_do_not_break_words_in_any_script() -> None:
    """Every mark between two letters is in one word with them, but for scripts without spaces, signs and music."""
    for code in range(0x80, 0x110000):
        mark = chr(code)
        if unicodedata.category(mark) in ("Mn", "Mc") and not 0x1BC00 <= code < 0x1DB00:
            tokens = tokens_of(f"अ{mark}अ")
            assert len(tokens) == 1 or tokens[1:2] == [unicodedata.normalize("NFKC", mark)], hex(code)


def test_punctuation_breaks_words_in_any_script() -> None:
    for code in range(0x110000):
        sign = chr(code)
        if unicodedata.category(sign)[0] in "PZ":
            assert tokens_of(f"a{sign}अ{sign}東")[-1] == "東", hex(code)
            assert tokens_of(f"a{sign}अ{sign}東")[0] == "a", hex(code)


@given(texts)
def test_fts5_sees_the_tokens_of_a_text(text: str) -> None:
    """No token is broken, joined or folded once more by the index."""
    with closing(fresh_index()) as index:
        index.execute("CREATE VIRTUAL TABLE v USING fts5vocab(t, instance)")
        index.execute("INSERT INTO t(rowid, text) VALUES (1, ?)", (index_text(text),))
        rows = index.execute("SELECT term FROM v ORDER BY offset").fetchall()
    assert [term for (term,) in rows] == tokens_of(text)


@given(texts, st.text(st.sampled_from(UNSPACED), min_size=1, max_size=12), st.data())
def test_any_part_of_text_without_spaces_is_found(text: str, run: str, data: st.DataObject) -> None:
    run = unicodedata.normalize("NFKC", run)
    start = data.draw(st.integers(0, len(run) - 1))
    part = run[start : data.draw(st.integers(start + 1, len(run)))]
    assert is_found(f"{text} {run} {text}", part)
    assert is_found(f"{text}x{run}x{text}", part)


@given(
    st.text(st.sampled_from("東京都大ab "), max_size=12), st.text(st.sampled_from("東京都大"), min_size=1, max_size=4)
)
def test_text_without_spaces_is_found_exactly(text: str, part: str) -> None:
    assert is_found(text, part) == (part in text)


@given(texts)
def test_each_word_of_a_text_is_found(text: str) -> None:
    for word in text.split():
        assert is_found(text, word) or not tokens_of(word)


@given(texts, st.data())
def test_any_words_in_their_order_are_found_as_a_phrase(text: str, data: st.DataObject) -> None:
    words = re.sub('["“”„«»＂*]', " ", text).split()
    start = data.draw(st.integers(0, len(words)))
    phrase = " ".join(words[start : data.draw(st.integers(start, len(words)))])
    text = " ".join(words)
    assert is_found(text, f'"{phrase}"') or not tokens_of(phrase)
    assert is_found(text, f'"{phrase}"*') or not tokens_of(phrase)


@given(st.text(st.sampled_from("abc é"), max_size=20), st.data())
def test_the_beginning_of_a_word_with_a_star_finds_it(text: str, data: st.DataObject) -> None:
    for word in text.split():
        assert is_found(text, word[: data.draw(st.integers(1, len(word)))] + "*")


@given(st.text() | texts)
@example('"')
@example("\0")
@example("a" * 40_000 + '" AND "')
@example("あ" * 40_000)
@example(" ".join(map(str, range(40_000))))
@example('"' * 10_001)
@example("\u0e38\u0e48" * 100_000)
def test_any_text_is_a_query(query: str) -> None:
    terms = parse_query(query)
    assert sum(len(term.tokens) for term in terms) <= MAX_QUERY
    assert len(set(terms)) == len(terms)
    assert bool(terms) == bool(tokens_of(query))
    hits(["some text"], query)


def test_a_long_query_finds_what_it_was_copied_from() -> None:
    words, run = " ".join(map(str, range(2000))), "".join(map(chr, range(0x4E00, 0x5200)))
    assert is_found(words, words)
    assert is_found(words, f'"{words}"')
    assert is_found(f"{run} {words}", f'"{run} {words}"')
    assert len(parse_query(words)) == MAX_QUERY


@given(st.lists(ascii_texts | long_words | st.just("\n"), max_size=6).map("".join), ascii_texts | long_words)
@example("y" * MAX_WORD + " " + "x" * (MAX_WORD + 1), "x" * MAX_WORD)
def test_plain_text_is_indexed_as_its_tokens(text: str, query: str) -> None:
    terms = parse_query(query)
    assert hits_of_terms([index_text(text)], terms) == hits_of_terms([" ".join(tokens_of(text))], terms)
    if not re.search(rf"[0-9A-Za-z]{{{MAX_WORD + 1}}}", text):
        assert index_text(text) is text


@pytest.mark.parametrize("letter", ["x", "é", "б"])
def test_a_long_word_is_found_by_its_beginning(letter: str) -> None:
    word = letter * 10_000
    assert is_found(f"a {word} b", word)
    assert is_found(f"a {word} b", f"{word[:MAX_WORD]}* b")
    assert not is_found(f"a {word} b", word[: MAX_WORD - 1])
    assert len(index_text(word)) == MAX_WORD


def test_a_million_marks_take_no_quadratic_time() -> None:
    assert tokens_of("a" + "\u0301\u0323" * 500_000 + "b") == ["ab"]
    assert len(tokens_of("ก" + "\u0e38\u0e48" * 500_000)) > 1


def test_a_snippet_shows_the_place_that_was_found() -> None:
    text = "lorem ipsum " * 50 + "here is\n\n the   Needle, and " + "dolor sit " * 50
    snippet = snippet_of(text, parse_query("needle"), width=60)
    assert "here is the Needle, and" in snippet.text
    assert snippet.text[0] == snippet.text[-1] == "…"
    assert marked(snippet) == ["Needle"]
    assert len(snippet.text) <= 62


def test_a_snippet_of_a_short_text_is_the_text() -> None:
    assert snippet_of(" a\n b ", parse_query("b"), width=10) == Snippet("a b", ((2, 3),))
    assert snippet_of("", (), width=10) == Snippet("", ())
    assert snippet_of("nothing here", parse_query("x")) == Snippet("nothing here", ())


def test_a_snippet_prefers_the_place_where_most_terms_are() -> None:
    text = "fox " + "x " * 200 + "the fox and the wolf " + "x " * 200
    assert marked(snippet_of(text, parse_query("wolf fox"), width=40)) == ["fox", "wolf"]


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("私は東京都に住んでいます", "東京", ["東京"]),
        ("私は東京都に住んでいます", "京", ["京"]),
        ("私は東京都に住んでいます", "東京 京都", ["東京都"]),
        ("Straße im CAFÉ", "strasse cafe", ["Straße", "CAFÉ"]),
        ("cafe\u0301s", "caf*", ["cafe\u0301s"]),
        ("ﬁne ｶﾞﾗｽ工場", "fine ガラス", ["ﬁne", "ｶﾞﾗｽ"]),
        ("The quick brown fox", '"quick bro"*', ["quick brown"]),
        ("I don't", "don't", ["don't"]),
        ("ภาษาไทย", "ไทย", ["ไทย"]),
        ("ok 👍🏽", "👍", ["👍"]),
        ("a㈱b", "株", ["㈱"]),
        ("ﬁ東e\u0301", "東", ["東"]),
        ("か\u3099東e\u0301 x", "東 が e", ["か\u3099", "東", "e\u0301"]),
        ("ㄱㅏ東京 東", "東京", ["ㄱㅏ東京"]),  # letters that join to a syllable: nobody can tell what is whose
    ],
)
def test_a_snippet_marks_what_matched(text: str, query: str, expected: list[str]) -> None:
    assert marked(snippet_of(text, parse_query(query))) == expected


def test_a_cut_between_words_does_not_cut_off_what_was_found() -> None:
    assert marked(snippet_of("あ" * 100 + "東京 " + "い" * 100, parse_query("東京"), width=10)) == ["東京"]
    assert marked(snippet_of("あ" * 100 + " 東京" + "い" * 100, parse_query("東京"), width=10)) == ["東京"]


@given(texts, texts, st.integers(-1, 60))
def test_marks_lie_in_the_snippet_and_match(text: str, query: str, width: int) -> None:
    words = text.split()
    for asked in (query, words[-1] if words else ""):
        terms = parse_query(asked)
        snippet = snippet_of(text, terms, width=width)
        assert len(snippet.text) <= max(width, 1) + 2
        places = [0, *(place for mark in snippet.marks for place in mark), len(snippet.text)]
        assert places == sorted(places)
        for piece in marked(snippet):
            assert piece
            assert any(hits_of_terms([index_text(piece)], [term]) for term in terms) or len(piece) == max(width, 1)
        if hits_of_terms([index_text(text)], terms):
            assert snippet.marks


@given(texts, st.integers(0, 60))
def test_a_snippet_is_a_piece_of_the_text(text: str, width: int) -> None:
    snippet = snippet_of(text, parse_query(text[-5:]), width=width)
    whole = " ".join(text.split())
    assert snippet.text.removeprefix("…").removesuffix("…") in whole
    assert snippet.text == whole or len(whole) > width


def test_the_text_of_a_message_is_its_content() -> None:
    assert text_in(USER, b'{"content":"h\\u00e9 \\u0000","timestamp":"x","new":[1]}') == "hé \0"
    assert text_in(AGENT, b'{"new":{"content":1},"content":"yes"}') == "yes"


def test_the_text_of_an_event_is_every_text_in_its_data() -> None:
    data = b'{"a":"one","b":[1,"two",{"key":"three","n":null}],"c":{"d":{"e":"four"}},"f":true,"g":"five"}'
    assert text_in("tool", b'{"kind":"tool","other":"no","data":%b}' % data) == "one\ntwo\nthree\nfour\nfive"
    assert text_in("tool", b'{"kind":"tool","data":"plain"}') == "plain"
    assert text_in("tool", b'{"kind":"tool"}') == ""


@pytest.mark.parametrize("kind", [USER, AGENT, "tool"])
@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'"text"', b'{"content":"\xff","data":"\xff"}', b'{"content":1,"data":' + b"[" * 100_000],
)
def test_what_is_no_record_has_no_text(kind: str, body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        text_in(kind, body)
