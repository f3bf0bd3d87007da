"""A writer killed before every single call that touches the disk: it all happened, or nothing did."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import deeds
import dying
import pytest
from contents import leftovers
from deeds import Deed

from children import forked
from statestore import SessionNotFound, StateStore, UserMessage


class Stage(NamedTuple):
    """A directory to copy from, and how a store in it looks before and after the deed."""

    template: Path
    before: dict[str, Any]
    after: dict[str, Any]


def staged(deed: Deed, tmp_path: Path) -> Stage:
    template, done = tmp_path / "template", tmp_path / "done"
    with StateStore.open(template, durability="relaxed") as store:
        deeds.furnish(store)
        before = deeds.seen(store)
    shutil.copytree(template, done)
    with StateStore.open(done) as store:
        deed.prepared(store)()
        after = deeds.seen(store)
    assert before != after
    return Stage(template, before, after)


def killed_writers(deed: Deed, stage: Stage, root: Path) -> Iterator[bool]:
    """Yields after each death, with the directory as the dead left it: whether the deed was acknowledged."""
    for nth in range(1, 400):
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(stage.template, root)

        def work(acknowledge: Callable[[str], None], nth: int = nth) -> None:
            store = StateStore.open(root)
            do = deed.prepared(store)
            dying.die_within(nth)
            do()
            acknowledge("done")

        ended = forked(work)
        assert not ended.error, ended.error
        yield "done" in ended.told
        if not ended.was_killed:
            assert nth > 3, "no call was counted: nothing was tested"
            return
    pytest.fail("the deed never came to its end")


def check_whole(store: StateStore, root: Path, stage: Stage, is_acknowledged: bool) -> None:
    state = deeds.seen(store)
    assert state in ([stage.after] if is_acknowledged else [stage.before, stage.after])
    assert "journal" not in leftovers(root)


@pytest.mark.parametrize("deed", deeds.ALL, ids=[deed.name for deed in deeds.ALL])
def test_at_whatever_point_a_writer_dies_all_happened_or_nothing(deed: Deed, tmp_path: Path, root: Path) -> None:
    stage = staged(deed, tmp_path)
    for is_acknowledged in killed_writers(deed, stage, root):
        with StateStore.open(root) as store:
            check_whole(store, root, stage, is_acknowledged)
            assert leftovers(root) == []
            assert store.check() == []


@pytest.mark.parametrize("deed", deeds.SEVERAL, ids=[deed.name for deed in deeds.SEVERAL])
def test_a_store_that_was_open_all_the_time_finishes_what_the_dead_began(
    deed: Deed, tmp_path: Path, root: Path
) -> None:
    stage = staged(deed, tmp_path)
    for nth in range(1, 400, 3):
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(stage.template, root)
        with StateStore.open(root) as reader:
            assert deeds.seen(reader) == stage.before

            def work(acknowledge: Callable[[str], None], nth: int = nth) -> None:
                store = StateStore.open(root)
                do = deed.prepared(store)
                dying.die_before(nth)
                do()
                acknowledge("done")

            ended = forked(work)
            assert not ended.error, ended.error
            if nth % 2:
                check_whole(reader, root, stage, "done" in ended.told)
            else:  # a save comes first, and must not come before what the dead began
                is_begun = "journal" in leftovers(root) or "done" in ended.told
                if is_begun and deed is deeds.BATCH:
                    with pytest.raises(SessionNotFound):
                        reader.append("doomed", UserMessage("too late"))
                reader.save_markdown("notes", "replaced", "newest")
                outcomes = [stage.after] if is_begun else [stage.before, stage.after]
                assert deeds.seen(reader) in [outcome | {"notes/replaced.md": b"newest"} for outcome in outcomes]
        if not ended.was_killed:
            return
    pytest.fail("the deed never came to its end")


def test_a_writer_that_dies_while_it_finishes_another_ones_batch_leaves_it_to_the_next(
    tmp_path: Path, root: Path
) -> None:
    stage = staged(deeds.BATCH, tmp_path)
    graves: list[Path] = []
    for _ in killed_writers(deeds.BATCH, stage, root):
        if "journal" in leftovers(root):
            graves.append(Path(shutil.copytree(root, tmp_path / f"grave-{len(graves)}")))
    recoveries = 0
    for interrupted in (graves[0], graves[len(graves) // 2]):
        for nth in range(1, 400, 2):
            shutil.rmtree(root)
            shutil.copytree(interrupted, root)

            def recover(acknowledge: Callable[[str], None], nth: int = nth) -> None:
                dying.die_before(nth)
                StateStore.open(root)
                acknowledge("open")

            ended = forked(recover)
            assert not ended.error, ended.error
            with StateStore.open(root) as store:
                assert deeds.seen(store) == stage.after
                assert leftovers(root) == []
            recoveries += 1
            if not ended.was_killed:
                break
    assert recoveries > 20


def test_at_whatever_point_the_first_opening_dies_the_next_one_works(root: Path) -> None:
    for nth in range(1, 100):
        shutil.rmtree(root, ignore_errors=True)

        def work(acknowledge: Callable[[str], None], nth: int = nth) -> None:
            dying.die_before(nth)
            StateStore.open(root)
            acknowledge("open")

        ended = forked(work)
        assert not ended.error, ended.error
        with StateStore.open(root) as store:
            store.save_markdown("notes", "hello", "world")
            assert leftovers(root) == []
            assert store.check() == []
        if not ended.was_killed:
            assert nth > 3
            return
    pytest.fail("the store never came to be open")
