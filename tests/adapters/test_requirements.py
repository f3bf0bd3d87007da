"""What is said of a framework that is missing, too old or broken; and that all who name its versions name the same."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tomllib

import pytest

from children import SOURCE
from statestore import StateStoreError
from statestore.adapters import requirements
from statestore.adapters.requirements import REQUIREMENTS, FrameworkUnavailable, check_version, unavailable

ADAPTERS = {framework: framework.replace("-", "_") for framework in REQUIREMENTS}
MODULES = ADAPTERS | {
    "google-adk": "google.adk",
    "langchain": "langchain_core",
    "langgraph": "langgraph.checkpoint",
    "openai-agents": "agents",
}
PROJECT = SOURCE.parent
PAGES = {"strands": "strands-agents"}
"""Where a page is not named like its extra."""


def complaint_without(framework: str, installed: str | None) -> str:
    """What is said to whoever imports an adapter whose framework cannot be imported."""
    script = f"""
import sys
from importlib import metadata
sys.modules[{MODULES[framework]!r}] = None
found = metadata.version
def version(name):
    if name != {REQUIREMENTS[framework].package!r}:
        return found(name)
    if {installed!r} is None:
        raise metadata.PackageNotFoundError(name)
    return {installed!r}
metadata.version = version
import statestore.adapters.{ADAPTERS[framework]}
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, env={"PYTHONPATH": str(SOURCE)}
    )
    return done.stderr.strip().splitlines()[-1].removeprefix("statestore.adapters.requirements.FrameworkUnavailable: ")


@pytest.mark.parametrize("framework", ADAPTERS)
def test_a_missing_framework_is_named_with_what_to_install(framework: str) -> None:
    assert complaint_without(framework, installed=None) == (
        f"statestore's adapter for {framework} needs {REQUIREMENTS[framework].range}; "
        f"{REQUIREMENTS[framework].package} is not installed: pip install 'statestore[{framework}]'"
    )


def test_who_has_the_right_version_of_a_broken_framework_is_not_told_to_install_it() -> None:
    assert complaint_without("langchain", installed="1.7.2") == (
        "statestore's adapter for langchain needs langchain-core>=1.0,<2; langchain-core 1.7.2 is installed, "
        "but cannot be imported: the error before this one says why"
    )


@pytest.mark.parametrize(("found", "is_fine"), [("0.9.9", False), ("0.10.0", True), ("0.24", True), ("1.0a1", False)])
def test_a_version_outside_the_range_is_refused(found: str, is_fine: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "version", lambda _: found)
    if is_fine:
        check_version("openai-agents")
        return
    with pytest.raises(FrameworkUnavailable, match=rf"needs openai-agents>=0\.10,<1; openai-agents {found} is inst"):
        check_version("openai-agents")


def test_it_is_an_import_error_and_one_of_ours() -> None:
    error = unavailable("langchain")
    assert isinstance(error, ImportError)
    assert isinstance(error, StateStoreError)


def test_statestore_imports_no_framework_and_neither_does_reading_another_ones_items() -> None:
    script = """
import importlib, pkgutil, sys
import statestore, statestore.adapters, statestore.adapters.handoff, statestore.adapters.conversations
from statestore.adapters import dialects
for module in pkgutil.iter_modules(dialects.__path__, dialects.__name__ + "."):
    importlib.import_module(module.name)
frameworks = ("agents", "openai", "langchain_core", "llama_index", "pydantic", "strands", "google", "agent_framework")
print([name for name in (*frameworks, "claude_agent_sdk") if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(SOURCE)}
    )
    assert done.stdout == "[]\n"


def test_every_extra_names_the_versions_that_its_adapter_accepts() -> None:
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {framework: extras[framework] for framework in ADAPTERS} == {
        framework: [requirement.range] for framework, requirement in REQUIREMENTS.items()
    }


@pytest.mark.parametrize("framework", ADAPTERS)
def test_every_page_names_the_extra_and_the_versions_that_its_adapter_is_tested_with(framework: str) -> None:
    requirement = REQUIREMENTS[framework]
    page = (PROJECT / "docs" / "adapters" / f"{PAGES.get(framework, framework)}.md").read_text()
    versions = " to ".join(dict.fromkeys([requirement.oldest, requirement.newest]))
    assert f"pip install 'statestore[{framework}]'" in page
    assert re.search(re.escape(f"Tested with {requirement.package} {versions}") + r"(?!\.?\d)", page)


def test_the_matrix_has_tests_for_every_framework() -> None:
    tried = runpy.run_path(str(PROJECT / "tools" / "matrix.py"))["TESTS"]
    assert tried.keys() == REQUIREMENTS.keys()
    names = [name.partition("::")[0] for names in tried.values() for name in names]
    assert [name for name in names if not (PROJECT / "tests" / "adapters" / name).exists()] == []
