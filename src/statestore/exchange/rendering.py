"""Markdown as HTML that is safe to show: no HTML of the writer's own, no scripts, nothing loaded from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from html import escape, unescape
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token
    from markdown_it.utils import EnvType, OptionsDict

LONGEST: Final = 200_000
"""Texts longer than so many characters are not parsed: they are logs or data, and parsing takes seconds."""
DEEPEST: Final = 100
"""Texts that are nested deeper are not rendered: the parser would drop what is deeper still."""
_SENTINEL: Final = "statestore-ends-here"
_OPENINGS: Final = ("```", "~~~", "<")
"""Without one of these, no block goes on beyond an empty line and a line that is not indented."""
_HEADING: Final = re.compile(r"^(?:[ \t>]|[-+*][ \t]|\d+[.)][ \t])*(?:#|=+[ \t]*$|-+[ \t]*$)", re.MULTILINE)
"""What a heading is made of, wherever it stands: a line that begins with a ``#``, or that underlines another."""
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d\s+\d\d:\d\d:\d\d\s+UTC")
_AFTER_TITLE: Final = ["heading_close", "bullet_list_open", "list_item_open", "paragraph_open"]
"""What stands between a session's title and the first thing that is told of it."""
_TAG: Final = re.compile(r"<[^>]*>")


@cache
def _renderer() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - 30 ms, and only two formats need it

    markdown = MarkdownIt("commonmark", {"html": False, "maxNesting": DEEPEST}).enable(["table", "strikethrough"])
    markdown.add_render_rule("image", _image_as_link)
    markdown.add_render_rule("link_open", _outward_link)
    return markdown


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415

    return MarkdownIt("commonmark", {"maxNesting": DEEPEST})


def html_of(markdown: str) -> str:
    """The HTML of a markdown text; images become links, because they would be loaded from elsewhere."""
    if len(markdown) > LONGEST:
        return _as_plain_text(markdown)
    renderer, env = _renderer(), dict[str, Any]()
    tokens = renderer.parse(markdown, env)
    if any(token.level >= DEEPEST - 1 for token in tokens):
        return _as_plain_text(markdown)
    return str(renderer.renderer.render(tokens, renderer.options, env))


def _as_plain_text(text: str) -> str:
    return f'<p class="plain">{escape(text)}</p>\n'


def keeps_to_itself(markdown: str) -> bool:
    """Whether this text can stand in a markdown export as it is.

    It must not draw in what follows, as by a fence that nobody closed, and it must not look like a heading of the
    export itself, as if somebody else were speaking from there on.
    """
    if not any(opening in markdown for opening in _OPENINGS) and not _HEADING.search(markdown):
        return True
    if len(markdown) > LONGEST:
        return False
    tokens = _parser().parse(f"{markdown}\n\n## {_SENTINEL}\n")
    last = tokens[-3:]
    is_heading = [token.type for token in last] == ["heading_open", "inline", "heading_close"]
    return is_heading and last[0].level == 0 and last[1].content == _SENTINEL and not _poses(tokens)


def _poses(tokens: Sequence[Token]) -> bool:
    """Whether a text has what only an export has: a heading or HTML with a moment, or a title with a session's id."""
    kinds = [token.type for token in tokens]
    has_html = any(map(_is_html, tokens))
    for place, token in enumerate(tokens):
        text = _text_of(token)
        if _MOMENT.search(text) and (has_html or kinds[place - 1] == "heading_open"):
            return True
        if text.startswith("Session:") and kinds[max(place - 4, 0) : place] == _AFTER_TITLE:
            return True
    return False


def _is_html(token: Token) -> bool:
    return token.type == "html_block" or any(child.type == "html_inline" for child in token.children or ())


def _text_of(token: Token) -> str:
    """What a reader sees of a block."""
    if token.type == "html_block":
        return unescape(_TAG.sub("", token.content))
    return "".join(_texts_of(token.children or ()))


def _texts_of(children: Sequence[Token]) -> Iterator[str]:
    for child in children:
        if child.type != "html_inline":
            yield " " if child.type in ("softbreak", "hardbreak") else child.content


def _image_as_link(
    renderer: RendererHTML,
    tokens: Sequence[Token],
    index: int,
    options: OptionsDict,
    env: EnvType,
) -> str:
    token = tokens[index]
    source = str(token.attrs.get("src", ""))
    return f'<a rel="noopener noreferrer" href="{escape(source)}">{escape(token.content or source)}</a>'


def _outward_link(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: OptionsDict, env: EnvType
) -> str:
    tokens[index].attrSet("rel", "noopener noreferrer")
    rendered: Any = renderer.renderToken(tokens, index, options, env)
    return str(rendered)
