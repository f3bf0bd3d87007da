"""What the package is made of, and that whoever builds it gets the same bytes."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

TOOLS = Path(__file__).parent.parent.parent / "tools"


def told_by(tool: str, *arguments: str) -> str:
    command = [sys.executable, str(TOOLS / tool), *arguments]
    return subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout


def test_two_builds_in_different_places_are_the_same_to_the_byte() -> None:
    if find_spec("hatchling") is None:
        pytest.skip("needs hatchling, which builds the package")
    told = told_by("reproduce.py").splitlines()
    assert sorted(line.rpartition(".")[2] for line in told) == ["gz", "whl"]


def test_the_bill_of_materials_is_whole_and_always_the_same() -> None:
    text = told_by("sbom.py", "postgres", "valkey")
    assert text == told_by("sbom.py", "postgres", "valkey")
    bill: dict[str, Any] = json.loads(text)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    listed = {component["bom-ref"] for component in bill["components"]}
    own = bill["metadata"]["component"]["bom-ref"]
    needs = {entry["ref"]: set(entry["dependsOn"]) for entry in bill["dependencies"]}
    assert set(needs) == listed | {own}
    assert set.union(*needs.values()) == listed, "everything is there because somebody needs it"
    names = {reference.removeprefix("pkg:pypi/").partition("@")[0] for reference in needs[own]}
    assert names == {"msgspec", "markdown-it-py", "rich", "typer", "asyncpg", "redis"}
    assert all(component["version"] and component["licenses"] for component in bill["components"])


def test_without_extras_no_driver_is_in_the_bill() -> None:
    bill = json.loads(told_by("sbom.py"))
    assert not {"asyncpg", "redis"} & {component["name"] for component in bill["components"]}
