"""The checker finds out where no order explains what was seen: histories written by hand, sound ones and others."""

from __future__ import annotations

from soak.races.checker import Unexplained
from soak.races.explaining import explain_history
from soak.races.history import Answer, Listed, Operation, Seen


class Story:
    """A history written by hand: each word begins when the one before it has ended, unless it is said to overlap."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self._now = 0

    def tell(
        self,
        name: str,
        value: object = None,
        /,
        *,
        refused: str | None = None,
        since: int | None = None,
        is_lost: bool = False,
        **about: object,
    ) -> int:
        """Something was done, by somebody who did nothing else; when it ended."""
        start = self._now + 1 if since is None else since
        self._now = max(self._now, start) + 1
        answer, end = (None, None) if is_lost else (Answer(value, refused), self._now)
        number = len(self.operations) + 1
        self.operations.append(Operation(number, 0, f"worker {number}", name, dict(about), start, end, answer))
        return self._now

    def put(self, paper: str, value: int, version: str, if_version: str | None = None, **when: int) -> int:
        return self.tell("put", version, name=paper, value=value, if_version=if_version, **when)

    def read(self, paper: str, value: int, version: str, **when: int) -> int:
        return self.tell("get", (value, version), name=paper, **when)

    def born(self, session_id: str, version: str) -> int:
        about = {"id": session_id, "user": "ann", "created": "now", "said": (), "is_old": False}
        return self.tell("create", version, **about)

    def append(self, session_id: str, text: str, seq: int, key: str | None = None, **when: int) -> int:
        return self.tell("append", (seq,), id=session_id, said=((text, key),), owner=None, **when)

    def load(self, session_id: str, version: str, *records: tuple[int, str], **when: int) -> int:
        seen = Seen(session_id, "ann", "now", version, records, (), None)
        return self.tell("load", seen, id=session_id, owner=None, **when)

    def save(
        self, session_id: str, held: str, told: str | None, text: str, metadata: tuple[tuple[str, int], ...] = ()
    ) -> int:
        about = {
            "id": session_id,
            "user": "ann",
            "created": "now",
            "held": held,
            "said": ((text, None),),
            "metadata": metadata,
        }
        return self.tell("save", told, **about)

    def batch(self, x: int, y: int, **when: int) -> int:
        puts = tuple({"name": name, "value": value, "if_version": None} for name, value in (("x", x), ("y", y)))
        return self.tell("batch", None, puts=puts, save=None, delete=None, **when)

    def is_explained(self) -> bool:
        try:
            explain_history(self.operations)
        except Unexplained:
            return False
        return True


def test_what_happens_one_after_the_other_is_explained() -> None:
    story = Story()
    story.put("x", 1, "v1")
    story.read("x", 1, "v1")
    story.put("x", 2, "v2", if_version="v1")
    story.tell("put", refused="document conflict", name="x", value=3, if_version="v1")
    story.read("x", 2, "v2")
    assert story.is_explained()


def test_a_stale_read_is_found() -> None:
    story = Story()
    story.put("x", 1, "v1")
    story.put("x", 2, "v2")
    story.read("x", 1, "v1")
    assert not story.is_explained()


def test_a_read_that_overlaps_a_write_may_see_either() -> None:
    for value, version in ((1, "v1"), (2, "v2")):
        story = Story()
        story.put("x", 1, "v1")
        begun = story.put("x", 2, "v2") - 1
        story.read("x", value, version, since=begun)
        assert story.is_explained()


def test_two_readers_that_see_two_writes_in_different_orders_are_found() -> None:
    story = Story()
    story.put("x", 0, "v0")
    story.put("y", 0, "w0")
    begun = story.batch(1, 1)
    story.read("x", 1, "v1", since=begun)
    story.read("y", 0, "w0")
    assert not story.is_explained()


def test_a_version_that_two_writers_replaced_is_found() -> None:
    story = Story()
    begun = story.put("x", 1, "v1") + 1
    story.put("x", 2, "v2", if_version="v1", since=begun)
    story.put("x", 3, "v3", if_version="v1", since=begun)
    assert not story.is_explained()


def test_a_version_that_is_used_twice_is_found() -> None:
    story = Story()
    story.put("x", 1, "v1")
    story.put("x", 2, "v1")
    assert not story.is_explained()


def test_a_lost_update_is_found() -> None:
    story = Story()
    story.born("s", "v0")
    begun = story.append("s", "one", 1)
    story.append("s", "two", 2, since=begun)
    story.load("s", "v2", (2, "two"))
    assert not story.is_explained()


def test_a_number_that_is_given_out_twice_is_found() -> None:
    story = Story()
    begun = story.born("s", "v0") + 1
    story.append("s", "one", 1, since=begun)
    story.append("s", "two", 1, since=begun)
    assert not story.is_explained()


def test_a_key_that_counts_twice_is_found() -> None:
    for seq, is_sound in ((1, True), (2, False)):
        story = Story()
        story.born("s", "v0")
        story.append("s", "one", 1, key="k")
        story.append("s", "again", seq, key="k")
        assert story.is_explained() is is_sound


def test_a_save_that_overwrites_what_it_did_not_change_is_found() -> None:
    for metadata, is_sound in (((("p", 1), ("q", 2)), True), ((("q", 2),), False)):
        story = Story()
        story.born("s", "v0")
        story.save("s", "v0", "v1", "one", metadata=(("p", 1),))
        story.save("s", "v0", None, "two", metadata=(("q", 2),))
        seen = Seen("s", "ann", "now", "v2", ((1, "one"), (2, "two")), metadata, None)
        story.tell("load", seen, id="s", owner=None)
        assert story.is_explained() is is_sound


def test_an_object_that_does_not_know_it_is_stale_is_found() -> None:
    for told, is_sound in ((None, True), ("v2", False)):
        story = Story()
        story.born("s", "v0")
        story.append("s", "one", 1)
        story.save("s", "v0", told, "two")
        assert story.is_explained() is is_sound


def test_half_a_batch_is_found() -> None:
    for y, is_sound in ((2, True), (1, False)):
        story = Story()
        story.batch(1, 1)
        begun = story.batch(2, 2)
        story.read("x", 2, "v2", since=begun)
        story.read("y", y, "w")
        assert story.is_explained() is is_sound


def test_a_listing_that_looks_at_one_after_the_other_still_shows_no_half_of_a_batch() -> None:
    for told, is_sound in (((), True), (("x", "y"), True), (("x",), False), (("y",), False)):
        story = Story()
        begun = story.batch(1, 1) - 1
        story.tell("names", told, items=("x", "y"), is_whole=False, since=begun)
        assert story.is_explained() is is_sound


def test_a_listing_of_one_moment_shows_what_came_in_the_order_in_which_it_came() -> None:
    for told, is_whole, is_sound in ((("y",), False, True), (("y",), True, False), (("x",), True, True)):
        story = Story()
        begun = story.put("x", 1, "v1") - 1
        story.put("y", 1, "w1")
        story.tell("names", told, items=("x", "y"), is_whole=is_whole, since=begun)
        assert story.is_explained() is is_sound


def test_a_session_that_was_pruned_though_somebody_had_touched_it_is_found() -> None:
    for pruned, is_sound in ((0, True), (1, False)):
        story = Story()
        story.tell("create", "v0", id="s", user="ann", created="now", said=(), is_old=True)
        story.append("s", "I am still here", 1)
        story.tell("prune", pruned, user="ann", items=("s",), is_whole=True)
        assert story.is_explained() is is_sound


def test_a_session_that_is_listed_after_it_was_deleted_is_found() -> None:
    for told, is_sound in (((), True), ((Listed("s", "ann", "now", "v0", 0, None, None),), False)):
        story = Story()
        story.born("s", "v0")
        story.tell("delete", True, id="s", owner=None)
        story.tell("listing", told, user="ann", items=("s",), is_whole=True)
        assert story.is_explained() is is_sound


def test_what_became_of_a_killed_writer_may_show_at_any_time_but_never_both() -> None:
    for seen, is_sound in (((1, 2), True), ((1, 1), True), ((2, 2), True), ((2, 1), False)):
        story = Story()
        story.put("x", 1, "v1")
        story.tell("put", name="x", value=2, if_version=None, is_lost=True)
        for value in seen:
            story.read("x", value, f"v{value}")
        assert story.is_explained() is is_sound
