"""``statestore reply``: add what the agent answered."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from statestore import AgentResponse
from statestore.cli.commands.say import add_record, text_given
from statestore.cli.parameters import Json, Key, SureSession, Text

EXAMPLES: Final = (
    "statestore reply trip 'The 10:40.'",
    "my-agent < question.txt | statestore reply trip",
)


def reply(
    ctx: typer.Context,
    session: SureSession,
    text: Text = None,
    key: Key = None,
    phase: Annotated[str | None, typer.Option("--phase", metavar="NAME", help="The phase that it reached.")] = None,
    seed: Annotated[str | None, typer.Option("--seed", metavar="ID", help="The seed that it came from.")] = None,
    as_json: Json = False,
) -> None:
    """Add what the agent answered to a session, and print the number it got."""
    response = AgentResponse(text_given(text), seed_id=seed, phase_reached=phase)
    add_record(ctx, session, response, key, as_json=as_json)
