"""The file of the lowest versions says what pyproject.toml allows, so that what `make test-lowest` shows is true."""

from __future__ import annotations

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]
BESIDE = {"psycopg-binary": "psycopg"}
"""What an extra of a dependency brings, in the same version."""


def bounds() -> dict[str, Version]:
    """Return the lowest version that pyproject.toml allows of each package that semmem itself or markdown needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = {}
    for line in (*project["dependencies"], *project["optional-dependencies"]["markdown"]):
        needed = Requirement(line)
        (lowest,) = [part.version for part in needed.specifier if part.operator == ">="]
        found[needed.name] = Version(lowest)
    return found


def pinned() -> dict[str, Version]:
    """Return the version of each package in constraints-lowest.txt."""
    lines = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {name: Version(version) for name, version in pairs}


def test_the_lowest_versions_that_are_tested_are_the_lowest_that_are_allowed() -> None:
    allowed = bounds()
    assert len(allowed) >= 10
    assert pinned() == allowed | {name: allowed[other] for name, other in BESIDE.items()}


def test_every_package_has_an_upper_bound_too() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert all("<" in line for line in project["dependencies"])
