"""Markdown on a terminal: headings, lists, tables and code as such, and every word of what was written."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from io import StringIO
from os import environ
from typing import TYPE_CHECKING, Final

from statestore.cli.printing import terminal_width
from statestore.visible import on_its_lines

if TYPE_CHECKING:
    from markdown_it.token import Token

_AS_WRITTEN: Final = ("html_block", "html_inline", "entity", "link", "image", "autolink", "reference")
"""What rendering would hide, in whole or in part: tags, and where a link leads."""
_STYLE: Final = re.compile(r"\x1b\[[0-9;]*m")
_MARKUP: Final = re.compile(r"[\s!-/:-@\[-`{-~]+")
"""What may be gone once markdown is rendered: white space and punctuation."""
LONGEST: Final = 20_000
"""How many characters are rendered at most: some texts of this length take the renderer seconds."""
MOST_TOKENS: Final = 30_000
"""How many tokens are rendered at most: a row of a table may be short, and yet have many cells."""


def as_written(content: str) -> str:
    """A text as it is, except that controls are shown."""
    return on_its_lines(content).rstrip("\n")


def rendered(content: str) -> str:
    """A text rendered for this terminal; as it is written, where rendering would hide some of it.

    That is so for what is nested too deep, for a cell that is too much in a table, for numbers of a list that do not
    follow each other, and for a text that has no words. What is very long is left as it is written, too.
    """
    if len(content) > LONGEST:
        return as_written(content)
    words = _characters(content)
    text = _renderer()(content)
    return text if words and words <= _characters(_STYLE.sub("", text)) else as_written(content)


def _characters(text: str) -> Counter[str]:
    """How often each character occurs, apart from those that markdown uses up."""
    return Counter(_MARKUP.sub("", on_its_lines(text)))


@lru_cache(maxsize=1)
def _renderer() -> Callable[[str], str]:
    """What renders markdown, or gives nothing where that is too much; loaded once it is needed."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - 30 ms
    from rich.console import Console  # noqa: PLC0415 - 60 ms
    from rich.markdown import Markdown  # noqa: PLC0415 - 100 ms

    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable(_AS_WRITTEN)
    markdown = Markdown("")
    page = StringIO()
    console = Console(
        file=page,
        force_terminal=True,
        width=terminal_width(),
        no_color=bool(environ.get("NO_COLOR")),
        highlight=False,
        markup=False,
        emoji=False,
    )

    def render(content: str) -> str:
        written = on_its_lines(content).replace("\n", "  \n")  # who writes messages means the ends of lines
        tokens = parser.parse(written)
        if len(tokens) > MOST_TOKENS:
            return ""
        markdown.parsed = list(_with_languages(tokens))
        console.print(markdown)
        text = page.getvalue().rstrip("\n")
        page.seek(0)
        page.truncate()
        return text

    return render


def _with_languages(tokens: Iterable[Token]) -> Iterable[Token]:
    """The tokens, with a line before each block of code that says what was written behind its fence."""
    from markdown_it.token import Token  # noqa: PLC0415 - loaded with the parser already

    for token in tokens:
        if token.type == "fence" and token.info:
            yield Token("paragraph_open", "p", 1)
            yield Token("text", "", 0, content=token.info)
            yield Token("paragraph_close", "p", -1)
        yield token
