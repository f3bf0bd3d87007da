"""What is said of a framework that is missing or too old, and that nothing is imported before it is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import statestore
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


@pytest.mark.parametrize("framework", ADAPTERS)
def test_a_missing_framework_is_named_with_what_to_install(framework: str) -> None:
    script = f"""
import sys
from importlib import metadata
sys.modules[{MODULES[framework]!r}] = None
found = metadata.version
def version(name):
    if name == {REQUIREMENTS[framework].package!r}:
        raise metadata.PackageNotFoundError(name)
    return found(name)
metadata.version = version
import statestore.adapters.{ADAPTERS[framework]}
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, env={"PYTHONPATH": str(SOURCE)}
    )
    complaint = done.stderr.strip().splitlines()[-1]
    assert complaint == (
        f"statestore.adapters.requirements.FrameworkUnavailable: statestore's adapter for {framework} needs "
        f"{REQUIREMENTS[framework].range}; {REQUIREMENTS[framework].package} is not installed: "
        f"pip install 'statestore[{framework}]'"
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
import sys
import statestore, statestore.adapters, statestore.adapters.handoff, statestore.adapters.conversations
import statestore.adapters.openai_agents_items, statestore.adapters.langchain_items
import statestore.adapters.llama_index_items
print([name for name in ("agents", "openai", "langchain_core", "llama_index", "pydantic") if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env={"PYTHONPATH": str(SOURCE)}
    )
    assert done.stdout == "[]\n"


def test_every_extra_names_the_versions_that_its_adapter_accepts() -> None:
    import tomllib

    project = Path(statestore.__file__).parent.parent.parent / "pyproject.toml"
    extras = tomllib.loads(project.read_text())["project"]["optional-dependencies"]
    for framework in ADAPTERS:
        assert REQUIREMENTS[framework].range in extras[framework]
