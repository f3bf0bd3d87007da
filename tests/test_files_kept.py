"""What is kept in memory of the files: those used last, and a listing does not look at a name for long."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from statestore import Session, StateStore
from statestore.engines.files import image, sessions
from statestore.engines.files.directory import Directory
from statestore.engines.files.documents import documents_in
from statestore.jsontext import is_unicode
from statestore.seedform.text import SessionText


def test_a_session_that_is_used_again_and_again_is_parsed_once(
    files_store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image, "KEPT_BYTES", 350_000)  # three of them
    for name in ("hot", "a", "b", "c", "d"):
        session = Session("alice", name)
        session.add_user_message("x" * 100_000)
        files_store.save_session(session)
    parsed: list[str] = []

    def noted(body: bytes) -> SessionText:
        text = SessionText(body)
        parsed.append(text.id)
        return text

    monkeypatch.setattr(sessions, "SessionText", noted)
    for name in ("hot", "a", "hot", "b", "hot", "c", "hot", "d", "hot"):
        assert files_store.load_session(name) is not None
    assert parsed.count("hot") <= 1


def test_a_listing_takes_a_few_calls_a_document(tmp_path: Path) -> None:
    names = [f"a-document-with-an-ordinary-name-{number:03}" for number in range(300)]
    (tmp_path / "notes").mkdir()
    for name in names:
        (tmp_path / "notes" / f"{name}.json").touch()
    calls = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    place = Directory(str(tmp_path), is_durable=False)
    place.open(create=False, read_only=True)
    sys.setprofile(count)
    try:
        found = documents_in(place, "notes", limit=10)
    finally:
        sys.setprofile(None)
        place.close()
    assert [info.name for info in found] == names[:10]
    assert calls <= 10 * len(names)


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ("", True),
        ("name", True),
        ("Größe 中文 🙂", True),
        ("\ud800", False),
        ("name\udcff", False),
        ("é\udfff", False),
        ("\ud83d\ude42", False),
        ("\ud7ff\ue000\uffff", True),
    ],
)
def test_a_text_with_half_a_character_is_not_unicode(text: str, is_right: bool) -> None:
    assert is_unicode(text) == is_right
