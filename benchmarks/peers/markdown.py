"""Tables of figures in Markdown."""

from __future__ import annotations

from collections.abc import Sequence


def figures_table(columns: Sequence[str], words: int, rows: Sequence[tuple[Sequence[str], bool]]) -> str:
    """A table whose first columns are words and whose others are figures; each row tells whether it is bold."""
    marks = ["---" if number < words else "---:" for number in range(len(columns))]
    return "\n".join(_row(cells) for cells in (columns, marks, *(_styled(*row) for row in rows)))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _styled(cells: Sequence[str], is_bold: bool) -> list[str]:
    plain = [cell.replace("*", r"\*").replace("|", r"\|") for cell in cells]
    return [f"**{cell}**" for cell in plain] if is_bold else plain
