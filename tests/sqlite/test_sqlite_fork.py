"""A store used before a fork goes on in parent and child: neither disturbs the other, nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlite_hooks import LOCK_FILES, files_beside, said, seqs, verdict

from children import fresh_interpreter
from statestore import StateStore


def _check_each_once(database: Path, told: dict[str, list[int]]) -> None:
    with StateStore.open(database) as store:
        where = dict(zip(said(store, "shared"), seqs(store, "shared"), strict=True))
        for writer, numbers in told.items():
            assert isinstance(numbers, list), f"{writer}: {numbers}"
            assert [where[f"{writer}:{turn}"] for turn in range(len(numbers))] == numbers
        assert store.check() == []
    assert verdict(database) == "ok"
    assert files_beside(database) == LOCK_FILES


def _scene(name: str, database: Path) -> object:
    return fresh_interpreter(Path(__file__).with_name("sqlite_fork_scenes.py"), name, str(database))


def test_parent_child_and_grandchild_go_on_with_one_store(database: Path) -> None:
    told = _scene("both_go_on", database)
    assert isinstance(told, dict)
    assert told.pop("listed") == 1
    assert {writer: len(numbers) for writer, numbers in told.items()} == dict.fromkeys(told, 50)
    _check_each_once(database, told)


def test_children_forked_beside_busy_threads_go_on_with_the_store(database: Path) -> None:
    told = _scene("beside_busy_threads", database)
    assert isinstance(told, dict)
    assert len(told) == 4 + 12
    assert all(told.values())
    _check_each_once(database, told)


def test_a_child_goes_on_when_its_parent_has_closed_the_store(database: Path) -> None:
    told = _scene("the_parent_closes_and_opens_again", database)
    assert told == {"child": [2, 4, 6, 8], "parent": [3, 5, 7, 9]}
    with StateStore.open(database) as store:
        turns = [f"{who}:{turn}" for turn in range(4) for who in ("child", "parent")]
        assert said(store, "shared") == ["before", *turns]
        assert store.check() == []
    assert verdict(database) == "ok"


def test_workers_of_multiprocessing_go_on_with_the_store(database: Path) -> None:
    told = _scene("by_multiprocessing", database)
    assert isinstance(told, dict)
    assert [len(numbers) for numbers in told.values()] == [20] * 5
    _check_each_once(database, told)


def test_a_child_forked_in_the_middle_of_a_transaction_is_refused_and_harmless(database: Path) -> None:
    told = _scene("in_the_middle_of_a_transaction", database)
    assert isinstance(told, list)
    appended, listed, closed, left, opened_anew = (str(word).partition(":")[0] for word in told)
    assert (closed, left) == ("None", "left")
    assert {appended, listed, opened_anew} == {"StoreClosed"}
    assert all("fork" in told[place] for place in (0, 1, 4))
    with StateStore.open(database) as store:
        assert said(store, "shared") == ["before", "held", "after"]
        assert store.check() == []
    assert verdict(database) == "ok"


def test_a_child_is_not_disturbed_by_a_store_whose_directory_is_gone(database: Path) -> None:
    assert _scene("beside_a_store_whose_directory_is_gone", database) == [5] * 5


def test_an_asynchronous_store_says_in_a_child_that_it_is_closed(database: Path) -> None:
    told = _scene("async_store_in_a_child", database)
    assert isinstance(told, list)
    assert [str(word).partition(":")[0] for word in told] == ["StoreClosed"] * 5 + ["2"]


@pytest.fixture(autouse=True)
def _no_database_yet(database: Path) -> None:
    assert not database.exists()


def test_parent_and_child_never_give_out_one_version_twice(database: Path) -> None:
    told = _scene("versions_of_both", database)
    assert isinstance(told, list)
    assert len(told) == len(set(told)) == 201


def test_one_that_fails_to_forget_after_a_fork_keeps_no_other_from_it(database: Path) -> None:
    assert _scene("one_fails_to_forget", database) == [True, False] * 5
