"""Bill of materials of an installed package: CycloneDX JSON on stdout, without any network.

Usage: python scripts/sbom.py [PACKAGE]

Lists the package and everything it needs, as installed where this runs, from the metadata of the
distributions; extras are left out unless a dependency asks for them. The same environment and the
same ``SOURCE_DATE_EPOCH`` give the same bytes.
"""

from __future__ import annotations

import json
import os
import re
import sys
import uuid
from datetime import UTC, datetime
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Any

SPECIFICATION = "1.6"

_NAME = re.compile(r"\s*([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?")
_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")


def canonical(name: str) -> str:
    """The name as package indexes write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def reference(found: Distribution) -> str:
    """Name and version as a package URL."""
    return f"pkg:pypi/{canonical(found.metadata['Name'])}@{found.version}"


def requirements(found: Distribution, extras: frozenset[str]) -> list[tuple[str, frozenset[str]]]:
    """Names of what a distribution needs with these extras, and the extras asked of each."""
    needed = []
    for text in found.requires or ():
        condition = _EXTRA.search(text.partition(";")[2])
        if condition and canonical(condition[1]) not in extras:
            continue
        parts = _NAME.match(text)
        if parts:
            asked = (canonical(extra) for extra in (parts[2] or "").split(",") if extra.strip())
            needed.append((canonical(parts[1]), frozenset(asked)))
    return needed


def collect(name: str) -> tuple[dict[str, Distribution], dict[str, set[str]]]:
    """Installed distributions by name, and the names that each needs; other systems' are absent."""
    found: dict[str, Distribution] = {}
    edges: dict[str, set[str]] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [(canonical(name), frozenset[str]())]
    while waiting:
        wanted = waiting.pop()
        if wanted in seen:
            continue
        seen.add(wanted)
        try:
            found[wanted[0]] = distribution(wanted[0])
        except PackageNotFoundError:  # needed on another system or another Python
            if wanted[0] == canonical(name):
                raise
            continue
        needed = requirements(found[wanted[0]], wanted[1])
        edges.setdefault(wanted[0], set()).update(child for child, _ in needed)
        waiting += needed
    return found, edges


def licences(found: Distribution) -> list[dict[str, Any]]:
    """The licence as the distribution states it: an expression, classifiers, or a short text."""
    about = found.metadata
    expression = about.get("License-Expression")
    if expression:
        return [{"expression": expression}]
    named = [
        line.rpartition(" :: ")[2]
        for line in about.get_all("Classifier") or ()
        if line.startswith("License :: ")
    ]
    text = (about.get("License") or "").strip()
    if not named and text and "\n" not in text:
        named = [text]
    return [{"license": {"name": line}} for line in dict.fromkeys(named)]


def component(found: Distribution, kind: str = "library") -> dict[str, Any]:
    """One entry of the list."""
    entry = {
        "type": kind,
        "bom-ref": reference(found),
        "name": found.metadata["Name"],
        "version": found.version,
        "purl": reference(found),
    }
    summary = found.metadata.get("Summary")
    stated = licences(found)
    return (
        entry
        | ({"description": summary} if summary else {})
        | ({"licenses": stated} if stated else {})
    )


def bill(name: str, seconds: int) -> dict[str, Any]:
    """The whole document; ``seconds`` since 1970 stand in it as its time."""
    found, edges = collect(name)
    root = found[canonical(name)]
    parts = [component(found[key]) for key in sorted(found) if key != canonical(name)]
    graph = [
        {
            "ref": reference(found[key]),
            "dependsOn": sorted(reference(found[child]) for child in edges[key] if child in found),
        }
        for key in sorted(found)
    ]
    document: dict[str, Any] = {
        "$schema": f"http://cyclonedx.org/schema/bom-{SPECIFICATION}.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": SPECIFICATION,
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": component(root, "application"),
        },
        "components": parts,
        "dependencies": graph,
    }
    content = json.dumps(document, sort_keys=True)
    return document | {"serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, content).urn}


def main() -> None:
    """Print the bill."""
    name = sys.argv[1] if len(sys.argv) > 1 else "marginbn"
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    print(json.dumps(bill(name, seconds), indent=2, sort_keys=True))


if __name__ == "__main__":
    main()
