"""What a search asks for, once its text was understood."""

from msgspec import Struct


class Term(Struct, frozen=True):
    """Something that must occur: tokens that follow each other."""

    tokens: tuple[str, ...]
    is_prefix: bool = False
    """Whether the last token may go on."""
