"""docs/dependencies.md has every dependency, with the licence that the package itself declares."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, metadata

import pytest

from tests.conftest import HERE

ROOT = HERE.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
TABLE = re.findall(
    r"(?m)^\| (?!Package)([\w-]+)(?: \((.+?)\))? \| ([\w. -]+) \| .+ \| .+ \|$",
    (ROOT / "docs/dependencies.md").read_text("utf-8"),
)
NAMES = {
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "MIT License": "MIT",
    "BSD License": "BSD-3-Clause",
}


def name_of(requirement: str) -> str:
    return re.split(r"[^\w-]", requirement)[0]


def test_every_dependency_is_explained() -> None:
    extras: dict[str, set[str]] = {}
    for extra, requirements in PROJECT["optional-dependencies"].items():
        for one in requirements:
            extras.setdefault(name_of(one), set()).add(extra)
    wanted = {name_of(one): set() for one in PROJECT["dependencies"]} | extras
    assert {name: set(re.findall(r"`(\w+)`", extra)) for name, extra, _ in TABLE} == wanted


@pytest.mark.parametrize(("name", "licence"), [(name, licence) for name, _, licence in TABLE])
def test_the_licence_is_the_one_that_is_declared(name: str, licence: str) -> None:
    try:
        found = metadata(name)
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed")
    said = [str(found.get("License-Expression", "")), str(found.get("License", ""))]
    said += [c.rpartition(" :: ")[2] for c in found.get_all("Classifier", []) if c.startswith("License")]
    assert any(licence in (NAMES.get(one, one), *NAMES.get(one, one).split(" AND ")) for one in said), said
