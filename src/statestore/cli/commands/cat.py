"""``statestore cat``: one document, as it is stored."""

from __future__ import annotations

import sys
from base64 import b64encode
from typing import Annotated, Any, Final

import msgspec
import typer

from statestore import Document
from statestore.cli.document_places import find_document
from statestore.cli.failures import WRONG_USAGE, CommandFailed
from statestore.cli.opening import reading
from statestore.cli.parameters import Json
from statestore.cli.printing import print_json
from statestore.visible import on_its_lines

EXAMPLES: Final = (
    "statestore cat notes/today",
    "statestore cat images/logo.bin > logo.png",
    "statestore cat sessions/trip --json | jq .value",
)


def cat(
    ctx: typer.Context,
    document: Annotated[str, typer.Argument(metavar="CATEGORY/NAME", help="May end in its kind: .json .md .bin")],
    as_json: Json = False,
) -> None:
    """Print a document: the very bytes, into a file or a pipe.

    Without a kind it is the JSON, else the markdown, else the bytes. sessions/ID is a session as JSON.
    """
    with reading(ctx) as store:
        found = find_document(store, document)
    if as_json:
        print_json(_described(found))
    elif sys.stdout.isatty():
        if found.kind == "bin":
            raise CommandFailed(f"{document} is bytes: send them into a file with >", WRONG_USAGE)
        text = on_its_lines(found.text)
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(found.body)


def _described(document: Document) -> dict[str, Any]:
    """A document for ``--json``: JSON as it is, markdown as text, bytes as base64."""
    value = document.value  # which also finds out whether it can be understood
    if document.kind == "json":
        value = msgspec.Raw(msgspec.json.format(document.body, indent=-1))
    elif document.kind == "bin":
        value = b64encode(document.body).decode()
    fields = {"category": document.category, "name": document.name, "kind": document.kind}
    return {**fields, "version": document.version, "value": value}
