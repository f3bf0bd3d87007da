"""Reading the values of options without loading a validation library for it.

From 0.29 on, typer hands every value, even an absent one, to pydantic: 150 ms for a command that takes a word and a
number. Words, whole numbers and lists of words need none of it, so they are taken as they are. All else, and all that
is wrong, goes typer's own way, which also words the errors.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Final

_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_TYPERS_WAY: Final = object()


def take_plain_values_as_they_are(command: Any) -> None:
    """Have the parameters of a command, ``--help`` included, take plain values directly."""
    all_parameters = command.get_params

    def plain_parameters(ctx: Any) -> list[Any]:
        parameters = all_parameters(ctx)
        for parameter in parameters:
            # A typer that leaves this to click has no descriptors, and needs no help.
            if hasattr(parameter, "type_descriptor") and not isinstance(parameter.process_value, partial):
                parameter.process_value = partial(_processed, parameter, parameter.process_value)
        return parameters

    command.get_params = plain_parameters


def _processed(parameter: Any, typers_way: Any, ctx: Any, value: Any) -> Any:
    taken = _taken(parameter, value)
    if taken is _TYPERS_WAY or (parameter.required and parameter.value_is_missing(taken)):
        return typers_way(ctx, value)
    return taken if parameter.callback is None else parameter.callback(ctx, parameter, taken)


def _taken(parameter: Any, value: Any) -> Any:
    """The value, if it is plain enough."""
    annotation = parameter.type_descriptor.annotation
    if value is None:
        return () if parameter.multiple or parameter.nargs == -1 else None
    if annotation is str and isinstance(value, str):
        return value
    if annotation == list[str] and isinstance(value, (list, tuple)):
        return value  # pyright: ignore[reportUnknownVariableType]
    if annotation is int and isinstance(value, (int, str)) and _WHOLE_NUMBER.fullmatch(str(value)):
        number = int(value)
        is_low = parameter.min is not None and number < parameter.min
        is_high = parameter.max is not None and number > parameter.max
        return _TYPERS_WAY if is_low or is_high else number
    return _TYPERS_WAY
