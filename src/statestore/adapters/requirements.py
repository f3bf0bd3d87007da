"""Which frameworks there are adapters for, in which versions, and what is said when one is missing.

An adapter's module imports its framework like this, so that whoever imports the adapter learns what to install::

    try:
        from agents.memory import SessionSettings
    except ImportError as error:
        raise unavailable("openai-agents") from error
    check_version("openai-agents")
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from msgspec import Struct

from statestore.errors import StateStoreError


class FrameworkUnavailable(StateStoreError, ImportError):
    """An agent framework is not installed, or not in a version that its adapter is known to work with."""


class Requirement(Struct, frozen=True):
    """A framework's package, and the versions of it that the adapter is tested with, both ends included."""

    package: str
    oldest: str
    newest: str
    """The newest release that was tested; later ones of the same major version are taken on trust."""

    @property
    def below(self) -> str:
        """The first version that is refused: the next major one."""
        return str(_release(self.newest)[0] + 1)

    @property
    def range(self) -> str:
        """As pip spells it."""
        return f"{self.package}>={self.oldest},<{self.below}"

    def accepts(self, version: str) -> bool:
        """Whether a version is in the range."""
        return _release(self.oldest) <= _release(version) < _release(self.below)


REQUIREMENTS: Final[dict[str, Requirement]] = {
    "agent-framework": Requirement("agent-framework-core", "1.15", "1.23"),
    "claude-agent-sdk": Requirement("claude-agent-sdk", "0.2.82", "0.2.182"),
    "google-adk": Requirement("google-adk", "2.0", "2.13"),
    "langchain": Requirement("langchain-core", "1.0", "1.7"),
    "langgraph": Requirement("langgraph-checkpoint", "4.0", "4.3"),
    "llama-index": Requirement("llama-index-core", "0.13", "0.14"),
    "openai-agents": Requirement("openai-agents", "0.10", "0.24"),
    "pydantic-ai": Requirement("pydantic-ai-slim", "2.66", "2.66"),
    "strands": Requirement("strands-agents", "1.50", "1.62"),
}
"""By the name of the extra: ``pip install 'statestore[openai-agents]'``. The extras name the same versions."""


def check_version(framework: str) -> None:
    """Raise `FrameworkUnavailable` if what is installed is not a version that the adapter knows."""
    requirement = REQUIREMENTS[framework]
    found = _installed(requirement.package)
    if found is None or not requirement.accepts(found):
        raise unavailable(framework)


def unavailable(framework: str) -> FrameworkUnavailable:
    """The error for a framework that cannot be used: what was found, what is needed, and how to get it."""
    requirement = REQUIREMENTS[framework]
    found = _installed(requirement.package)
    cure = f"pip install 'statestore[{framework}]'"
    if found is None:
        state = f"is not installed: {cure}"
    elif not requirement.accepts(found):
        state = f"{found} is installed: {cure}"
    else:
        state = f"{found} is installed, but cannot be imported: the error before this one says why"
    needed = f"statestore's adapter for {framework} needs {requirement.range}"
    return FrameworkUnavailable(f"{needed}; {requirement.package} {state}")


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _release(text: str) -> tuple[int, ...]:
    """The numbers that a version begins with: a pre-release counts as its release."""
    numbers = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(map(int, numbers[0].split("."))) if numbers else (0,)
