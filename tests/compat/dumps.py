"""A store as plain text, taken and put back by plain means: files, SQL, commands of the server. No engine of ours.

Each engine's dump is one text that diffs well; that of the files is the files themselves.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import redis

import statestore.engines
from servers import postgres
from soak.grounds import Ground

NAMES = {
    "files": "files",
    "sqlite": "sqlite.sql",
    "postgres": "postgres.sql",
    "valkey": "valkey.json",
    "valkey-cluster": "valkey-cluster.json",
}
"""What the dump of each engine is called."""

ENGINES = tuple(NAMES)
PREFIX = "golden"
"""What the keys begin with in the dumps of Valkey."""
CHANGES = "changes.sql"
"""Beside the files: the database of changes that lies among them, as text."""


def dump(ground: Ground, to: Path) -> None:
    """Write down what a closed store holds."""
    place = to / NAMES[ground.engine]
    if ground.engine == "files":
        shutil.copytree(_path(ground), place, ignore=shutil.ignore_patterns("locks", "tmp", "*.db*", "Names-*"))
        with closing(sqlite3.connect(_path(ground) / ".statestore" / "changes.db")) as connection:
            (place / ".statestore" / CHANGES).write_bytes(_sql_of(connection).encode())
    else:
        place.write_bytes(dumped(ground).encode())


def dumped(ground: Ground) -> str:
    """The same as a text."""
    match ground.engine:
        case "files":
            return _tree(_path(ground))
        case "sqlite":
            with closing(sqlite3.connect(_path(ground))) as connection:
                return _sql_of(connection)
        case "postgres":
            return _schema() + _rows(ground)
        case _:
            return _keys(ground)


def load(ground: Ground, source: Path) -> None:
    """Make the store of which this is a dump; in an empty place."""
    place = source / NAMES[ground.engine]
    match ground.engine:
        case "files":
            shutil.copytree(place, _path(ground))
            changes = _path(ground) / ".statestore" / CHANGES
            _build(changes.with_suffix(".db"), changes.read_bytes().decode())
            changes.unlink()
        case "sqlite":
            _build(_path(ground), place.read_bytes().decode())
        case "postgres":
            run_in(ground, f"CREATE SCHEMA {schema_of(ground)}", place.read_bytes().decode(), "SELECT 1")
        case _:
            _put_keys(ground, json.loads(place.read_bytes().decode()))


# -- files and SQLite ---------------------------------------------------------------------------------------------


def _path(ground: Ground) -> Path:
    return Path(ground.target.partition(":")[2])


def _tree(root: Path) -> str:
    found = sorted(path for path in root.rglob("*") if path.is_file())
    return "\n".join(f"{path.relative_to(root)} {path.read_bytes().hex()}" for path in found)


def _sql_of(connection: sqlite3.Connection) -> str:
    """The script that makes a database anew; of an index of words, the words."""
    lines = [
        f"PRAGMA {name}={connection.execute(f'PRAGMA {name}').fetchone()[0]};"
        for name in ("application_id", "user_version")
    ]
    schema = connection.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")
    for kind, name, sql in schema.fetchall():
        if name.startswith(("words_", "sqlite_")):
            continue  # what SQLite itself keeps of an index of words, and of the numbers it gave out
        lines.append(f"{sql};")
        if kind == "table":
            lines += _inserts(connection, name)
    lines += ["DELETE FROM sqlite_sequence;", *_inserts(connection, "sqlite_sequence")]
    return "\n".join([*lines, ""])


def _inserts(connection: sqlite3.Connection, table: str) -> list[str]:
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    if table == "words":
        columns.insert(0, "rowid")
    values = " || ', ' || ".join(f'quote("{column}")' for column in columns)
    found = connection.execute(f"SELECT {values} FROM {table} ORDER BY 1")
    return [f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({row[0]});" for row in found]


def _build(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(f"BEGIN;\n{script}\nCOMMIT;")


# -- PostgreSQL ---------------------------------------------------------------------------------------------------

PASSING = ("tokens", "watched")
"""Tables whose rows matter for an hour at most."""


def schema_of(ground: Ground) -> str:
    """The schema that a store is kept in."""
    return parse_qs(urlsplit(ground.target).query)["schema"][0]


def run_in(ground: Ground, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements in the schema of a store; the rows of the last one."""
    url = ground.target.partition("?")[0]
    return postgres.sql(url, f"SET search_path TO {schema_of(ground)}", *statements)


def _schema() -> str:
    """The steps that make the tables, as this release has them."""
    steps = Path(statestore.engines.__path__[0]) / "postgres" / "migrations"
    return "\n".join(path.read_text() for path in sorted(steps.glob("*.sql")))


def _rows(ground: Ground) -> str:
    lines = ["-- What is in them."]
    tables = run_in(ground, f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema_of(ground)}' ORDER BY 1")
    for (table,) in tables:
        if table in PASSING:
            continue
        columns = run_in(
            ground,
            "SELECT column_name FROM information_schema.columns WHERE table_schema = "
            f"'{schema_of(ground)}' AND table_name = '{table}' ORDER BY ordinal_position",
        )
        names = ", ".join(f'"{name}"' for (name,) in columns)
        lines.append(f"DELETE FROM {table};")
        for row in run_in(ground, f"SELECT {names} FROM {table} ORDER BY {names}"):
            lines.append(f"INSERT INTO {table} ({names}) VALUES ({', '.join(map(_literal, row))});")
    for sequence in ("change_numbers", "session_numbers"):
        ((last, is_called),) = run_in(ground, f"SELECT last_value, is_called FROM {sequence}")
        lines.append(f"SELECT setval('{sequence}', {last}, {str(is_called).lower()});")
    return "\n".join([*lines, ""])


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        text = value.decode(errors="replace")
        is_text = text.encode() == value and "\0" not in text
        return f"convert_to({_literal(text)}, 'UTF8')" if is_text else f"'\\x{value.hex()}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value).lower()


# -- Valkey -------------------------------------------------------------------------------------------------------


def prefix_of(ground: Ground) -> str:
    """What all keys of a store begin with."""
    return parse_qs(urlsplit(ground.target).query)["prefix"][0]


@contextmanager
def client_of(ground: Ground) -> Iterator[Any]:
    """A plain client of the server, or of the cluster, that a store is on."""
    address = urlsplit(ground.target)
    assert address.hostname is not None
    assert address.port is not None
    make = redis.RedisCluster if ground.engine == "valkey-cluster" else redis.Redis
    with closing(make(host=address.hostname, port=address.port)) as client:
        yield client


def _keys(ground: Ground) -> str:
    """Every key that does not expire, with its type and its value."""
    found: dict[str, Any] = {}
    with client_of(ground) as client:
        for key in client.scan_iter(match=f"{prefix_of(ground)}:*", count=1000):
            if client.pttl(key) == -1:
                name = key.decode().replace(prefix_of(ground), PREFIX, 1)
                kind = client.type(key).decode()
                found[name] = {kind: _value(client, kind, key)}
    return json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def _value(client: Any, kind: str, key: bytes) -> Any:
    match kind:
        case "hash":
            return {_text(name): _text(value) for name, value in client.hgetall(key).items()}
        case "zset":
            return [[_text(member), score] for member, score in client.zrange(key, 0, -1, withscores=True)]
        case "list":
            return [_text(item) for item in client.lrange(key, 0, -1)]
        case "stream":
            return [[_text(at), [_text(x) for pair in entry.items() for x in pair]] for at, entry in client.xrange(key)]
        case "string":
            return _text(client.get(key))
        case _:
            raise AssertionError(f"{key!r} is a {kind}")


def _text(value: bytes) -> str:
    """Bytes as a text, and back by `_bytes`, whatever they are."""
    return value.decode("utf-8", "surrogateescape").replace("\\", "\\\\").encode("utf-8", "backslashreplace").decode()


def _bytes(text: str) -> bytes:
    parts = text.split("\\\\")
    return b"\\".join(_unescaped(part) for part in parts)


def _unescaped(part: str) -> bytes:
    first, *rest = part.split("\\udc")
    return first.encode() + b"".join(bytes.fromhex(piece[:2]) + piece[2:].encode() for piece in rest)


def _put_keys(ground: Ground, keys: dict[str, Any]) -> None:
    with client_of(ground) as client:
        for name, typed in keys.items():
            key = name.replace(PREFIX, prefix_of(ground), 1)
            ((kind, value),) = typed.items()
            _put(client, kind, key, value)


def _put(client: Any, kind: str, key: str, value: Any) -> None:
    match kind:
        case "hash":
            client.hset(key, mapping={_bytes(name): _bytes(item) for name, item in value.items()})
        case "zset":
            client.zadd(key, {_bytes(member): score for member, score in value})
        case "list":
            client.rpush(key, *map(_bytes, value))
        case "stream":
            for at, fields in value:
                client.execute_command("XADD", key, at, *map(_bytes, fields))
        case _:
            client.set(key, _bytes(value))
