"""`copy_store` into a store that is damaged itself: the target is named, not the source, and all else is copied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from copy_targets import contents_of
from damages import DAMAGES, damage_session, url_of
from statestore import CopyIncomplete, CopyRefused, CorruptDocument, StateStore, copy_store
from statestore.conformance.changes import agent, appended, created, user
from statestore.copying import windows
from statestore.copying.calling import compare_stores
from statestore.engine import Change, PutDocument
from statestore.engines.memory import MemoryEngine
from statestore.host import step
from statestore.stored import Document, DocumentKind


class Source(MemoryEngine):
    """Stays open."""

    def __init__(self, *changes: Change) -> None:
        super().__init__()
        step(self.open())
        self.write(*changes)

    async def close(self) -> None:
        """It is copied again."""

    def write(self, *changes: Change) -> None:
        for change in changes:
            step(self.commit([change]))


def source() -> Source:
    return Source(
        created("a", user("hello"), agent("hi")),
        created("bad", user("hello"), agent("hi"), metadata={"k": b"1"}),
        created("c", user("hello")),
        PutDocument("notes", "n", "md", b"one"),
    )


def incomplete(ours: Any, target: Any, **options: Any) -> CopyIncomplete:
    with pytest.raises(CopyIncomplete) as caught:
        copy_store(ours, target, **options)
    return caught.value


@pytest.mark.parametrize("mirror", [False, True])
@pytest.mark.parametrize(("kind", "damage"), DAMAGES)
def test_what_is_damaged_in_the_target_is_told_of_the_target(
    tmp_path: Path, kind: str, damage: str, *, mirror: bool
) -> None:
    ours, target = source(), url_of(kind, tmp_path)
    copy_store(ours, target)
    damage_session(kind, target, damage)
    ours.write(
        appended("a", user("more", 3), at=60),
        created("b", user("new")),
        created("z", user("new")),
        PutDocument("notes", "o", "md", b"two"),
    )
    error = incomplete(ours, target, mirror=mirror)
    assert [each.where for each in error.differences] == ["session bad"]
    text = str(error)
    assert f"these are damaged in {error.report.target}, and were left there as they are: session bad: " in text
    assert "Mend or delete them in the target" in text
    assert "cannot be read from" not in text
    assert "written to" not in text
    assert (error.report.sessions, error.report.documents) == (4, 2)
    with StateStore.open(target) as store:
        if damage == "directory":
            (Path(target.removeprefix("file:")) / "sessions" / "bad.json").rmdir()
        else:
            assert store.delete_session("bad")
    report = copy_store(ours, target, mirror=mirror)
    assert (report.sessions, report.skipped, report.replaced, report.removed) == (5, 6, 0, 0)
    back = Source()
    copy_store(target, back)
    assert contents_of(back) == contents_of(ours)


@pytest.mark.parametrize("is_fresh", [False, True])
@pytest.mark.parametrize("mirror", [False, True])
@pytest.mark.parametrize("is_link", [False, True])
def test_a_document_that_is_no_file_in_the_target_is_told_of_the_target(
    tmp_path: Path, *, is_link: bool, mirror: bool, is_fresh: bool
) -> None:
    ours, target = source(), tmp_path / "target"
    if not is_fresh:
        copy_store(ours, target)
    damaged = target / "notes" / "n.md"
    damaged.parent.mkdir(parents=True, exist_ok=True)
    damaged.unlink(missing_ok=True)
    damaged.symlink_to("o.md") if is_link else damaged.mkdir()
    ours.write(PutDocument("notes", "o", "md", b"two"))
    error = incomplete(ours, target, mirror=mirror)
    assert [each.where for each in error.differences] == ["document notes/n.md"]
    assert "these are damaged in file:" in str(error)
    assert "cannot be read from" not in str(error)
    assert (error.report.sessions, error.report.documents) == (3, 1)
    damaged.unlink() if is_link else damaged.rmdir()
    assert copy_store(ours, target, mirror=mirror).documents == 2


def test_what_is_damaged_in_both_is_told_of_both(tmp_path: Path) -> None:
    places = [url_of(kind, tmp_path) for kind in ("files", "sqlite")]
    for place in places:
        copy_store(source(), place)
    damage_session("files", places[0], "text")
    damage_session("sqlite", places[1], "record")
    for ours, theirs in (places, reversed(places)):
        error = incomplete(ours, theirs)
        assert [each.where for each in error.differences] == ["session bad"] * 2
        assert f"these cannot be read from {ours}" in str(error)
        assert f"these are damaged in {theirs}" in str(error)


@pytest.mark.parametrize("mirror", [False, True])
@pytest.mark.parametrize("damage", ["record", "metadata", "layout"])
def test_a_long_session_is_read_in_parts_to_tell_which_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str, *, mirror: bool
) -> None:
    monkeypatch.setattr(windows, "WINDOW_RECORDS", 3)
    long = created("bad", *(user(f"u{number}", number) for number in range(1, 12)), metadata={"k": b"1"})
    ours, target = Source(long, created("c", user("hello"))), url_of("sqlite", tmp_path)
    copy_store(ours, target)
    damage_session("sqlite", target, damage)
    ours.write(appended("bad", user("more", 30), at=60))
    error = incomplete(ours, target, mirror=mirror)
    assert [each.where for each in error.differences] == ["session bad"]
    assert "these are damaged in sqlite:" in str(error)
    assert "cannot be read from" not in str(error)


class Damaged(Source):
    """Lists a document that it cannot read."""

    async def get_document(self, category: str, name: str, kind: DocumentKind) -> Document | None:
        if name == "damaged":
            raise CorruptDocument(f"{category}/{name}.{kind} cannot be read")
        return await super().get_document(category, name, kind)


def test_what_only_the_target_has_may_be_damaged() -> None:
    document = PutDocument("notes", "damaged", "md", b"one")
    ours, target = source(), Damaged(document)
    with pytest.raises(CopyRefused, match=r"document notes/damaged\.md: only the target has it"):
        copy_store(ours, target)
    assert copy_store(ours, target, into_existing=True).documents == 1
    error = incomplete(ours, target, mirror=True)
    assert [each.where for each in error.differences] == ["document notes/damaged.md"]
    assert "these are damaged in memory:" in str(error)


def test_what_a_mirror_will_not_replace_because_it_is_damaged_is_not_shown_as_replaced(tmp_path: Path) -> None:
    places = [url_of(kind, tmp_path) for kind in ("files", "sqlite")]
    for place in places:
        copy_store(source(), place)
    damage_session("sqlite", places[1], "metadata")
    assert compare_stores(*places).differences == ()


def test_a_layout_that_is_not_utf8_keeps_no_other_session_out(tmp_path: Path) -> None:
    damaged = created("bad", user("hello"), layout=b'{"id":null,"new":"\xff"}')
    ours, target = Source(created("a"), damaged, created("c")), url_of("files", tmp_path)
    error = incomplete(ours, target)
    assert [each.where for each in error.differences] == ["session bad"]
    assert f"these cannot be read from {ours.url}" in str(error)
    assert error.report.sessions == 2
