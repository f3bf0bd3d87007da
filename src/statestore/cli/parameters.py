"""Arguments and options that several commands take, spelt once."""

from __future__ import annotations

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SessionArgument = Annotated[str, typer.Argument(metavar="ID", help="A session's id, or its beginning.")]
SureSession = Annotated[str, typer.Argument(metavar="ID", help="A session's id; on a terminal, or its beginning.")]
WholeSession = Annotated[str, typer.Argument(metavar="ID", help="A session's whole id.")]
User = Annotated[str | None, typer.Option("--user", metavar="USER", help="Only this user's.")]
Project = Annotated[str | None, typer.Option("--project", metavar="ID", help="Only this project's.")]
Since = Annotated[str | None, typer.Option("--since", metavar="WHEN", help="Only newer ones: 2d, 12h, 2026-01-31.")]
Text = Annotated[str | None, typer.Argument(metavar="TEXT", help="Else, or with -, standard input.")]
Key = Annotated[str | None, typer.Option("--key", metavar="KEY", help="Stored once, however often it is repeated.")]
Forever = Annotated[bool, typer.Option("--forever", help="Not into the trash: at once, for good.")]
Relaxed = Annotated[bool, typer.Option("--relaxed", help="Leave out how a server may lose what it has.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask: for scripts.")]
