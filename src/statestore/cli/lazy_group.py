"""The group of all commands: knows each by its row in the table, and imports it when it is asked for."""

from __future__ import annotations

import importlib
from difflib import get_close_matches
from itertools import zip_longest
from typing import Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_command

from statestore.cli.anywhere import anywhere_options
from statestore.cli.coercing import take_plain_values_as_they_are
from statestore.cli.command_table import COMMANDS, SECTIONS, Entry

_PLACE: Final = "statestore.cli.commands"
_BLOCK: Final = 39
_OPTIONS: Final = """\
Options:
  --store URL  a path, sqlite:FILE, file:DIR, postgresql://…
               (else STATESTORE_URL, else ./state.db)
  --help       statestore COMMAND --help has examples
  --debug --version --install-completion --show-completion

Example:
  statestore --store state.db ls --user alice --since 2d
"""


class LazyGroup(TyperGroup):
    """Loads commands one by one."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command, loaded now; ``None`` if there is none of this name."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module = importlib.import_module(f"{_PLACE}.{entry.module}")
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(cmd_name, epilog=_shown(module.EXAMPLES))(getattr(module, entry.module))
        command: Any = get_command(alone)
        command.params += anywhere_options(uses_store=entry.uses_store)
        take_plain_values_as_they_are(command)
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is meant; a mistyped one is an error that suggests the nearest."""
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            near = get_close_matches(args[0], COMMANDS, n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else "statestore --help lists the commands"
            ctx.fail(f"there is no command {args[0]!r}: {hint}")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """A help that fits a screen: the commands in two columns where there is room, and without loading any."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        blocks = [_block(title, section) for title, section in SECTIONS.items()]
        if formatter.width >= 2 * _BLOCK:
            blocks = [_side_by_side(left, right) for left, right in zip(blocks[::2], blocks[1::2], strict=True)]
        for block in blocks:
            formatter.write("\n" + "\n".join(block) + "\n")
        formatter.write("\n" + _OPTIONS)


def _block(title: str, section: dict[str, Entry]) -> list[str]:
    return [f"{title}:", *(f"  {name:<8}{entry.summary}" for name, entry in section.items())]


def _side_by_side(left: list[str], right: list[str]) -> list[str]:
    return [f"{one:<{_BLOCK}}{other}".rstrip() for one, other in zip_longest(left, right, fillvalue="")]


def _shown(examples: tuple[str, ...]) -> str:
    """Examples as they end a help text: each on a line of its own."""
    return "\n".join(("\b", "Examples:", *(f"  {example}" for example in examples)))
