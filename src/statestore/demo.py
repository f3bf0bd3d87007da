"""``python -m statestore.demo``: the main job in a few seconds, on SQLite.

A process keeps a conversation and is killed in the middle of it, several times. Each time the store is opened again
and everything that was acknowledged must be there, once. Then sessions are listed, one is shown, words are searched
for, a prune is previewed.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from statestore import (
    AgentResponse,
    Event,
    InvalidValue,
    PruneConfig,
    Session,
    StateStore,
    StateStoreError,
    UserMessage,
)

KILLED: Final = "the-killed-one"
KILLS: Final = 4
PREVIEW: Final = PruneConfig(max_sessions=3, ttl_hours=7 * 24, max_sessions_per_user=2)
COLOURS: Final = {"user": "bold cyan", "agent": "bold green"}
TEXTS: Final = ("user", "title", "updated", "reason")
EARLIER: Final = (  # user, days ago, question, answer
    ("alice", 0.1, "Summarise Monday's minutes", "Three decisions, two open questions."),
    ("alice", 2, "Why is the build slow?", "Most of the time goes into linking."),
    ("carol", 5, "Plan a week of dinners", "Monday: lentils. Tuesday: gnocchi."),
    ("bob", 12, "What is a keyset cursor?", "A place in an order, named by its last row."),
)


class Verdict(NamedTuple):
    """What was found after a kill, beside what had been acknowledged."""

    acknowledged: int
    found: int
    twice: int
    torn: int
    extra: int

    @property
    def is_good(self) -> bool:
        """Whether every acknowledged exchange is there once, and no exchange is there by half."""
        return self.found == self.acknowledged and not self.twice and not self.torn


def exchange(number: int) -> tuple[str, str]:
    """What is said in one exchange of the session whose writer is killed."""
    return f"Question {number}: what comes after {number - 1}?", f"Answer {number}: {number} does."


def write_until_killed(url: str) -> None:
    """The writer: save one exchange after the other, and print the number of each one that is stored."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # if the demo is stopped before it can kill, the writer ends as well
    with StateStore.open(url) as store:
        session = store.get_or_create_session("dave", KILLED)
        for number in count(len(session.user_messages) + 1):
            question, answer = exchange(number)
            session.add_user_message(question)
            session.add_agent_response(answer)
            store.save_session(session)
            print(number, flush=True)  # noqa: T201 - the acknowledgement


def acknowledged_before_kill(url: str) -> list[int]:
    """Start a writer, kill it at a random moment with SIGKILL; what it had acknowledged by then."""
    command = [sys.executable, "-m", "statestore.demo", "--write-to", url]
    with subprocess.Popen(  # noqa: S603 - our own module; Ctrl-C is not for the writer, which would complain of it
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as writer:
        assert writer.stdout is not None
        try:
            first = writer.stdout.readline()
            time.sleep(random.uniform(0.1, 0.3))  # noqa: S311 - any moment will do
        finally:
            writer.kill()
        lines = [first, *writer.stdout]
    if writer.returncode != -signal.SIGKILL:
        raise SystemExit(f"the writer ended by itself, with status {writer.returncode}")
    return [int(line) for line in lines if line.endswith("\n")]


def judge(store: StateStore, acknowledged: Sequence[int]) -> Verdict:
    """Compare what is stored with what was acknowledged."""
    session = store.load_session(KILLED) or Session("dave")
    asked = Counter(message.content for message in session.user_messages)
    answered = Counter(response.content for response in session.agent_responses)
    times = [(asked[question], answered[answer]) for question, answer in map(exchange, range(max(acknowledged) + 2))]
    there = {number for number, pair in enumerate(times) if all(pair)}
    found = sum(number in there for number in acknowledged)
    twice = sum(max(pair) > 1 for pair in times)
    torn = sum(questions != answers for questions, answers in times)
    return Verdict(len(acknowledged), found, twice, torn, extra=len(there.difference(acknowledged)))


def show_kills(console: Console, url: str) -> bool:
    """Kill one writer after the other; whether nothing was lost."""
    console.print(f"A writer saves exchanges one by one and is killed with kill -9, {KILLS} times:", style="bold")
    grid = table(console, "kill", *Verdict._fields)
    acknowledged: list[int] = []
    is_good = True
    for kill in range(1, KILLS + 1):
        acknowledged += acknowledged_before_kill(url)
        with StateStore.open(url, create=False) as store:
            verdict = judge(store, acknowledged)
        is_good = is_good and verdict.is_good
        grid.add_row(str(kill), *map(str, verdict), style="" if verdict.is_good else "bold red")
    said = "Everything acknowledged is there, once." if is_good else "ACKNOWLEDGED EXCHANGES WERE LOST OR DAMAGED."
    console.print(grid, Text(said, "green" if is_good else "bold red"), "(Extra: stored, not yet said.)")
    return is_good


def keep_conversations(store: StateStore) -> str:
    """Store a few sessions of several users and ages; the id of the one worth showing."""
    for user, days, asked, answered in EARLIER:
        moment = datetime.now(UTC) - timedelta(days=days)
        session = Session(user)
        session.user_messages.append(UserMessage(asked, timestamp=moment))
        session.agent_responses.append(AgentResponse(answered, timestamp=moment))
        session.updated_at = moment
        store.save_session(session)
    session = store.get_or_create_session("alice")
    session.add_user_message("Which ferry arrives before noon?")
    session.add_event("tool_call", {"name": "timetable", "arguments": {"from": "harbour", "before": "12:00"}})
    session.add_event("tool_result", {"departures": ["08:15", "10:40"]})
    session.add_agent_response("The 10:40 arrives at 11:35. The 08:15 leaves you the whole morning there.")
    session.add_user_message("The early one, then. Two seats.")
    session.add_agent_response("Two seats on the 08:15 are held until six this evening.")
    store.save_session(session)
    return session.id


def show_sessions(console: Console, store: StateStore) -> None:
    """List all sessions."""
    console.print("\nAll sessions, newest first:", style="bold")
    grid = table(console, "user", "title", "messages", "events", "updated")
    for session in store.list_sessions():
        counts = (session.message_count + session.response_count, session.event_count)
        grid.add_row(session.user_id, Text(session.title or ""), *map(str, counts), f"{session.updated_at:%d %b %H:%M}")
    console.print(grid)


def show_conversation(console: Console, store: StateStore, session_id: str) -> None:
    """Show one session as it went."""
    console.print(f"\nOne of them, session {session_id}:", style="bold")
    for seq, kind, record in store.timeline(session_id):
        said = bytes(record.data_json).decode() if isinstance(record, Event) else record.content
        console.print(Text.assemble(f"{seq:>3}  ", (f"{kind:<12}", COLOURS.get(kind, "dim")), said), soft_wrap=True)


def show_search(console: Console, store: StateStore, query: str) -> None:
    """Show where some words occur."""
    console.print(f"\nWhere “{query.replace(' ', '” and “')}” occur, best first:", style="bold")
    for hit in store.search_sessions(query):
        snippet = Text(hit.snippet)
        for start, end in hit.marks:
            snippet.stylize("bold underline", start, end)
        console.print(Text(f"{hit.seq or 'title':>3}  {hit.title}: ", "dim") + snippet, soft_wrap=True)


def preview_prune(console: Console, store: StateStore) -> None:
    """Show what a prune would delete, and why; delete nothing."""
    console.print(f"\n{PREVIEW} would delete", style="bold")
    grid = table(console, "user", "title", "updated", "reason")
    for session, reason in ((doomed.session, doomed.reason) for doomed in store.prune_sessions(PREVIEW, dry_run=True)):
        grid.add_row(session.user_id, Text(session.title or ""), f"{session.updated_at:%d %b %H:%M}", reason)
    console.print(grid, f"It was only a preview: there are still {store.count_sessions()} sessions.")


def table(console: Console, *columns: str) -> Table:
    """A table with lines on a terminal, and without any elsewhere."""
    grid = Table(box=box.SIMPLE_HEAD if console.is_terminal else None, pad_edge=False, header_style="bold")
    for column in columns:
        grid.add_column(column, justify="left" if column in TEXTS else "right", no_wrap=column != "title")
    return grid


def show_everything(keep: Path | None = None) -> bool:
    """The whole demo, in a new or empty directory that is left there, or in one that is not; whether nothing was lost.

    `InvalidValue` if the directory holds something.
    """
    if keep and keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise InvalidValue(f"{keep} is not empty: the demo is kept in a new or an empty directory")
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    with nullcontext(keep) if keep else tempfile.TemporaryDirectory(prefix="statestore-") as directory:
        url = f"sqlite:{directory}/state.db"
        StateStore.open(url).close()  # a place that cannot be used is found out here, and not by the writer
        is_good = show_kills(console, url)
        with StateStore.open(url) as store:
            shown = keep_conversations(store)
            show_sessions(console, store)
            show_conversation(console, store, shown)
            show_search(console, store, "early seats")
            preview_prune(console, store)
    return is_good


def main() -> int:
    """Run the demo; the exit status tells whether all that was acknowledged is there."""
    parser = argparse.ArgumentParser(prog="python -m statestore.demo", description="Show what statestore does.")
    parser.add_argument("--keep", metavar="DIR", type=Path, help="work in this new or empty directory, and keep it")
    parser.add_argument("--write-to", metavar="URL", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.write_to:
        write_until_killed(options.write_to)
    try:
        return 0 if show_everything(options.keep) else 1
    except StateStoreError as error:
        parser.error(str(error))


if __name__ == "__main__":
    sys.exit(main())
