"""A text in pieces is the text, whatever is put into it and however often."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from statestore.seedform.pieces import SHORT, Edit, Pieces, in_text_order

TEXT = bytes(range(256)) * 400  # long enough that its parts are not simply joined


@st.composite
def edits(draw: st.DrawFn) -> list[list[tuple[float, float, bytes]]]:
    one = st.tuples(st.floats(0, 1), st.floats(0, 0.05), st.binary(max_size=40) | st.just(b"x" * SHORT))
    return draw(st.lists(st.lists(one, min_size=1, max_size=4), max_size=8))


@given(edits())
def test_edits_of_pieces_are_edits_of_the_text(rounds: list[list[tuple[float, float, bytes]]]) -> None:
    pieces, expected = Pieces.of(TEXT), TEXT
    for wishes in rounds:
        made: list[Edit] = []
        for start, length, new in sorted(wishes):
            first = max(int(start * len(expected)), made[-1].end if made else 0)
            made.append(Edit(first, min(len(expected), first + int(length * len(expected))), new))
        pieces = pieces.edited(in_text_order(made))
        for edit in reversed(made):
            expected = expected[: edit.start] + edit.new + expected[edit.end :]
        assert b"".join(pieces.parts) == expected
        assert pieces.size == len(expected)
        assert pieces.crc32() == Pieces.of(expected).crc32()
        for place in (0, 1, len(expected) // 2, len(expected)):
            assert b"".join(pieces.after(place)) == expected[place:]
    assert pieces.joined() == expected
