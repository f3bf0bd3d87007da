"""``statestore put``: store a document."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
import typer

from statestore import DocumentKind
from statestore.cli.commands.say import bytes_given
from statestore.cli.document_places import document_place
from statestore.cli.failures import UNUSABLE, WRONG_USAGE, CommandFailed
from statestore.cli.json_given import json_given
from statestore.cli.opening import writing
from statestore.cli.parameters import Json, Text
from statestore.cli.printing import print_json, print_line
from statestore.store.documents import put_bytes, put_json, put_markdown
from statestore.visible import on_one_line

EXAMPLES: Final = (
    "statestore put notes/today.md '# Today'",
    "statestore put images/logo.bin --from logo.png",
    """echo '{"steps": 3}' | statestore put projects/alpha/plan.json""",
)
_CHECKS: Final = {"json": put_json, "md": put_markdown, "bin": put_bytes}
"""What refuses a name, or a value, that no store takes."""


def put(
    ctx: typer.Context,
    document: Annotated[str, typer.Argument(metavar="CATEGORY/NAME.KIND", help="The kind is json, md or bin.")],
    text: Text = None,
    source: Annotated[str | None, typer.Option("--from", metavar="FILE", help="Take what is in this file.")] = None,
    if_version: Annotated[str | None, typer.Option("--if-version", metavar="V", help="Only over this version.")] = None,
    only_new: Annotated[bool, typer.Option("--only-new", help="Only if there is none yet.")] = False,
    as_json: Json = False,
) -> None:
    """Store a document, and print its version. One that is there is replaced. A store that is not there is made."""
    category, name, kind = document_place(document)
    if kind is None:
        raise CommandFailed(f"say what it is: {document}.md, {document}.json or {document}.bin", WRONG_USAGE)
    if text is not None and source is not None:
        raise CommandFailed("TEXT and --from do not go together: give one of them", WRONG_USAGE)
    if only_new and if_version is not None:
        raise CommandFailed("--only-new and --if-version do not go together: give one of them", WRONG_USAGE)
    value = _understood(_body(text, source), kind, document)
    _CHECKS[kind](category, name, value, if_version)  # before a store is made for it
    with writing(ctx, create=not if_version) as store:
        save = {"json": store.save_json, "md": store.save_markdown, "bin": store.save_bytes}[kind]
        version = save(category, name, value, if_version="" if only_new else if_version)
    if as_json:
        print_json({"category": category, "name": name, "kind": kind, "version": version})
    else:
        print_line(on_one_line(version))


def _body(text: str | None, source: str | None) -> bytes:
    if source is not None:
        try:
            with open(source, "rb") as file:
                return file.read()
        except OSError as error:
            raise CommandFailed(f"{source} cannot be read: {error.strerror or error}", UNUSABLE) from error
    if text is not None and text != "-":
        return text.encode(errors="surrogateescape")
    body = bytes_given()
    if not body:
        advice = "give the text as an argument ('' for an empty document), or send it there"
        raise CommandFailed(f"standard input is empty: {advice}", WRONG_USAGE)
    return body


def _understood(body: bytes, kind: DocumentKind, document: str) -> Any:
    """What is to be stored: a value, a text, or the bytes as they are."""
    try:
        if kind == "json":
            return json_given(body)
        return body.decode() if kind == "md" else body
    except UnicodeDecodeError as error:
        reason = f"it is not UTF-8 at byte {error.start}"
        raise CommandFailed(f"{document} was not stored: {reason}", WRONG_USAGE) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise CommandFailed(f"{document} was not stored: it is not JSON: {error}", WRONG_USAGE) from error
