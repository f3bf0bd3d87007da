"""A store that is not there: nothing is made, and the error says so as an error of its own."""

from __future__ import annotations

import pickle
from pathlib import Path
from uuid import uuid4

import pytest

from servers import postgres, valkey
from statestore import StateStore, StoreNotFound, StoreUnavailable
from statestore.errors import StateStoreError

PLACES = ("sqlite", "file", "postgres", "valkey")


def nowhere(engine: str, tmp_path: Path) -> str:
    """A place of an engine where no store was ever made."""
    name = f"nobody_{uuid4().hex[:12]}"
    match engine:
        case "postgres":
            return f"{postgres.shared_url()}?schema={name}"
        case "valkey":
            return f"{valkey.shared_url()}?prefix={name}"
        case _:
            return f"{engine}:{tmp_path / name}"


@pytest.mark.parametrize("options", [{"create": False}, {"read_only": True}], ids=str)
@pytest.mark.parametrize("engine", PLACES)
def test_who_opens_what_is_not_there_is_told_where_and_why(
    engine: str, options: dict[str, bool], tmp_path: Path
) -> None:
    place = nowhere(engine, tmp_path)
    for _ in range(2):  # the first time has made nothing
        with pytest.raises(StoreNotFound, match=r"there is no store at .*=(True|False) makes none") as caught:
            StateStore.open(place, **options).close()
        assert caught.value.place in str(caught.value)
        assert place.rpartition("=")[2].rpartition("/")[2] in caught.value.place
    assert list(tmp_path.iterdir()) == []


def test_the_error_is_one_of_an_unusable_store_and_can_be_sent_to_another_process() -> None:
    error: StateStoreError = pickle.loads(pickle.dumps(StoreNotFound.at("here", read_only=True)))
    assert isinstance(error, StoreUnavailable)
    assert isinstance(error, StoreNotFound)
    assert (error.place, str(error)) == ("here", "there is no store at here, and read_only=True makes none")


def test_a_place_that_can_never_hold_a_store_is_not_told_to_be_only_empty() -> None:
    with pytest.raises(StoreUnavailable, match="cannot be used as a store") as caught:
        StateStore.open("file:/proc/statestore-cannot-be-here")
    assert not isinstance(caught.value, StoreNotFound)
