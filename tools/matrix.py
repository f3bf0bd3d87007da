"""``make test-matrix``: each adapter's tests with both ends of the range of versions that it declares.

    python tools/matrix.py                            all of them
    python tools/matrix.py google-adk strands         these alone
    python tools/matrix.py --end oldest --json FILE   one end; what came out, as JSON

The oldest is the very first release of the range, the newest the last one of the newest series. Each gets an
environment of its own, below ``.venv-matrix``, with its framework and none of the others. One that cannot be installed
does not keep the rest from running. Tests on servers are left to ``make test``: what may differ between versions is the
framework, not the store.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from statestore.adapters.requirements import REQUIREMENTS

ROOT: Final = Path(__file__).parent.parent
PLACE: Final = ROOT / ".venv-matrix"
ENDS: Final = ("oldest", "newest")
TESTS: Final = {
    "agent-framework": ["agent_framework"],
    "claude-agent-sdk": ["claude_agent_sdk"],
    "google-adk": ["google_adk"],
    "langchain": ["test_langchain.py", "test_examples.py::test_the_chat_of_langchain_goes_on_elsewhere"],
    "langgraph": ["langgraph"],
    "llama-index": [
        "test_llama_index.py",
        "test_llama_index_queue.py",
        "test_examples.py::test_the_memory_of_llama_index_is_archived",
    ],
    "openai-agents": [
        "test_openai_agents.py",
        "test_openai_agents_runs.py",
        "test_examples.py::test_the_agent_of_openai_agents_remembers",
    ],
    "pydantic-ai": ["pydantic_ai"],
    "strands": ["strands"],
}
"""Below ``tests/adapters``."""
BESIDE: Final = {
    "google-adk": ["sqlalchemy[asyncio]>=2", "aiosqlite"],
    "langchain": ["langchain-community>=0.4"],
    "langgraph": ["langgraph>=1.0", "langgraph-checkpoint-conformance>=0.0.2", "langgraph-checkpoint-sqlite>=3.0"],
    "llama-index": ["aiosqlite", "sqlalchemy"],
}
"""What the tests of a framework need besides it."""
OLD_COMPANIONS: Final = {"openai-agents": ["openai==2.26.0"]}
"""What the oldest version of a framework needs to be old, too, because it does not say so itself."""


class Outcome(NamedTuple):
    """What came of one version of one framework."""

    framework: str
    end: str
    version: str
    """The one that was installed; the one that was asked for, if it was not."""
    failed_at: str | None
    """The step that failed: ``environment``, ``install``, ``import`` or ``tests``."""
    summary: str
    """The last line that the last step printed."""

    def __str__(self) -> str:
        told = f"failed at {self.failed_at}: {self.summary}" if self.failed_at else self.summary
        return f"{self.framework:17} {self.end:7} {self.version:9} {told}"


def main() -> int:
    """Try all, or those that are named; 1 if one of them fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("frameworks", nargs="*", metavar="framework", help=f"of {', '.join(REQUIREMENTS)}")
    parser.add_argument("--end", choices=ENDS, help="this end of the range alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what came out there, too")
    chosen = parser.parse_args()
    if unknown := [name for name in chosen.frameworks if name not in REQUIREMENTS]:
        parser.error(f"there is no adapter for {', '.join(unknown)}")
    ends = [chosen.end] if chosen.end else ENDS
    outcomes = [_tried(framework, end) for framework in chosen.frameworks or REQUIREMENTS for end in ends]
    print("\n" + "\n".join(map(str, outcomes)))
    if chosen.json:
        chosen.json.write_text(json.dumps([outcome._asdict() for outcome in outcomes], indent=2) + "\n")
    return 1 if any(outcome.failed_at for outcome in outcomes) else 0


def _tried(framework: str, end: str) -> Outcome:
    """Go through the steps, as far as they succeed."""
    package = REQUIREMENTS[framework].package
    version: str = getattr(REQUIREMENTS[framework], end)
    python = PLACE / f"{framework}-{end}" / "bin" / "python"
    summary = ""
    for step, command in _steps(framework, end, python):
        print(f"== {framework} {version}, {step}", flush=True)
        succeeded, summary = _run(command)
        if not succeeded:
            return Outcome(framework, end, version, step, summary)
        if step == "install":
            told = f"from importlib.metadata import version; print(version({package!r}))"
            version = subprocess.check_output([python, "-c", told], text=True).strip()
    return Outcome(framework, end, version, None, summary)


def _steps(framework: str, end: str, python: Path) -> Iterator[tuple[str, list[str]]]:
    """What is done for one version: the name of each step, and its command."""
    requirement = REQUIREMENTS[framework]
    pinned = f"=={requirement.oldest}" if end == "oldest" else f"=={requirement.newest}.*"
    packages = [requirement.package + pinned, *BESIDE.get(framework, []), "pytest-timeout>=2.3"]
    packages += OLD_COMPANIONS.get(framework, []) if end == "oldest" else []
    tests = [str(Path("tests", "adapters", name)) for name in TESTS[framework]]
    yield "environment", [sys.executable, "-m", "venv", str(python.parent.parent)]
    pip = [str(python), "-m", "pip", "install", "--upgrade", "-qq", "--disable-pip-version-check"]
    yield "install", [*pip, "--editable", ".[conformance]", *packages]
    yield "import", [str(python), "-c", f"import statestore.adapters.{framework.replace('-', '_')}"]
    yield (
        "tests",
        [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not postgres and not valkey", *tests],
    )


def _run(command: list[str]) -> tuple[bool, str]:
    """Whether a command succeeded, and its last line; all that it prints is shown as it comes."""
    last = ""
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as running:
        assert running.stdout is not None
        for line in running.stdout:
            print(line, end="", flush=True)
            last = line.strip() or last
    return running.returncode == 0, last


if __name__ == "__main__":
    sys.exit(main())
