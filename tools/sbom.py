"""Writes a bill of materials of what the package needs at run time, as CycloneDX JSON.

    python tools/sbom.py [EXTRA …] > sbom.json

It tells what is installed here of the declared dependencies, and of what these need in turn; of an extra (``postgres``,
``valkey``), too, if it is named. The same environment gives the same bytes.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
import uuid
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
SPEC = "1.6"


def main(extras: list[str]) -> None:
    """Print it."""
    sys.stdout.write(json.dumps(bill_of(extras), indent=2, ensure_ascii=False) + "\n")


def bill_of(extras: list[str]) -> dict[str, Any]:
    """The bill for the package with some extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    version = _version()
    optional: dict[str, list[str]] = project["optional-dependencies"]
    declared = [*project["dependencies"], *(line for extra in extras for line in optional[extra])]
    own = _reference(project["name"], version)
    graph: dict[str, list[str]] = {}
    found: dict[str, Distribution] = {}
    graph[own] = _walk([Requirement(line) for line in declared], graph, found)
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": SPEC,
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": project["name"],
                "version": version,
                "licenses": [{"license": {"id": project["license"]}}],
                "purl": own,
            },
        },
        "components": [_component(reference, found[reference]) for reference in sorted(found)],
        "dependencies": [{"ref": reference, "dependsOn": graph[reference]} for reference in sorted(graph)],
    }
    name = json.dumps(bill, sort_keys=True)
    return {"serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, name)}"} | bill


def _walk(needed: list[Requirement], graph: dict[str, list[str]], found: dict[str, Distribution]) -> list[str]:
    """Note what is installed of some requirements, and of theirs; the references of these."""
    references: list[str] = []
    for requirement in needed:
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        installed = distribution(requirement.name)
        reference = _reference(installed.metadata["Name"], installed.version)
        references.append(reference)
        if reference not in found:
            found[reference] = installed
            graph[reference] = _walk([Requirement(line) for line in installed.requires or []], graph, found)
    return sorted(set(references))


def _component(reference: str, installed: Distribution) -> dict[str, Any]:
    metadata = installed.metadata
    component = {
        "type": "library",
        "bom-ref": reference,
        "name": canonicalize_name(metadata["Name"]),
        "version": installed.version,
        "purl": reference,
    }
    return component | {"licenses": _licenses(installed)}


def _licenses(installed: Distribution) -> list[dict[str, Any]]:
    metadata = installed.metadata
    if metadata.get("License-Expression"):
        return [{"expression": metadata["License-Expression"]}]
    told = [line.rpartition(" :: ")[2] for line in metadata.get_all("Classifier", []) if line.startswith("License ::")]
    return [{"license": {"name": name}} for name in told or [(metadata.get("License") or "unknown").splitlines()[0]]]


def _reference(name: str, version: str) -> str:
    return f"pkg:pypi/{canonicalize_name(name)}@{version}"


def _version() -> str:
    text = (ROOT / "src" / "statestore" / "__init__.py").read_text()
    found = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    assert found is not None
    return found[1]


if __name__ == "__main__":
    main(sys.argv[1:])
