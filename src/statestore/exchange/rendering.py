"""Markdown as HTML that is safe to show: no HTML of the writer's own, no scripts, nothing loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token
    from markdown_it.utils import EnvType, OptionsDict

LONGEST: Final = 200_000
"""Texts longer than so many characters are not parsed: they are logs or data, and parsing takes seconds."""
_SENTINEL: Final = "statestore-ends-here"
_OPENINGS: Final = ("```", "~~~", "<")
"""Without one of these, no block goes on beyond an empty line and a line that is not indented."""


@cache
def _renderer() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - 30 ms, and only two formats need it

    markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    markdown.add_render_rule("image", _image_as_link)
    markdown.add_render_rule("link_open", _outward_link)
    return markdown


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415

    return MarkdownIt("commonmark")


def html_of(markdown: str) -> str:
    """The HTML of a markdown text; images become links, because they would be loaded from elsewhere."""
    if len(markdown) > LONGEST:
        return f"<p class=plain>{escape(markdown)}</p>\n"
    return str(_renderer().render(markdown))


def is_self_contained(markdown: str) -> bool:
    """Whether what follows this text in a document is not drawn into it, as by a fence that nobody closed."""
    if not any(opening in markdown for opening in _OPENINGS):
        return True
    if len(markdown) > LONGEST:
        return False
    last = _parser().parse(f"{markdown}\n\n## {_SENTINEL}\n")[-3:]
    is_heading = [token.type for token in last] == ["heading_open", "inline", "heading_close"]
    return is_heading and last[0].level == 0 and last[1].content == _SENTINEL


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
