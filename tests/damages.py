"""Stores on every engine that lasts, and what can happen to one session there behind the engine's back."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

import redis

from servers import postgres, valkey

KINDS: Final = ("files", "sqlite", "postgres", "valkey", "valkey-cluster")
ROWS: Final = KINDS[1:]
"""The engines that keep a session's layout beside it, and not in it."""

_ROW: Final = "WHERE id = 'bad'"
_NUMBER: Final = f"(SELECT number FROM sessions {_ROW})"
_SQLITE: Final = {
    "layout": f"UPDATE extras SET layout = x'7b' WHERE number = {_NUMBER}",
    "metadata": f"UPDATE extras SET metadata = '[1' WHERE number = {_NUMBER}",
    "record": f"UPDATE records SET body = '{{' WHERE place = {_NUMBER} << 32 | 1",
    "moment": f"UPDATE sessions SET updated = 'then' {_ROW}",
}
_POSTGRES: Final = {
    "layout": f"UPDATE sessions SET layout = '{{' {_ROW}",
    "metadata": f"UPDATE metadata SET member = '[' {_ROW}",
    "record": f"UPDATE records SET body = '{{' {_ROW} AND seq = 1",
    "moment": f"UPDATE sessions SET updated = 'then' {_ROW}",
}
DAMAGES: Final = [(kind, damage) for kind in ROWS for damage in _SQLITE] + [("files", "text"), ("files", "directory")]


def url_of(kind: str, place: Path) -> str:
    """The URL of a store that is not there yet; on servers, nothing else has its name."""
    name = f"damaged_{time.time_ns()}"
    match kind:
        case "files":
            return f"file:{place / name}"
        case "sqlite":
            return f"sqlite:{place / name}"
        case "postgres":
            return f"{postgres.shared_url()}?schema={name}"
        case "valkey":
            return f"{valkey.shared_url()}?prefix={name}"
        case _:
            return f"{valkey.shared_cluster().url}&prefix={name}"


def damage_session(kind: str, url: str, damage: str) -> None:
    """Damage the session ``bad``, which has metadata, and a record from the user."""
    match kind:
        case "files":
            _damage_file(Path(url.removeprefix("file:")) / "sessions" / "bad.json", damage)
        case "sqlite":
            with closing(sqlite3.connect(url.removeprefix("sqlite:"))) as connection, connection:
                assert connection.execute(_SQLITE[damage]).rowcount == 1
        case "postgres":
            server, _, schema = url.partition("?schema=")
            postgres.sql(server, f"SET search_path TO {schema}", _POSTGRES[damage])
        case _:
            _damage_keys(f"{url.partition('prefix=')[2]}:s:{{bad}}", damage, _clients(kind))


def _damage_file(path: Path, damage: str) -> None:
    path.unlink()
    if damage == "directory":
        path.mkdir()
    else:
        path.write_text('{"id": ')


def _clients(kind: str) -> Iterable[redis.Redis]:
    if kind == "valkey-cluster":
        return [node.client for node in valkey.shared_cluster().nodes]
    return [redis.Redis.from_url(valkey.shared_url().replace("valkey", "redis", 1))]


def _damage_keys(session: str, damage: str, clients: Iterable[redis.Redis]) -> None:
    for client in clients:
        with suppress(redis.exceptions.ResponseError):  # it is on another node
            match damage:
                case "layout":
                    client.hset(f"{session}:h", "layout", "{")
                case "metadata":
                    client.hset(f"{session}:m", "no JSON", "1:1")
                case "record":
                    client.lset(f"{session}:r", 0, "u0000000000000001{")
                case _:
                    client.hset(f"{session}:h", "updated", "then")
