"""Every command, in the order of ``statestore --help``: where it lives and what it does, without importing it."""

from __future__ import annotations

from typing import Final, NamedTuple


class Entry(NamedTuple):
    """A command: the module in ``commands`` that holds it, and the line that ``--help`` shows."""

    module: str
    summary: str
    uses_store: bool = True
    """Whether it works on the store that ``--store`` chooses."""


SECTIONS: Final[dict[str, dict[str, Entry]]] = {
    "Look": {
        "ls": Entry("ls", "the newest sessions"),
        "show": Entry("show", "one session, as it went"),
        "tail": Entry("tail", "what is said, as it is said"),
        "search": Entry("search", "where some words occur"),
        "stats": Entry("stats", "how much there is, and whose"),
        "docs": Entry("docs", "categories and documents"),
        "cat": Entry("cat", "one document"),
        "demo": Entry("demo", "keep, kill -9, reopen, search", uses_store=False),
    },
    "Write": {
        "new": Entry("new", "begin a session"),
        "say": Entry("say", "add what the user said"),
        "reply": Entry("reply", "add what the agent answered"),
        "event": Entry("event", "add a tool call, a thought"),
        "fork": Entry("fork", "branch off a session"),
        "rewind": Entry("rewind", "drop the end of a session"),
        "put": Entry("put", "store a document"),
        "rm": Entry("rm", "remove a document"),
    },
    "Keep in order": {
        "delete": Entry("delete", "sessions, into the trash"),
        "prune": Entry("prune", "what is old or too many"),
        "trash": Entry("trash", "what can be restored"),
        "restore": Entry("restore", "take a session back"),
        "erase": Entry("erase", "all that a user has"),
        "check": Entry("check", "look for damage"),
    },
    "Move and mend": {
        "export": Entry("export", "as markdown, html, json, …"),
        "import": Entry("import_", "what was exported"),
        "copy": Entry("copy", "from any engine to any", uses_store=False),
        "backup": Entry("backup", "a verified copy, while in use"),
        "compact": Entry("compact", "give room back"),
        "repair": Entry("repair", "move damage aside"),
    },
}
"""A summary has at most 29 characters, so that two sections stand side by side."""

COMMANDS: Final[dict[str, Entry]] = {name: entry for section in SECTIONS.values() for name, entry in section.items()}
