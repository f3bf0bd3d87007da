"""Ids of frameworks: any text becomes a name that every engine keeps, and leads back to its text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from statestore import InvalidName, StateStore
from statestore.adapters.identifiers import (
    ORIGINAL_ID,
    birth_metadata,
    category_parts,
    foreign_id,
    id_parts,
    is_shortened,
    joined_text,
    original_name,
    stored_category,
    stored_id,
    stored_name,
)
from statestore.names import check_category, check_session_id

LIKELY = st.text(st.sampled_from("%25FEe/.~:\\ab\x00\n\ud800東"), max_size=12)
ANY = st.one_of(LIKELY, st.text(max_size=400), st.text(st.characters(), max_size=30))


@pytest.mark.parametrize(
    "text", ["trip", "a b", "5f3c-11", "alice@example.org", "100%", "50%off", "東京", "a:b", "%e9"]
)
def test_an_ordinary_id_is_its_own(text: str) -> None:
    assert stored_id(text) == text
    assert foreign_id(text) == text


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("a/b", "a%2Fb"),
        ("a%2Fb", "a%252Fb"),
        ("", "%"),
        ("%", "%25"),
        (".", "%2E"),
        ("..", "%2E%2E"),
        ("a..b", "a%2E%2Eb"),
        (".StateStore", "%2EStateStore"),
        ("a\\b\n", "a%5Cb%0A"),
        ("\ud800", "%ED%A0%80"),
    ],
)
def test_what_the_rule_refuses_is_encoded_as_in_a_url(text: str, stored: str) -> None:
    assert stored_id(text) == stored
    assert foreign_id(stored) == text


@settings(max_examples=600)
@given(ANY)
def test_every_text_has_a_name_that_leads_back(text: str) -> None:
    stored = stored_id(text)
    assert check_session_id(stored) == stored
    assert foreign_id(stored, birth_metadata(text)) == text


@settings(max_examples=600)
@given(ANY, ANY)
def test_two_texts_never_share_a_name(one: str, other: str) -> None:
    assert (stored_id(one) == stored_id(other)) == (one == other)
    assert stored_id(stored_id(one)) != stored_id(one) or stored_id(one) == one


def test_a_long_text_is_shortened_and_kept_in_the_metadata() -> None:
    text = "a long story / " * 40
    stored = stored_id(text)
    assert stored.startswith("a long story %2F a long")
    assert is_shortened(stored)
    assert birth_metadata(text) == {ORIGINAL_ID: text}
    assert foreign_id(stored, {ORIGINAL_ID: text}) == text
    assert stored_id(stored) != stored, "the text that looks like it is another one"
    with pytest.raises(InvalidName, match="original_id"):
        foreign_id(stored, {ORIGINAL_ID: "another"})
    with pytest.raises(InvalidName, match="original_id"):
        foreign_id(stored)


@settings(max_examples=400)
@given(st.lists(ANY, min_size=1, max_size=4))
def test_an_id_of_several_parts_leads_back(parts: list[str]) -> None:
    joined = stored_id(joined_text(*parts))
    text = ":".join(part.replace("%", "%25").replace(":", "%3A") for part in parts)
    assert id_parts(joined, birth_metadata(text)) == tuple(parts)


def test_an_id_of_several_parts_is_readable() -> None:
    assert joined_text("app", "alice", "7") == "app:alice:7"
    assert joined_text("a:b", "c") != joined_text("a", "b:c")


@settings(max_examples=400)
@given(st.lists(LIKELY | st.sampled_from(["a.json", "x.MD", ".bin", "a%2Ejson"]), min_size=1, max_size=4))
def test_a_category_leads_back_to_its_parts(parts: list[str]) -> None:
    category = stored_category(*parts)
    assert check_category(category) == category
    assert category_parts(category) == tuple(parts)


@settings(max_examples=300)
@given(ANY)
def test_a_document_can_have_any_name(text: str) -> None:
    name = stored_name(text)
    assert is_shortened(name) or original_name(name) == text


def test_every_engine_takes_them() -> None:
    with StateStore.open("memory:") as store:
        for text in ("a/b", "..", "", "x" * 500):
            store.get_or_create_session("u", stored_id(text))
            store.save_json(stored_category("c", text), stored_name(text), 1)
        assert store.count_sessions() == 4


def test_an_id_is_a_text() -> None:
    with pytest.raises(InvalidName, match="not int"):
        stored_id(7)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidName, match="at least one part"):
        joined_text()
