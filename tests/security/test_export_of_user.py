"""An export of one user holds nothing of another's: not by ids, and not if an id changes hands while it goes on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import pytest

from faces import Face, LoopStore
from security.attacks import BOBS, MINE, SECRET, THROWN, furnish
from soak.grounds import fresh
from statestore import Session, SessionNotFound, StateStore
from statestore.exchange import FORMATS, Format, async_export_sessions, export_sessions
from statestore.opening import engine_for

ENGINES = ("memory", "files", "sqlite", "postgres", "valkey", "valkey-cluster")


@pytest.fixture(params=ENGINES)
def store(face: Face, request: pytest.FixtureRequest) -> Iterator[StateStore]:
    """Both have sessions, and one of Bob's is in the trash."""
    with fresh(request.param) as ground:
        store = face.open(engine_for(ground.target, durability="relaxed"))
        furnish(store)
        yield store
        store.close()


def exporting(user: Any, ids: Sequence[str] | None = None, **options: Any) -> Iterator[bytes]:
    """The chunks of an export, one at a time, in both faces."""
    if not isinstance(user, LoopStore):
        yield from export_sessions(user, ids, **options)
        return
    chunks = async_export_sessions(user._store, ids, **options)
    while (chunk := user._runner.run(_next(chunks))) is not None:
        yield chunk


async def _next(chunks: Any) -> bytes | None:
    return await anext(chunks, None)


@pytest.mark.parametrize("format", FORMATS)
def test_an_export_of_all_has_nothing_of_another_user(store: StateStore, format: Format) -> None:
    text = b"".join(exporting(store.for_user("alice"), format=format)).decode()
    assert "mine message" in text
    assert SECRET not in text
    assert SECRET in b"".join(exporting(store.for_user("bob"), format=format)).decode()


def test_another_users_session_that_is_named_looks_exactly_as_one_that_is_not_there(store: StateStore) -> None:
    alice = store.for_user("alice")

    def outcome(session_id: str) -> tuple[bytes, list[str], str]:
        told: list[str] = []
        ids = [MINE, session_id]
        text = b"".join(exporting(alice, ids, unreadable=lambda _, error: told.append(f"{type(error)} {error}")))
        with pytest.raises(SessionNotFound) as caught:
            list(exporting(alice, ids))
        return text, [line.replace(session_id, "ID") for line in told], str(caught.value).replace(session_id, "ID")

    assert outcome(BOBS) == outcome("absent")
    assert outcome(THROWN) == outcome("absent")


@pytest.mark.parametrize("format", FORMATS)
def test_an_id_that_changes_hands_after_it_was_listed_shows_nothing_of_its_new_owner(
    store: StateStore, format: Format
) -> None:
    done: list[str] = []
    chunks = exporting(store.for_user("alice"), format=format, done=done.append)
    text = b"".join(islice(chunks, 4))  # how it begins, and one session: its head, its records, its end
    for session_id in (MINE, "a2"):
        store.delete_session(session_id)
        session = Session("bob", session_id)
        session.add_user_message(f"{SECRET} message")
        session.set_metadata("title", f"{SECRET} title")
        store.save_session(session)
    text += b"".join(chunks)
    assert SECRET not in text.decode()
    assert len(done) == 1
