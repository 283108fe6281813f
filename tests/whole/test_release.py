"""What a release is made of: the bill of materials, what goes into the archives, the same bytes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from importlib.metadata import requires, version
from pathlib import Path
from typing import Any

import pytest

import marginbn

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def bill(seconds: str = "1700000000") -> str:
    """The bill of materials of the package as it is installed here."""
    made = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "sbom.py"), "marginbn"],
        env={**os.environ, "SOURCE_DATE_EPOCH": seconds},
        capture_output=True,
        text=True,
        check=False,
    )
    if "PackageNotFoundError" in made.stderr:
        pytest.skip("marginbn is not installed, only imported")
    installed = {need for need in requires("marginbn") or () if "extra ==" not in need}
    if len(installed) != len(SETTINGS["project"]["dependencies"]):
        pytest.skip("marginbn was installed before its dependencies changed")
    assert made.returncode == 0, made.stderr
    return made.stdout


def test_the_bill_names_everything_that_is_needed() -> None:
    """Every dependency of the package with its version, and theirs."""
    found: dict[str, Any] = json.loads(bill())
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.6")
    assert found["metadata"]["component"]["name"] == "marginbn"
    assert found["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", found["serialNumber"])
    versions = {
        part["name"].lower().replace("_", "-"): part["version"] for part in found["components"]
    }
    for requirement in SETTINGS["project"]["dependencies"]:
        name = re.match(r"[\w-]+", requirement)
        assert name is not None
        assert versions[name[0]] == version(name[0])
    assert versions["llvmlite"] == version("llvmlite")  # of numba
    assert "pytest" not in versions  # of an extra


def test_the_bill_is_a_closed_graph() -> None:
    """Who depends on whom uses only names that are listed, each of them once."""
    found = json.loads(bill())
    listed = [part["bom-ref"] for part in (found["metadata"]["component"], *found["components"])]
    assert len(set(listed)) == len(listed)
    assert sorted(entry["ref"] for entry in found["dependencies"]) == sorted(listed)
    for entry in found["dependencies"]:
        assert set(entry["dependsOn"]) <= set(listed)


def test_the_bill_is_the_same_twice() -> None:
    assert bill() == bill()
    assert bill("0") != bill()


def test_the_security_policy_goes_with_the_sources() -> None:
    """It says how to report, what is promised and what is not."""
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    for heading in ("## How to report", "## What is promised", "## What is not promised"):
        assert heading in text
    archive = SETTINGS["tool"]["hatch"]["build"]["targets"]["sdist"]
    assert "SECURITY.md" in archive["include"]
    assert archive["exclude"] == ["experiments/results"]


def test_claimed_pythons_are_tested() -> None:
    """Each Python of the classifiers, the lowest included, is one of the workflow's."""
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    (matrix,) = re.findall(r"python: \[(.*)\]", text)
    tested = re.findall(r"3\.\d+", matrix)
    prefix = "Programming Language :: Python :: 3."
    claimed = [c for c in SETTINGS["project"]["classifiers"] if c.startswith(prefix)]
    assert len(claimed) >= 3
    assert {c.rpartition(" ")[2] for c in claimed} <= set(tested)
    assert SETTINGS["project"]["requires-python"] == f">={tested[0]}"


def test_the_citation_names_this_version() -> None:
    """Its date too: pyproject.toml, the package, CITATION.cff and the changelog agree."""
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    number = SETTINGS["project"]["version"]
    assert number == marginbn.__version__
    assert f"\nversion: {number}\n" in text
    assert f"\nlicense: {SETTINGS['project']['license']}\n" in text
    (date,) = re.findall(r"^date-released: (\S+)$", text, re.MULTILINE)
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## {number} - {date}\n" in changelog


@pytest.mark.slow
def test_two_builds_have_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources and wheel; without the results of experiments. scripts/release does much more."""
    build = pytest.importorskip("hatchling.build", reason="needs the group release")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    monkeypatch.chdir(ROOT)
    archives = []
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        made = [build.build_sdist(str(folder)), build.build_wheel(str(folder))]
        archives.append([(folder / file).read_bytes() for file in made])
    assert archives[0] == archives[1]
    with tarfile.open(tmp_path / "first" / made[0]) as archive:
        names = archive.getnames()
    assert any(name.endswith("/SECURITY.md") for name in names)
    assert any("/experiments/" in name for name in names)
    assert not any("/experiments/results/" in name for name in names)
