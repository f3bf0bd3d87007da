"""After a fork the child has locks of its own: never its parent's, neither to release nor to keep."""

from __future__ import annotations

from pathlib import Path

from children import fresh_interpreter
from statestore import StateStore


def _scene(name: str, root: Path) -> object:
    return fresh_interpreter(Path(__file__).with_name("fork_scenes.py"), name, str(root))


def test_parent_and_child_both_go_on_with_a_plain_store(root: Path) -> None:
    told = _scene("both_go_on", root)
    assert isinstance(told, dict)
    assert len(told["parent"]) == len(told["child"]) == 50
    with StateStore.open(root) as store:
        seqs = {entry.record.content: entry.seq for entry in store.timeline("shared")}  # type: ignore[union-attr]
    for writer in ("parent", "child"):
        assert [seqs[f"{writer}:{turn}"] for turn in range(50)] == told[writer]
    assert len(seqs) == 100


def test_a_child_that_ends_does_not_release_its_parents_lock(root: Path) -> None:
    told = _scene("child_ends_while_the_parent_holds_a_lock", root)
    assert isinstance(told, dict)
    assert len(told["during"]) == 1
    assert told["after"] == told["during"]


def test_a_child_does_not_keep_a_lock_that_its_parent_released(root: Path) -> None:
    assert _scene("child_lives_on_after_the_parent_let_go", root) == {"held": [], "child": [2]}


def test_a_child_does_not_keep_the_lock_of_a_parent_that_was_killed(root: Path) -> None:
    assert _scene("parent_is_killed_while_a_child_lives", root) == []


def test_a_child_forked_beside_a_listing_can_list(root: Path) -> None:
    assert _scene("fork_beside_a_listing", root) == ["shared"]


def test_a_child_forked_beside_a_save_can_save(root: Path) -> None:
    assert _scene("fork_beside_a_save", root) == ["from the child", "from the parent"]


def test_an_asynchronous_store_says_in_a_child_that_it_is_closed(root: Path) -> None:
    told = _scene("async_store_in_a_child", root)
    assert isinstance(told, list)
    assert [str(word).partition(":")[0] for word in told] == ["StoreClosed", "StoreClosed", "0"]
