r"""Making what is stored safe to show: control sequences in a message are shown, never obeyed.

A terminal acts on some characters: it moves the cursor, sets its title, turns the direction of text. Here they become
pictures (``␛``) or escapes (``\x9b``).
"""

from __future__ import annotations

import re
from typing import Final

_PICTURES: Final = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "\u2421"}
_ESCAPES: Final = {code: f"\\x{code:02x}" for code in range(0x80, 0xA0)} | {
    code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
}
"""C1 controls, and what turns the direction of text beyond its own end."""
_SHOWN: Final = _PICTURES | _ESCAPES
_LINE_ENDS: Final = "\r\n|[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]"
_KEEP_LINES: Final = {code: shown for code, shown in _SHOWN.items() if chr(code) not in "\n\t"}
_IN_JSON: Final = {code: f"\\u{code:04x}" for code in (0x7F, *_ESCAPES)}

_FROM_RIGHT: Final = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff\U0001e800-\U0001efff]"


def on_one_line(text: str) -> str:
    """A text as one line: line ends and tabs become spaces, all other controls are shown."""
    if text.isascii() and text.isprintable():
        return text
    return re.sub(_LINE_ENDS, " ", text).replace("\t", " ").translate(_SHOWN)


def on_its_lines(text: str) -> str:
    """A text with its lines and tabs; all other controls are shown."""
    return text.replace("\r\n", "\n").translate(_KEEP_LINES)


def in_json(text: str) -> str:
    """JSON text that means the same, and in which no character is a control."""
    return text if text.isascii() and "\x7f" not in text else text.translate(_IN_JSON)


def isolated(text: str) -> str:
    """A text that may be written from right to left, fenced in so that it does not turn what stands beside it."""
    return text if text.isascii() or not re.search(_FROM_RIGHT, text) else f"\u2068{text}\u2069"
