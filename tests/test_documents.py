"""Markdown, JSON and bytes, by category and name."""

from __future__ import annotations

import errno
import os
from typing import Any

import msgspec
import pytest

from faces import Face, Place
from statestore import (
    CorruptDocument,
    DocumentConflict,
    DocumentInfo,
    InvalidCursor,
    InvalidName,
    InvalidValue,
    ReadOnlyStore,
    Session,
    StateStore,
    StateStoreError,
    StoreClosed,
    StoreNotFound,
    StoreUnavailable,
)


def test_what_was_saved_is_loaded(store: StateStore, other: StateStore) -> None:
    store.save_markdown("notes", "n", "# Text\r\n")
    store.save_json("notes", "n", {"a": [1, None]})
    store.save_bytes("notes", "n", b"\x00\xff")
    for reader in (store, other):
        assert reader.load_markdown("notes", "n") == "# Text\r\n"
        assert reader.load_json("notes", "n") == {"a": [1, None]}
        assert reader.load_bytes("notes", "n") == b"\x00\xff"


def test_what_is_not_there_is_none(store: StateStore) -> None:
    store.save_markdown("notes", "n", "text")
    assert store.load_json("notes", "n") is None
    assert store.load_bytes("notes", "n") is None
    assert store.load_markdown("notes", "other") is None
    assert store.load_markdown("absent", "n") is None
    assert store.get_document("absent", "n") is None
    assert store.list_category("absent") == []
    assert store.delete_file("absent", "n") is False
    assert store.delete_category("absent") == 0


def test_a_stored_null_is_not_nothing(store: StateStore) -> None:
    store.save_json("notes", "null", None)
    marker = object()
    assert store.load_json("notes", "null", default=marker) is None
    assert store.load_json("notes", "absent", default=marker) is marker
    document = store.get_document("notes", "null")
    assert document is not None
    assert document.value is None


def test_bytes_of_any_kind_are_taken(store: StateStore) -> None:
    for data in (b"x", bytearray(b"x"), memoryview(b"axb")[1:2]):
        store.save_bytes("notes", "n", data)  # type: ignore[arg-type]
        assert store.load_bytes("notes", "n") == b"x"


def test_what_is_loaded_is_ones_own(store: StateStore) -> None:
    value = {"list": [1]}
    store.save_json("notes", "n", value)
    value["list"].append(2)
    store.load_json("notes", "n")["list"].append(3)
    assert store.load_json("notes", "n") == {"list": [1]}


def test_get_document_gives_the_value_with_its_version(store: StateStore) -> None:
    version = store.save_json("notes", "n", [1])
    document = store.get_document("notes", "n")
    assert document is not None
    assert (document.category, document.name, document.kind) == ("notes", "n", "json")
    assert (document.value, document.version, document.text) == ([1], version, "[\n  1\n]")
    store.save_markdown("notes", "m", "text")
    store.save_bytes("notes", "b", b"\xff")
    markdown, data = store.get_document("notes", "m"), store.get_document("notes", "b")
    assert markdown is not None
    assert data is not None
    assert (markdown.value, data.value) == ("text", b"\xff")


def test_without_a_kind_json_comes_first_then_markdown_then_bytes(store: StateStore) -> None:
    store.save_bytes("notes", "n", b"b")
    store.save_markdown("notes", "n", "m")
    store.save_json("notes", "n", "j")
    for kind in ("json", "md", "bin"):
        document = store.get_document("notes", "n")
        assert document is not None
        assert document.kind == kind
        assert store.delete_file("notes", "n") is True
    assert store.delete_file("notes", "n") is False


def test_a_kind_can_be_deleted_exactly(store: StateStore) -> None:
    store.save_json("notes", "n", 1)
    store.save_markdown("notes", "n", "m")
    assert store.delete_file("notes", "n", kind="md") is True
    assert store.delete_file("notes", "n", kind="md") is False
    assert store.load_json("notes", "n") == 1


def test_versions_guard_against_lost_updates(store: StateStore, other: StateStore) -> None:
    first = store.save_json("notes", "n", 1, if_version="")
    with pytest.raises(DocumentConflict, match=r"notes/n\.json"):
        other.save_json("notes", "n", 2, if_version="")
    second = other.save_json("notes", "n", 2, if_version=first)
    assert second != first
    with pytest.raises(DocumentConflict):
        store.save_json("notes", "n", 3, if_version=first)
    assert store.load_json("notes", "n") == 2
    store.save_json("notes", "n", 4)
    store.delete_file("notes", "n")
    with pytest.raises(DocumentConflict):
        store.save_json("notes", "n", 5, if_version=second)
    assert store.load_json("notes", "n") is None


@pytest.mark.parametrize(("method", "value"), [("save_json", 1), ("save_markdown", "x"), ("save_bytes", b"x")])
def test_every_save_takes_a_version(store: StateStore, method: str, value: Any) -> None:
    save = getattr(store, method)
    version = save("notes", "n", value, if_version="")
    with pytest.raises(DocumentConflict):
        save("notes", "n", value, if_version="")
    with pytest.raises(DocumentConflict):
        save("notes", "n", value, if_version="no such version")
    assert save("notes", "n", value, if_version=version) != ""


def test_a_version_never_comes_back(store: StateStore) -> None:
    versions = [store.save_json("notes", "n", 1) for _ in range(5)]
    store.delete_file("notes", "n")
    versions += [store.save_json("notes", "n", 1) for _ in range(5)]
    assert len(set(versions)) == 10


class Point(msgspec.Struct):
    x: int


def test_a_type_is_decoded_or_named_as_the_problem(store: StateStore) -> None:
    store.save_json("notes", "n", {"x": 1})
    assert store.load_json("notes", "n", type=Point) == Point(1)
    assert store.load_json("notes", "absent", type=Point) is None
    store.save_json("notes", "n", {"x": "no"})
    with pytest.raises(InvalidValue, match=r"notes/n\.json"):
        store.load_json("notes", "n", type=Point)


def test_categories_are_listed_with_what_is_below_them(store: StateStore) -> None:
    for category in ("b", "a", "a/x", "a/x/y", "ab"):
        store.save_json(category, "n", 1)
    store.save_session(Session("alice", "s"))
    assert store.list_categories() == ["a", "a/x", "a/x/y", "ab", "b"]
    assert store.list_categories("a") == ["a", "a/x", "a/x/y"]
    assert store.list_categories("a/x") == ["a/x", "a/x/y"]
    assert store.list_categories("absent") == []
    assert store.delete_category("a") == 1
    assert store.list_categories() == ["a/x", "a/x/y", "ab", "b"]
    assert store.list_category("a") == []


@pytest.mark.parametrize("reason", [errno.EMFILE, errno.EIO, errno.EACCES], ids=os.strerror)
def test_categories_are_listed_all_or_not_at_all(
    reason: int, files_store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = ["a", "a/x", "b", "b/y/z"]
    for category in expected:
        files_store.save_json(category, "n", 1)
    original, opened, refused_at = os.open, 0, 0

    def refusing_one(path: Any, *arguments: Any, **options: Any) -> int:
        nonlocal opened
        opened += path in (".", "a", "b", "x", "y", "z")
        if opened == refused_at > 0:
            raise OSError(reason, os.strerror(reason))
        return original(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refusing_one)
    assert files_store.list_categories() == expected
    assert opened > 10
    for nth in range(1, opened + 1):
        refused_at, opened = nth, 0
        with pytest.raises(StoreUnavailable, match=os.strerror(reason)):
            files_store.list_categories()


def test_a_document_that_no_rename_can_reach_is_refused_with_the_reason(
    files_store: StateStore, directory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    files_store.save_markdown("notes", "n", "old")
    notes = os.stat(directory / "notes").st_ino

    def beyond(original: Any) -> Any:
        def moved(*arguments: Any, dst_dir_fd: int, **options: Any) -> None:
            if os.fstat(dst_dir_fd).st_ino == notes:
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
            original(*arguments, dst_dir_fd=dst_dir_fd, **options)

        return moved

    for name in ("rename", "replace"):
        monkeypatch.setattr(os, name, beyond(getattr(os, name)))
    with pytest.raises(StoreUnavailable, match=f"{directory}/notes is on another file system than the store, or mount"):
        files_store.save_markdown("notes", "n", "new")
    assert files_store.load_markdown("notes", "n") == "old"
    files_store.save_markdown("other", "n", "new")
    assert files_store.check() == []


def test_documents_are_listed_with_kind_and_size(store: StateStore) -> None:
    store.save_markdown("notes", "b", "éé")
    store.save_json("notes", "a", 10)
    store.save_bytes("notes", "b", b"xyz")
    assert store.list_documents("notes") == [
        DocumentInfo("notes", "a", "json", 2),
        DocumentInfo("notes", "b", "bin", 3),
        DocumentInfo("notes", "b", "md", 4),
    ]
    assert store.delete_category("notes") == 3


@pytest.mark.parametrize("category", ["notes", "sessions"])
def test_a_category_is_paged_by_cursor(store: StateStore, category: str) -> None:
    for name in ("a", "a.md", "b", "c"):
        if category == "sessions":
            store.save_session(Session("alice", name))
        else:
            store.save_markdown(category, name, name)
            store.save_json(category, name, name)
    everything = store.list_documents(category)
    paged = page = store.list_documents(category, limit=3)
    while page := store.list_documents(category, limit=3, after=page[-1].cursor):
        paged = paged + page
    assert paged == everything
    assert store.list_documents(category, limit=0) == []
    for cursor in ("", "a", ".md", "a.txt", "\ud800.md", "\0.md", 7):
        with pytest.raises(InvalidCursor, match="is not a cursor"):
            store.list_documents(category, after=cursor)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidValue, match="limit is a whole number"):
        store.list_documents(category, limit=-1)


def test_sessions_are_a_category_to_readers(store: StateStore) -> None:
    session = Session("alice", "s")
    session.add_user_message("m")
    store.save_session(session)
    assert store.list_category("sessions") == ["s"]
    assert [(info.name, info.kind) for info in store.list_documents("sessions")] == [("s", "json")]
    assert store.load_json("sessions", "s")["user_messages"][0]["content"] == "m"
    assert store.load_json("sessions", "absent") is None
    assert store.load_markdown("sessions", "s") is None
    document = store.get_document("sessions", "s")
    assert document is not None
    assert document.version == session.version
    with pytest.raises(InvalidName, match="save_session"):
        store.save_json("sessions", "s", {})


def test_a_document_that_cannot_be_read_says_where(files_store: StateStore, directory: Any) -> None:
    (directory / "notes").mkdir()
    bad = {
        "cut.json": b'{"a": ',
        "latin.json": b'"\xe9"',
        "empty.json": b"",
        "latin.md": b"caf\xe9",
        "deep.json": b"[" * 100_000 + b"]" * 100_000,
    }
    for name, body in bad.items():
        (directory / "notes" / name).write_bytes(body)
        stem, _, kind = name.rpartition(".")
        load = files_store.load_json if kind == "json" else files_store.load_markdown
        with pytest.raises(CorruptDocument, match=rf"notes/{stem}\.{kind}"):
            load("notes", stem)
        assert (directory / "notes" / name).read_bytes() == body
    assert sorted(problem.where for problem in files_store.check()) == sorted(f"notes/{name}" for name in bad)


# -- opening and closing ------------------------------------------------------------------------------------------


def test_a_closed_store_says_so(store: StateStore) -> None:
    store.save_json("notes", "n", 1)
    store.close()
    store.close()
    for use in (lambda: store.load_json("notes", "n"), lambda: store.save_json("notes", "n", 2), store.list_sessions):
        with pytest.raises(StoreClosed):
            use()


def test_a_store_that_is_only_read_refuses_to_write(face: Face, directory: Any) -> None:
    face.open(directory).save_json("notes", "n", 1)
    reader = face.open(directory, read_only=True)
    assert reader.load_json("notes", "n") == 1
    for write in (
        lambda: reader.save_json("notes", "n", 2),
        lambda: reader.save_session(Session("alice")),
        lambda: reader.delete_file("notes", "n"),
        lambda: reader.delete_category("notes"),
        lambda: reader.get_or_create_session("alice"),
    ):
        with pytest.raises(ReadOnlyStore):
            write()
    assert reader.load_json("notes", "n") == 1


def test_read_only_means_read_only_on_every_engine(face: Face) -> None:
    with pytest.raises(StateStoreError):
        face.open("memory:", read_only=True).save_json("notes", "n", 1)


def test_a_store_that_is_not_there_is_not_made_unless_asked(face: Face, directory: Any) -> None:
    with pytest.raises(StoreNotFound, match="create=False makes none"):
        face.open(directory, create=False)
    assert not directory.exists()
    with pytest.raises(StoreNotFound):
        face.open(directory, read_only=True)
    assert not directory.exists()


@pytest.mark.parametrize("target", ["", "nosuch:thing", "memory:name", "file:"])
def test_a_target_that_makes_no_sense_is_refused(face: Face, target: str) -> None:
    with pytest.raises(StateStoreError):
        face.open(target)


def test_a_path_and_a_url_open_the_same_store(face: Face, directory: Any) -> None:
    face.open(directory).save_json("notes", "n", 1)
    for target in (str(directory), f"file:{directory}", f"file://{directory}", directory):
        assert face.open(target).load_json("notes", "n") == 1


def test_each_memory_store_is_its_own(face: Face) -> None:
    face.open("memory:").save_json("notes", "n", 1)
    assert face.open("memory:").load_json("notes", "n") is None


def test_two_stores_on_one_place_see_each_others_writes(store: StateStore, other: StateStore, place: Place) -> None:
    store.save_json("notes", "n", 1)
    assert other.load_json("notes", "n") == 1
    assert place.kind in store.url or place.kind == "files"
