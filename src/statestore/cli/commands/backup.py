"""``statestore backup``: a verified copy of a store in use."""

from __future__ import annotations

import os
from typing import Annotated, Final

import typer

from statestore import NotSupported
from statestore.cli.failures import UNUSABLE, CommandFailed
from statestore.cli.opening import reading
from statestore.cli.parameters import Json
from statestore.cli.printing import print_json, print_line, size_text
from statestore.exchange import check_is_elsewhere
from statestore.opening import path_of_database
from statestore.visible import on_one_line

EXAMPLES: Final = (
    "statestore backup monday.db",
    "statestore --store state.db backup /mnt/backup/$(date +%F).db",
)


def backup(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where nothing is yet.")],
    as_json: Json = False,
) -> None:
    """Copy an SQLite store to a new file, while others write to it. The copy is of one moment, and is verified.

    Other engines are copied with statestore copy.
    """
    with reading(ctx) as store:
        path = path_of_database(file)
        check_is_elsewhere(path, store.url)
        try:
            store.backup(path)
        except NotSupported as error:
            message = f"{store.url} cannot be backed up while in use: statestore copy {store.url} {file} copies it"
            raise CommandFailed(message, UNUSABLE) from error
    size = os.path.getsize(path)
    if as_json:
        print_json({"file": path, "bytes": size})
    else:
        print_line(f"{on_one_line(path)}: {size_text(size)}, verified")
